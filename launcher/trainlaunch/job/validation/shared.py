"""Checks that all targets share, each with what the target holds in the place of what it can't."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX, LABEL_PREFIX
from trainlaunch.job.validation.fields import Checked, cannot
from trainlaunch.job.values.scalars import BAD

ENGINE_SOURCES = "add env: {name} to {field}, or file: with a path"


def check_shared(
    job: Checked, *, instead: Mapping[str, str] = {}, why: str = "", source_fix: str = ENGINE_SOURCES
) -> None:
    """Report mounts, secrets and labels that the target can't hold.

    `instead` are the types of mounts that it doesn't have, each with the one to write, and `why` says why. `source_fix`
    gives a secret a source that the target reads, where {name} is the secret's and {field} its field.
    """
    _check_mount_types(job, instead, why)
    _check_reserved_labels(job)
    if job.value("checkpoint_dir") is not None or job.value("checkpoint_bytes") is not None:
        from trainlaunch.job.validation.checkpoints import check_checkpoints  # few jobs have some

        check_checkpoints(job)
    if job.value("secrets"):
        from trainlaunch.job.validation.secrets import check_secrets  # many jobs have none

        check_secrets(job, source_fix)


def nodes_of(job: Checked) -> int:
    """Return how many containers the job asks for; 1 where that is unstated or can't be read."""
    return int(job.value("torchrun.nnodes") or 1)


def check_one_node(job: Checked) -> None:
    """Report several nodes on a target that has one."""
    nodes = nodes_of(job)
    if nodes > 1:
        what = f"second node (torchrun.nnodes: {nodes})"
        fix = f"take --target compose, which starts {nodes} containers on one network, or write 1 for {job.target}"
        cannot(job, "torchrun.nnodes", what, why=job.target_record.one_node, fix=fix)


def _check_mount_types(job: Checked, instead: Mapping[str, str], why: str) -> None:
    mounts = [each for each in job.value("mounts") or () if each is not BAD and BAD not in each.values()]
    for index, mount in enumerate(job.value("mounts") or ()):
        if mount not in mounts or mount.get("type") not in instead:
            continue
        cannot(
            job,
            f"mounts.{index}",
            f"{mount['type']} mounts, and mounts.{index} asks for one at {mount.get('target')}",
            why=why,
            fix=f"write target_overrides.{job.target}.mounts: {_mounts_instead(instead, mounts)}",
        )


def _mounts_instead(instead: Mapping[str, str], mounts: list[Mapping[str, Any]]) -> str:
    """Return all mounts as the target can hold them; lists replace, so the whole list is what to type."""
    written = []
    for mount in mounts:
        kind = instead.get(mount.get("type", ""), mount.get("type"))
        parts = [f"type: {kind}"]
        if kind not in {"tmpfs", "scratch"}:
            parts.append(f"source: {_source_instead(kind, mount)}")
        parts.append(f"target: {mount.get('target')}")
        if mount.get("read_only"):
            parts.append("read_only: true")
        written.append(f"{{{', '.join(parts)}}}")
    return f"[{', '.join(written)}]"


def _source_instead(kind: str | None, mount: Mapping[str, Any]) -> str:
    source = str(mount.get("source") or mount.get("target"))
    if kind == mount.get("type"):
        return source
    base = re.sub(r"[^a-z0-9]+", "-", posixpath.basename(posixpath.normpath(source)).lower()).strip("-") or "data"
    return f"./{base}" if kind == "bind" else base


def _check_reserved_labels(job: Checked) -> None:
    for key in job.value("labels") or {}:
        if key.startswith((LABEL_PREFIX, KUBERNETES_LABEL_PREFIX)):
            what = f"second place for {key}, which trainlaunch itself writes"
            cannot(job, f"labels.{key}", what, fix="choose another prefix for the label")
