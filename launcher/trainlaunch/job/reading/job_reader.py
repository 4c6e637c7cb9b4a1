"""Reads a job file into a JobSpec for one target, or raises with every error of the file at once."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from trainlaunch.diagnostics import Diagnostic, Report, Span
from trainlaunch.did_you_mean import closest
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.fields.table import JOB, default
from trainlaunch.job.reading.lock_reader import Lock, image_python, locked, read_lock
from trainlaunch.job.reading.precedence import apply_sets, merged, split
from trainlaunch.job.reading.spec_builder import job_spec
from trainlaunch.job.spec import JobSpec, Measured
from trainlaunch.job.validation.context import ValidationContext
from trainlaunch.job.validation.cross_fields import check_fields
from trainlaunch.job.validation.loader_fields import check_inside, check_loaders
from trainlaunch.job.values.scalar_reader import BAD
from trainlaunch.job.values.value_reader import ValueReader
from trainlaunch.repository.root import ITS_OWN, Reach, link_outside
from trainlaunch.sanitize import shorten
from trainlaunch.targets import TARGETS, TEXTS
from trainlaunch.yamltree.strict import MappingNode, Node, ScalarNode, parse_yaml
from trainlaunch.yamltree.text_file import read_text

if TYPE_CHECKING:
    from trainlaunch.job.ceilings import Policy
    from trainlaunch.job.code_folder import CodeFolder


class Layer(Protocol):
    """What lies beneath a job file: what policies give, by target."""

    @property
    def profiles(self) -> Mapping[str, str]:
        """The names of profiles that a job may ask for, each with the file that has it."""

    def trees(self) -> Iterator[MappingNode]:
        """Yield all that it gives to any job, for any target."""

    def apply_defaults(self, laid: MappingNode, target: str | None = None) -> MappingNode:
        """Return a job's tree with what is given to `target` beneath it; None: what all targets get."""

    def constraints_for(self, laid: MappingNode) -> Policy:
        """Return what the policies ask of a job, whose tree with what they give beneath is `laid`."""


# Finds the layer of a job file by its path and its own tree; what is wrong with the layer is put in the report.
LayerOf = Callable[[Path, MappingNode, Report], Layer | None]


def no_layer(path: Path, root: MappingNode, report: Report) -> None:
    """Find nothing: the job file alone counts."""


def read_job(
    path: Path,
    *,
    target: str | None = None,
    sets: Sequence[str] = (),
    use_lock: bool = True,
    layer_of: LayerOf = no_layer,
    reach: Reach = ITS_OWN,
) -> JobSpec:
    """Return the job of a file for `target` (None: the job's own), with its overrides and then `sets` laid on top.

    `sets` are `dotted.path=YAML value`. The lock beside the file fills what all of them leave open about the image.
    What `layer_of` finds lies beneath all that. Neither the file nor what it names is read out of `reach`.
    Raises JobFileRejected with every error, in the order of the file.
    """
    report = Report()
    base, overrides = _read_file(path, reach, report)
    ruled = _layer(layer_of, path, base, report)
    chosen = _target(ruled.apply_defaults(base) if ruled else base, target, sets)
    laid = merged(base, overrides[chosen]) if chosen in overrides else base
    laid = apply_sets(laid, sets, report) if ruled is None else _laid(ruled, laid, chosen, sets, report)
    _check_profile(laid, ruled, report)
    lock = read_lock(path, report, reach) if use_lock else None
    if lock is not None:
        laid = locked(laid, lock, path, report)
    reader = ValueReader(report, optional=_needless(chosen))
    values = reader.read(JOB, laid, "")
    _refuse_target(chosen, explicit=target is not None, report=report)
    checked = ValidationContext(values, laid, chosen, report, frozenset(reader.misspelt))
    code = _code_once_checked(checked, path, reach)
    if len(report):
        raise JobFileRejected(report.sorted())
    again = functools.partial(read_job, path, sets=sets, layer_of=layer_of, reach=reach)
    spec = job_spec(values, laid, path=str(path), target=chosen, sets=sets)
    spec = spec._replace(code=code, measured=lock and _measured(lock, spec, laid, again))
    if values.get("patches"):
        from trainlaunch.job.patch import patch_of  # few jobs have some

        spec = spec._replace(patch=patch_of(values, laid, chosen))
    return spec._replace(policy=ruled.constraints_for(laid)) if ruled else spec


def _measured(lock: Lock, job: JobSpec, tree: MappingNode, read: Callable[..., JobSpec]) -> Measured | None:
    """Return what was measured of `job`, whose tree this is, and the job where it was probed; None for nothing."""
    python = image_python(tree, lock) if job.target_record.starts_container else None
    probe, tune, probed = lock.probe, lock.tunes.get(job.target), None
    if probe is None:
        return Measured(None, tune, None, python) if tune or python else None
    with contextlib.suppress(JobFileRejected):
        probed = read(target=probe.target, use_lock=False)
    return Measured(probe, tune, probed, python)


def _laid(ruled: Layer, job: MappingNode, target: str, sets: Sequence[str], report: Report) -> MappingNode:
    """Return a job's tree between what policies give to it and `sets`."""
    laid = ruled.apply_defaults(_with_early(job, "profile", sets), target)  # a profile says what else lies beneath
    laid = apply_sets(laid, sets, report)
    return ruled.apply_defaults(laid, target)  # the null of an override or --set is the policy's default


def _check_profile(laid: MappingNode, ruled: Layer | None, report: Report) -> None:
    """Report a profile that no policy in force has."""
    node = laid.items["profile"][1] if "profile" in laid.items else None
    known = ruled.profiles if ruled else {}
    if not isinstance(node, ScalarNode) or node.text in known:
        return
    has = f"they have {', '.join(f'{name} ({file})' for name, file in known.items())}" if known else "they have none"
    close = closest(node.text, known)
    report.add(
        "TL107",
        node,
        message=f"profile {shorten(node.text)} is in no policy in force; {has}",
        fix=f"write {close}" if close else "write profiles: {NAME: {…}} in a policy, or delete profile",
        field="profile",
    )


def _needless(target: str) -> frozenset[str]:
    """Return the required fields that a target has no use for."""
    return frozenset() if target not in TARGETS or TARGETS[target].starts_container else frozenset({"image"})


def _code_once_checked(checked: ValidationContext, path: Path, reach: Reach) -> dict[int, CodeFolder]:
    """Check all fields against each other, and return the files of mounts of type code that the target needs."""
    check_fields(checked)
    if checked.value("healthcheck") is not None or checked.value("data_loader.inject") is not None:
        check_inside(checked)
    check_loaders(checked)
    if checked.target in TARGETS or checked.target in TEXTS:
        check_target(checked)
    mounts = checked.value("mounts") or ()
    if not any(each is not BAD and each.get("type") == "code" for each in mounts):
        return {}
    from trainlaunch.job.validation.code_sources import code_folders  # many jobs have none

    return code_folders(checked, path, reach)


def stated_target(
    path: Path, *, sets: Sequence[str] = (), layer_of: LayerOf = no_layer, reach: Reach = ITS_OWN
) -> tuple[str, Policy | None]:
    """Return the target that a job file or its policies set, else the default, and what its policies ask.

    Nothing else of the file is judged. Raises JobFileRejected where it or a policy can't be read.
    """
    report = Report()
    base, _ = _read_file(path, reach, report)
    ruled = _layer(layer_of, path, base, report)
    return _target(ruled.apply_defaults(base) if ruled else base, None, sets), ruled.constraints_for(
        base
    ) if ruled else None


def stated_images(path: Path, *, layer_of: LayerOf = no_layer, reach: Reach = ITS_OWN) -> dict[str, Span]:
    """Return the images that a job file or its policy names, for all targets, each with its place.

    Raises JobFileRejected where the file is no job for its own target.
    """
    read_job(path, use_lock=False, layer_of=layer_of, reach=reach)
    report = Report()
    base, overrides = _read_file(path, reach, report)
    trees = [base, *overrides.values()]
    ruled = None if "image" in base.items else _layer(layer_of, path, base, report)
    if ruled:
        trees += ruled.trees()
    stated = (each.items["image"][1] for each in trees if "image" in each.items)
    return {node.text: node.span for node in stated if isinstance(node, ScalarNode) and not node.null}


def _layer(layer_of: LayerOf, path: Path, base: MappingNode, report: Report) -> Layer | None:
    """Return the job's layer; raises JobFileRejected for one with errors, without which the job would be another."""
    before = len(report)
    found = layer_of(path, base, report)
    if len(report) > before:
        raise JobFileRejected(report.sorted())
    return found


def _read_file(path: Path, reach: Reach, report: Report) -> tuple[MappingNode, dict[str, MappingNode]]:
    """Return a file's own fields and its overrides by target; raises JobFileRejected where there is no mapping."""
    led_away = link_outside(path, reach, "name the file itself")
    if led_away:
        raise JobFileRejected([led_away])
    text = read_text(path, report)
    stated, found = (None, ()) if text is None else _stated(text, str(path))
    for each in found:
        report.take(each)
    if stated is None:
        raise JobFileRejected(report.sorted())
    return stated


@functools.lru_cache(maxsize=2)
def _stated(text: str, path: str) -> tuple[tuple[MappingNode, dict[str, MappingNode]] | None, tuple[Diagnostic, ...]]:
    """Return what `text` sets and what is wrong with it, for all targets; kept, since `check` asks for each."""
    report = Report()
    root = _root(text, path, report)
    if root is None:
        return None, report.found()
    base, overrides = split(root, report)
    ValueReader(report, partial=True).read(JOB, base, "")
    return (base, overrides), report.found()


def _root(text: str, path: str, report: Report) -> MappingNode | None:
    """Return the file's tree, or None where nothing more can be said about it."""
    if path.endswith(".py"):
        import shlex  # only on the way to an error

        fix = f"`{shlex.join(['trainlaunch', 'init', path, '--write-to', 'job.yaml'])}` drafts a job file from it"
        report.take(Diagnostic("TL101", f"{path} is a Python script, not a job file", fix))
        return None
    before = len(report)
    node = parse_yaml(text, path, report)
    if isinstance(node, MappingNode):
        return node
    if node is None and len(report) > before:
        return None
    if node is None or (isinstance(node, ScalarNode) and node.null):
        fix = "write at least name, image and command"
        start = Span(path, 1, 1, 1, 1)
        report.take(Diagnostic(code="TL101", message="the job file is empty", fix=fix, span=start))
        return None
    found = "a list" if not isinstance(node, ScalarNode) else "one value"
    report.add("TL105", node, message=f"the job file is {found}; expected a mapping", fix="write lines of field: value")
    return None


def _target(base: MappingNode, asked: str | None, sets: Sequence[str]) -> str:
    """Return the asked target, else that of --set, else the job's, else the default."""
    if asked is not None:
        return asked
    base = _with_early(base, "target", sets)
    node: Node | None = base.items["target"][1] if "target" in base.items else None
    known = isinstance(node, ScalarNode) and node.text in TARGETS
    fallback: Any = default("target")
    return node.text if isinstance(node, ScalarNode) and known else str(fallback)


def _with_early(laid: MappingNode, field: str, sets: Sequence[str]) -> MappingNode:
    """Return `laid` with what `sets` have for one field; what is wrong with them is said when all are laid on top."""
    return apply_sets(laid, [each for each in sets if each.startswith(f"{field}=")], Report())


def _refuse_target(target: str, *, explicit: bool, report: Report) -> None:
    if target in TARGETS or target in TEXTS or not explicit:
        return
    known = ", ".join(TARGETS)
    report.take(
        Diagnostic(
            "TL107",
            f"there is no target {target!r}; the targets are {known}",
            fix=f"write --target with one of {known}",
            field="target",
        )
    )


def check_target(job: ValidationContext) -> None:
    """Report each field of the job file that the target does not support."""
    if job.target in TEXTS:
        from trainlaunch.job.validation.texts import CHECKS  # few jobs are rendered as one

        CHECKS[job.target](job)
    else:
        job.target_record.module("trainlaunch.job.validation").check(job)
