"""Writes the lock of a job file: the same facts give the same bytes, and no command changes another's part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainlaunch.diagnostics import Report
from trainlaunch.job.loader_spec import ProbedLoader, ProbeMeasurement, Tune
from trainlaunch.job.reading.lock_reader import PARTS, VERSION, lock_path, read_lock, with_part
from trainlaunch.units import format_cpus
from trainlaunch.yamltree.emitter import comment, yaml_string
from trainlaunch.yamltree.strict import ScalarNode


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What an engine knows of an image: its registry `digest`, and the argv of its ENTRYPOINT, empty for none.

    `python` and `torch` are the versions of what it starts as `python`, empty where it has none.
    """

    digest: str
    entrypoint: tuple[str, ...]
    python: str = ""
    torch: str = ""


def known_facts(job_file: Path) -> dict[str, ImageFacts]:
    """Return what the lock of `job_file` says of images, by digest; nothing of one that can't be read."""
    lock = read_lock(job_file, Report())
    found = {} if lock is None else lock.images
    return {
        each.digest.text: ImageFacts(
            each.digest.text,
            tuple(word.text for word in each.entrypoint.items if isinstance(word, ScalarNode)),
            each.python.text if each.python else "",
            each.torch.text if each.torch else "",
        )
        for each in found.values()
    }


def lock_text(job_file: Path, images: Mapping[str, ImageFacts], others: Mapping[str, str] | None = None) -> str:
    """Return the text of the lock of `job_file`; `images` by the job file's own spelling.

    `others` are the lines of the parts that it has besides, by their names.
    """
    lines = [
        f"# Written by `trainlaunch lock {comment(job_file.name)}`: what the image names of that job file stand for.",
        "# Commit it beside the job file and don't edit it: plan, render, check and up use it, and ask no engine.",
        f"version: {VERSION}",
        "images:",
    ]
    for image in sorted(images):
        facts = images[image]
        lines.append(f"  {yaml_string(image)}:")
        lines.append(f"    digest: {yaml_string(facts.digest)}")
        lines.append("    entrypoint:" if facts.entrypoint else "    entrypoint: []")
        lines += [f"      - {yaml_string(each)}" for each in facts.entrypoint]
        versions = {"python": facts.python, "torch": facts.torch}
        lines += [f"    {name}: {yaml_string(version)}" for name, version in versions.items() if version]
    kept = "".join((others or {}).get(each, "") for each in PARTS if each != "images")
    return "\n".join(lines) + "\n" + kept


def lock_with_probe(job_file: Path, current: str | None, probe: ProbeMeasurement) -> str | None:
    """Return the text of the lock of `job_file` with `probe`; `current` is its text now, None without one.

    None where the parts of that text can't be told apart.
    """
    return _with_part(job_file, current, "probe", _probe_text(probe))


def lock_with_tunes(job_file: Path, current: str | None, tunes: Mapping[str, Tune]) -> str | None:
    """Return the text of the lock of `job_file` with what tune found, all of it by target, as lock_with_probe does."""
    return _with_part(job_file, current, "tune", _tune_text(tunes))


def _with_part(job_file: Path, current: str | None, part: str, block: str) -> str | None:
    if current is not None:
        return with_part(current, lock_path(job_file), part, block)
    return (
        f"# Written by `trainlaunch {part} {comment(job_file.name)} --write`: what was measured of that job's script.\n"
        "# Commit it beside the job file and don't edit it: plan, render, check and up use it, and measure nothing.\n"
        f"version: {VERSION}\n{block}"
    )


def _probe_text(probe: ProbeMeasurement) -> str:
    lines = [
        "probe:",
        f"  input: {yaml_string(probe.input)}",
        *([f"  forced_input: {yaml_string(probe.forced_input)}"] if probe.forced_input else []),
        f"  target: {probe.target}",
        f"  torch: {yaml_string(probe.torch)}",
        f"  python: {yaml_string(probe.python)}",
        f"  start_method: {probe.start_method}",
        f"  loaders_run: {probe.loaders_run}",
        f"  batches_seen: {probe.batches_seen}",
        "  loaders:",
    ]
    for each in probe.loaders:
        lines += [f"    {line}" for line in _loader_lines(each)]
    return "\n".join([*lines, f"  dataset_tensor_bytes: {probe.dataset_tensor_bytes}"]) + "\n"


def _loader_lines(loader: ProbedLoader) -> Iterator[str]:
    yield f"- at: {yaml_string(loader.at)}"
    yield f"  num_workers: {loader.num_workers}"
    yield f"  batches_held: {loader.batches_held}"
    if loader.batches_kept is not None:
        yield f"  batches_kept: {loader.batches_kept}"
    if loader.against_workers:
        yield f"  against_workers: [{', '.join(loader.against_workers)}]"
    yield "  batch:"
    yield f"    storages: [{', '.join(map(str, loader.storages))}]"
    if loader.varying:
        yield "    varying: true"
    own = {
        "num_workers": loader.own_workers,
        "prefetch_factor": loader.own_prefetch,
        "persistent_workers": None if loader.own_persistent is None else str(loader.own_persistent).lower(),
    }
    if any(value is not None for value in own.values()):
        yield "  script:  # what it sets itself, other than the job's plan"
        yield from (f"    {field}: {value}" for field, value in own.items() if value is not None)


def _tune_text(tunes: Mapping[str, Tune]) -> str:
    lines = ["tune:" if tunes else "tune: {}"]
    for target in sorted(tunes):
        each = tunes[target]
        lines += [
            f"  {target}:",
            f"    input: {yaml_string(each.input)}",
            f"    cpus: {'null' if each.cpus is None else format_cpus(each.cpus)}",
            f"    num_workers: {each.num_workers}",
            f"    prefetch_factor: {each.prefetch_factor}",
            *([] if each.threads is None else [f"    threads: {each.threads}"]),
            *([] if each.usable_cpus is None else [f"    usable_cpus: {each.usable_cpus}"]),
        ]
    return "\n".join(lines) + "\n"
