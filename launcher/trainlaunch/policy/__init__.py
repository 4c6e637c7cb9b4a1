"""A job file under its policies: finds them, and lays their defaults beneath it and their demands beside it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainlaunch.diagnostics import Report, Span
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.ceilings import Policy
from trainlaunch.job.reading import job_reader
from trainlaunch.job.spec import JobSpec
from trainlaunch.policy.find_policies import find_policies
from trainlaunch.repository.root import ITS_OWN, Reach
from trainlaunch.yamltree.strict import MappingNode

if TYPE_CHECKING:
    from trainlaunch.policy.policy_precedence import PolicyLayer
    from trainlaunch.policy.stated_place import StatedPlace


def read_job(
    path: Path,
    *,
    target: str | None = None,
    sets: Sequence[str] = (),
    use_lock: bool = True,
    policy: Path | None = None,
    lying_at: Path | None = None,
    reach: Reach = ITS_OWN,
) -> JobSpec:
    """Return the job of a file as `trainlaunch.job.reading.job_reader.read_job` does, under its policies.

    They are `policy` alone, or with None the one that the job names and all those upward from `lying_at`, which is
    `path` where it is None. `reach` says what may be read outside of its repository. Raises JobFileRejected.
    """
    layer_of = functools.partial(_policies, policy, lying_at, reach)
    return job_reader.read_job(path, target=target, sets=sets, use_lock=use_lock, layer_of=layer_of, reach=reach)


def place_of_runs(
    path: Path, *, target: str | None = None, policy: Path | None = None, reach: Reach = ITS_OWN
) -> StatedPlace:
    """Return where the runs of a job file are that has an error by now, as far as it and its policies still say it."""
    from trainlaunch.policy.stated_place import stated_place  # few files have one

    return stated_place(path, target=target, layer_of=functools.partial(_policies, policy, None, reach), reach=reach)


def policies_in(folder: Path, *, policy: Path | None = None, reach: Reach = ITS_OWN) -> Policy | None:
    """Return what the policies in force ask of jobs in a folder, or `policy` alone where it is named; None: nothing.

    Raises JobFileRejected with what is wrong with them.
    """
    report = Report()
    nothing = MappingNode({}, Span(str(folder), 1, 1, 1, 1))
    layer = _policies(policy, None, reach, folder / "job.yaml", nothing, report)
    if len(report):
        raise JobFileRejected(report.sorted())
    return layer.asked if layer else None


def rendered_targets(
    path: Path, *, sets: Sequence[str] = (), policy: Path | None = None, reach: Reach = ITS_OWN
) -> tuple[str, ...]:
    """Return what a job file is rendered for among many: what its policies say, else its own target.

    Raises JobFileRejected where it or a policy can't be read.
    """
    layer_of = functools.partial(_policies, policy, None, reach)
    target, asked = job_reader.stated_target(path, sets=sets, layer_of=layer_of, reach=reach)
    return (asked.render_targets if asked else ()) or (target,)


def stated_images(path: Path, *, policy: Path | None = None, reach: Reach = ITS_OWN) -> dict[str, Span]:
    """Return the images that a job file or its policy names, for all targets, each with its place.

    Raises JobFileRejected where the file is no job for its own target.
    """
    return job_reader.stated_images(path, layer_of=functools.partial(_policies, policy, None, reach), reach=reach)


def _policies(
    asked: Path | None, lying_at: Path | None, reach: Reach, path: Path, base: MappingNode, report: Report
) -> PolicyLayer | None:
    """Return the policies of a job; what is wrong with them is put in `report`."""
    path = lying_at or path
    found = find_policies(path, report if asked is None else Report(), reach)
    if asked is None and "policy" not in base.items and not found:
        return None
    from trainlaunch.policy.policy_precedence import policies_of  # most jobs have none

    return policies_of(path, base, asked, found, reach, report)
