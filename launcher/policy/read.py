"""Reads a job file with its policy's defaults beneath it and the policy's demands beside it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.diagnostics import Report, Span
from launcher.job import read
from launcher.job.spec import JobSpec
from launcher.policy.search import find_policy
from launcher.yamltree.source import MappingNode

if TYPE_CHECKING:
    from launcher.policy.file import PolicyFile


def read_job(
    path: Path,
    *,
    target: str | None = None,
    sets: Sequence[str] = (),
    use_lock: bool = True,
    policy: Path | None = None,
) -> JobSpec:
    """Return the job of a file as `launcher.job.read.read_job` does, under its policy.

    That is `policy`, or with None the one that the job names, or the nearest upward. Raises JobFileRejected.
    """
    layer_of = functools.partial(_policy, policy)
    return read.read_job(path, target=target, sets=sets, use_lock=use_lock, layer_of=layer_of)


def stated_images(path: Path, *, policy: Path | None = None) -> dict[str, Span]:
    """Return the images that a job file or its policy names, for all targets, each with its place.

    Raises JobFileRejected where the file is no job for its own target.
    """
    return read.stated_images(path, layer_of=functools.partial(_policy, policy))


def _policy(asked: Path | None, path: Path, base: MappingNode, report: Report) -> PolicyFile | None:
    """Return the policy of a job; what is wrong with it is put in `report`."""
    before = len(report)
    if asked is None and "policy" not in base.items and find_policy(path, report) is None and len(report) == before:
        return None
    from launcher.policy.file import policy_of  # most jobs have none

    return policy_of(path, base, asked, report)
