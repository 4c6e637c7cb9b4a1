"""The comment on top of each rendered file: where it came from, why the numbers are what they are, what only `up` does.

`read_header` reads back what `trainlaunch check` needs to render the same text again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from trainlaunch.container.code_maps import code_maps
from trainlaunch.container.name_hash import RENDERING_FORMAT
from trainlaunch.container.paths import has_relative_bind
from trainlaunch.job.reading.lock_reader import lock_path
from trainlaunch.job.reserved import HEADER_START
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.units import format_duration

_RELATIVE_TO_JOB = "Relative mounts are relative to the folder of"
_FIRST_LINE = rf"^(?:#|//) {HEADER_START[2:]}(.+) for ([a-z][a-z-]*): change that file"
_FORMAT = r"^(?:#|//) rendering format (\d+)(?:,|\r?$)"
_OPTIONS = r"^(?:#|//) options: (.+)$"
_TAKE_A_VALUE = frozenset({"--set", "--name", "--policy"})
_NO_LONGER = "--force"  # in headers of rendered files that were written before
_WORD = r'"(?:[^"\\]|\\.)*"|[^\s"]\S*'
_PLAIN_WORD = r"[\w./:=,+@%-]+"


class Header(NamedTuple):
    """What a rendered file says of its making. `line` is 1-based.

    `sets`, `name` and `policy`, as seen from its folder, are the options that changed the text. `forced`: `--force`
    was among them, which is no option any more.
    `relative_to_job` says that the text was made to be run in the job file's folder.
    """

    job_file: str
    target: str
    sets: tuple[str, ...]
    name: str | None
    forced: bool
    policy: str | None
    format: int
    relative_to_job: bool
    line: int


def named_job_file(text: str) -> str | None:
    """Return the job file that a rendered file, or its beginning, names; None where it has no header."""
    first = re.search(_FIRST_LINE, text, re.MULTILINE)
    return first[1] if first else None


def read_header(text: str) -> Header | None:
    """Return the header of a rendered file, or None where `text`, or its beginning, has none.

    Raises ValueError where the header was changed so that it can't be read, and where the text has several.
    """
    first = re.search(_FIRST_LINE, text, re.MULTILINE)
    if first is None:
        return None
    # The plain search first: a regular expression takes long to find nothing in a whole rendered file.
    if text.find(" Rendered by ", first.end()) >= 0 and re.compile(_FIRST_LINE, re.MULTILINE).search(text, first.end()):
        raise ValueError("it holds several rendered files; keep one in each")
    block = re.compile(r"(?:(?:#|//) .*\n)*").match(text, first.start())
    said = block.group() if block else ""
    version, line = re.search(_FORMAT, said, re.MULTILINE), re.search(_OPTIONS, said, re.MULTILINE)
    if version is None:
        raise ValueError("its header has no line `rendering format N`")
    options = _read_options(line[1]) if line else []
    return Header(
        job_file=first[1],
        target=first[2],
        sets=tuple(value for option, value in options if option == "--set"),
        name=next((value for option, value in options if option == "--name"), None),
        forced=(_NO_LONGER, "") in options,
        policy=next((value for option, value in options if option == "--policy"), None),
        format=int(version[1]),
        relative_to_job=f"# {_RELATIVE_TO_JOB}" in said,
        line=text.count("\n", 0, first.start()) + 1,
    )


def _read_options(line: str) -> list[tuple[str, str]]:
    """Return the pairs of option and value that a line of `_options` says; raises ValueError for another line."""
    import json

    if re.sub(_WORD, "", line).strip():
        raise ValueError("the options in its header have a quote that is never closed")
    words = iter(str(json.loads(each)) if each.startswith('"') else each for each in re.findall(_WORD, line))
    options = []
    for option in words:
        value = next(words, None) if option in _TAKE_A_VALUE else ""
        if value is None or option not in {*_TAKE_A_VALUE, _NO_LONGER}:
            raise ValueError(f"the options in its header end in {option!r}, which has no meaning there")
        options.append((option, value))
    return options


def _options(plan: LaunchPlan, base: Path | None) -> str:
    """Return the options that gave the text, on one line, or nothing; a word that is not plain is a JSON string."""
    policy = plan.job.policy.option if plan.job.policy else None
    if not plan.job.sets and not plan.name_fixed and policy is None:
        return ""
    import json

    words = [word for each in plan.job.sets for word in ("--set", each)]
    words += ["--name", plan.name] if plan.name_fixed else []
    words += ["--policy", _seen(policy, plan, base)] if policy else []
    return " ".join(each if re.fullmatch(_PLAIN_WORD, each, re.ASCII) else json.dumps(each) for each in words)


def _seen(policy: str, plan: LaunchPlan, base: Path | None) -> str:
    """Return a policy's path as seen from the folder that the text will lie in, else from the job file's."""
    fixed = plan.job.policy is not None and policy in plan.job.policy.fixed
    return policy if fixed else os.path.relpath(policy, base or Path(plan.job.path).parent)


def header_lines(plan: LaunchPlan, *, base: Path | None) -> tuple[str, ...]:
    """Return the comment's lines; `base` is the folder that the text will lie in, None where it is read from a pipe.

    No clock and no version of the tool, so that neither a second run nor a release changes a committed file; and no
    line of the job file, so that a comment there changes none either.
    """
    return (*_origin(plan, base), *_only_up(plan))


def _origin(plan: LaunchPlan, base: Path | None) -> Iterator[str]:
    job_file = Path(plan.job.path).name if base is None else os.path.relpath(plan.job.path, base)
    yield f"{HEADER_START[2:]}{job_file} for {plan.target}: change that file and render again."
    yield f"rendering format {RENDERING_FORMAT}"
    options = _options(plan, base)
    if options:
        yield f"options: {options}"
    if has_relative_bind(plan) and base is None:
        yield f"{_RELATIVE_TO_JOB} {job_file}: run this there."
    yield from _given(plan, base)
    from_lock = [each for each in ("image", "image_entrypoint") if plan.job.origin(each).kind == "lock"]
    if from_lock:
        lock = lock_path(Path(job_file)).name
        yield f"{' and '.join(from_lock)} from {lock}, which `trainlaunch lock` writes."
    filled = (
        each for each, origin in plan.job.origins.items() if each.startswith("data_loader.") and origin.kind == "lock"
    )
    if any(each != "data_loader.multiprocessing_context" for each in filled):  # which the image's Python may have given
        lock = lock_path(Path(job_file)).name
        yield f"What data_loader leaves open is from {lock}, as `trainlaunch probe` or `tune` measured it."
    if any(each.needs_server_side for each in code_maps(plan).values()):
        yield "The code is large: `kubectl apply` takes it with --server-side alone."
    if plan.job.image_entrypoint is None:
        yield "image_entrypoint is not set: an ENTRYPOINT that the image has is not run."


def _given(plan: LaunchPlan, base: Path | None) -> Iterator[str]:
    """Yield what policies gave to the job, a line for each file's defaults and profile."""
    fields: dict[tuple[str, str | None], list[str]] = {}
    for each in plan.job.policy.given if plan.job.policy else ():
        fields.setdefault((each.file, each.profile), []).append(each.field)
    for (file, profile), names in fields.items():
        what = "defaults" if profile is None else f"profile {profile}"
        yield f"{what} of {_seen(file, plan, base)}: {', '.join(names)}"


def _only_up(plan: LaunchPlan) -> Iterator[str]:
    """Yield what this target has no field for and `trainlaunch up` enforces."""
    job = plan.job
    kind = job.kind
    attempts, ttl = job.max_attempts, job.ttl_after_finished
    if attempts > 1 and (kind is None or not kind.retries):
        yield f"restart.max_attempts {attempts}: only `trainlaunch up` starts another attempt, this file runs one."
    if job.backoff is not None and kind is not None:
        yield f"restart.backoff {format_duration(job.backoff)} is not in effect: {kind.between_attempts}."
    if job.active_deadline is not None and kind is None and not plan.target_record.ends_at_deadline:
        yield f"active_deadline {format_duration(job.active_deadline)}: only `trainlaunch up` ends the job then."
    if job.healthcheck.stops and kind is None:
        yield "healthcheck.on_unhealthy stop: only `trainlaunch up` stops the job then, this file reports it."
    if ttl is not None and (kind is None or not kind.removed_after_ttl):
        yield f"ttl_after_finished {format_duration(ttl)}: the next `trainlaunch up` after that removes its run."
