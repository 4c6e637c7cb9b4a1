"""Checks that all targets share: mounts, secrets, labels, and that what one attempt saves is there for the next."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Any

from trainlaunch.job.host_paths import is_mapped, names, normal_place
from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX, LABEL_PREFIX, SECRETS_FOLDER
from trainlaunch.job.spec import path_variable, secret_path
from trainlaunch.job.validation.context import ValidationContext, cannot
from trainlaunch.job.values.scalar_reader import BAD

ENGINE_SOURCES = "add env: {name} to {field}, or file: with a path"

VARIABLE = "TRAINLAUNCH_CHECKPOINT_DIR"
_LASTING = ("bind", "volume", "pvc")


def check_shared(
    job: ValidationContext, *, instead: Mapping[str, str] = {}, why: str = "", source_fix: str = ENGINE_SOURCES
) -> None:
    """Report mounts, secrets and labels that the target can't hold.

    `instead` are the types of mounts that it doesn't have, each with the one to write, and `why` says why. `source_fix`
    gives a secret a source that the target reads, where {name} is the secret's and {field} its field.
    """
    _check_mount_types(job, instead, why)
    _check_reserved_labels(job)
    if job.value("checkpoint_dir") is not None or job.value("checkpoint_bytes") is not None:
        check_checkpoints(job)
    if job.value("secrets"):
        check_secrets(job, source_fix)


def nodes_of(job: ValidationContext) -> int:
    """Return how many containers the job asks for; 1 where that isn't set or can't be read."""
    return int(job.value("torchrun.nnodes") or 1)


def check_one_node(job: ValidationContext) -> None:
    """Report several nodes on a target that has one."""
    nodes = nodes_of(job)
    if nodes > 1:
        cannot(
            job,
            "torchrun.nnodes",
            f"second node (torchrun.nnodes: {nodes})",
            why=job.target_record.multi_node_unsupported,
            fix=f"take --target compose, which starts {nodes} containers on one network, or write 1 for {job.target}",
        )


def _check_mount_types(job: ValidationContext, instead: Mapping[str, str], why: str) -> None:
    mounts = job.mounts()
    for field, mount in mounts:
        if mount.get("type") in instead:
            cannot(
                job,
                field,
                f"{mount['type']} mounts, and {field} asks for one at {mount.get('target')}",
                why=why,
                fix=f"write target_overrides.{job.target}.mounts: {_mounts_instead(instead, dict(mounts).values())}",
            )


def _mounts_instead(instead: Mapping[str, str], mounts: Iterable[Mapping[str, Any]]) -> str:
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


def _check_reserved_labels(job: ValidationContext) -> None:
    for key in job.value("labels") or {}:
        if key.startswith((LABEL_PREFIX, KUBERNETES_LABEL_PREFIX)):
            cannot(
                job,
                f"labels.{key}",
                f"second place for {key}, which trainlaunch itself writes",
                fix="choose another prefix for the label",
            )


def check_checkpoints(job: ValidationContext) -> None:
    """Report a checkpoint_dir that is on no mount, or on one that doesn't outlive an attempt or can't be written."""
    folder = job.value("checkpoint_dir")
    if folder is None:
        if job.value("checkpoint_bytes") is not None:
            job.add(
                "TL106",
                "checkpoint_bytes",
                "checkpoint_dir is missing, and checkpoint_bytes is set",
                fix="add checkpoint_dir: with the folder that they are written to, or delete checkpoint_bytes",
            )
        return
    for place in ("env", "secrets"):
        if VARIABLE in (job.value(place) or {}):
            job.add(
                "TL109",
                f"{place}.{VARIABLE}",
                f"{VARIABLE} is the variable of checkpoint_dir",
                fix=f"delete {place}.{VARIABLE}",
            )
    _check_mount(job, posixpath.normpath(folder))


def _check_mount(job: ValidationContext, folder: str) -> None:
    around = _around(job, folder)
    why = "an attempt starts in a new container, and what the one before wrote elsewhere is gone with it"
    fix = f"mount a bind, volume or pvc at {folder}, or at a folder above it"
    if around is None:
        job.add("TL109", "checkpoint_dir", f"checkpoint_dir {folder} is below no mount", fix=fix, why=why)
        return
    kind, target = around.get("type"), around.get("target")
    if kind not in _LASTING:
        job.add(
            "TL109",
            "checkpoint_dir",
            f"checkpoint_dir {folder} is below the {kind} mount at {target}, which no other attempt sees",
            fix=fix,
            why=why,
        )
    elif around.get("read_only") is True:
        job.add(
            "TL109",
            "checkpoint_dir",
            f"checkpoint_dir {folder} is below the mount at {target}, which is read-only",
            fix=f"delete read_only there, or {fix}",
        )


def _around(job: ValidationContext, folder: str) -> Mapping[str, Any] | None:
    """Return the innermost mount at or above a folder; None where there is none."""
    found: Mapping[str, Any] | None = None
    for _, mount in job.mounts():
        if not mount.get("target"):
            continue
        target = posixpath.normpath(mount["target"])
        inner = found is None or len(target) > len(posixpath.normpath(found["target"]))
        if inner and (folder == target or folder.startswith(target.rstrip("/") + "/")):
            found = mount
    return found


def check_secrets(job: ValidationContext, fix: str) -> None:
    """Report each secret without a source, with two, or whose file something else takes the place of.

    `fix` gives one a source that the target reads.
    """
    for field, secret in job.entries("secrets"):
        name = field.partition(".")[2]
        _check_sources(job, name, secret, fix)
        if secret.get("as") == "file":
            _check_variable(job, name)
            if job.target_record.starts_container:
                _check_mounts(job, name)
            else:
                _check_local_paths(job, name, secret)


def _check_sources(job: ValidationContext, name: str, secret: Mapping[str, Any], fix: str) -> None:
    field = f"secrets.{name}"
    if "env" in secret and "file" in secret:
        job.add(
            "TL109",
            f"{field}.file",
            f"{field} sets env and file",
            fix=f"delete {field}.env or {field}.file; in target_overrides write null",
            why="a secret has one source",
        )
    path = secret.get("file")
    if isinstance(path, str) and (path == "" or path.startswith("~")):
        found = "starts with ~" if path else "is empty"
        job.add(
            "TL107",
            f"{field}.file",
            f"{field}.file {found}",
            fix="write the whole path, or one relative to the job file",
            why="the shell expands ~, and no shell reads this file" if path else "",
        )
    if not {*job.target_record.secret_sources} & set(secret):
        typed = fix.format(name=name, field=field, key=name.lower().replace("_", "-"))
        cannot(job, field, f"source for {field}", fix=typed)


def _check_variable(job: ValidationContext, name: str) -> None:
    """Report who else sets the variable that holds the path."""
    variable = path_variable(name)
    for place in ("env", "secrets"):
        if variable in (job.value(place) or {}):
            job.add(
                "TL109",
                f"secrets.{name}",
                f"{variable} is in {place}, and it is the variable of secrets.{name}",
                fix=f"delete {place}.{variable}, or write as: env for secrets.{name}",
                why="a secret as a file has its path in the variable of its name and _FILE",
            )


def _check_mounts(job: ValidationContext, name: str) -> None:
    """Report a mount that would hide the secret, or be hidden by it."""
    own = secret_path(name)
    for field, mount in job.entries("mounts"):
        if mount.get("target", BAD) is BAD:
            continue
        place = normal_place(mount["target"])
        if place.startswith("/var/run/"):
            place = place.removeprefix("/var")  # a link to /run in most images
        if place in {SECRETS_FOLDER, own} or place.startswith(f"{own}/"):
            job.add(
                "TL109",
                f"{field}.target",
                f"{field} is at {place}, and secrets.{name} is the file {own}",
                fix="choose another target for the mount",
            )


def _check_local_paths(job: ValidationContext, name: str, secret: Mapping[str, Any]) -> None:
    """Report a text that names the path which only a container has; an argument can be mapped to a file's own path."""
    own = secret_path(name)
    texts = [(field, each) for field, each in job.arguments() if not ("file" in secret and is_mapped(each, own))]
    for field, text in (*texts, ("script", str(job.value("script") or "")), *job.entries("env")):
        if names(text, own):
            cannot(
                job,
                field,
                f"{own}, and {field} names it",
                fix=f"read the path from the variable {path_variable(name)}, which is right on every target",
                why="a process of this host sees the host's own paths; nothing is mounted for it",
            )
