"""Checks secrets: one source that the target can read, and a place of their own for those that are files."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from trainlaunch.job.host_paths import is_mapped, names
from trainlaunch.job.reserved import SECRETS_FOLDER
from trainlaunch.job.spec import path_variable, secret_path
from trainlaunch.job.validation.fields import Checked, cannot
from trainlaunch.job.values.scalars import BAD


def check_secrets(job: Checked, fix: str) -> None:
    """Report each secret without a source, with two, or whose file something else takes the place of.

    `fix` gives one a source that the target reads.
    """
    for name, secret in (job.value("secrets") or {}).items():
        if secret is BAD:
            continue
        _check_sources(job, name, secret, fix)
        if secret.get("as") == "file":
            _check_variable(job, name)
            if job.target_record.starts_container:
                _check_mounts(job, name)
            else:
                _check_local_paths(job, name, secret)


def _check_sources(job: Checked, name: str, secret: Mapping[str, Any], fix: str) -> None:
    field = f"secrets.{name}"
    if "env" in secret and "file" in secret:
        one = f"delete {field}.env or {field}.file; in target_overrides write null"
        job.add("TL109", f"{field}.file", f"{field} states env and file", fix=one, why="a secret has one source")
    path = secret.get("file")
    if isinstance(path, str) and (path == "" or path.startswith("~")):
        whole = "write the whole path, or one relative to the job file"
        why = "the shell expands ~, and no shell reads this file" if path else ""
        found = "starts with ~" if path else "is empty"
        job.add("TL107", f"{field}.file", f"{field}.file {found}", fix=whole, why=why)
    if not {*job.target_record.secret_sources} & set(secret):
        typed = fix.format(name=name, field=field, key=name.lower().replace("_", "-"))
        cannot(job, field, f"source for {field}", fix=typed)


def _check_variable(job: Checked, name: str) -> None:
    """Report who else states the variable that holds the path."""
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


def _check_mounts(job: Checked, name: str) -> None:
    """Report a mount that would hide the secret, or be hidden by it."""
    own = secret_path(name)
    for index, mount in enumerate(job.value("mounts") or ()):
        target = BAD if mount is BAD else mount.get("target", BAD)
        if target is BAD:
            continue
        place = posixpath.normpath(target).replace("//", "/")
        if place.startswith("/var/run/"):
            place = place.removeprefix("/var")  # a link to /run in most images
        if place in {SECRETS_FOLDER, own} or place.startswith(f"{own}/"):
            job.add(
                "TL109",
                f"mounts.{index}.target",
                f"mounts.{index} is at {place}, and secrets.{name} is the file {own}",
                fix="choose another target for the mount",
            )


def _check_local_paths(job: Checked, name: str, secret: Mapping[str, Any]) -> None:
    """Report a text that names the path which only a container has; an argument can be mapped to a file's own path."""
    own = secret_path(name)
    texts = [(f"command.{at}", each) for at, each in enumerate(job.value("command") or ()) if isinstance(each, str)]
    if "file" in secret:
        texts = [(field, each) for field, each in texts if not is_mapped(each, own)]
    texts.append(("script", str(job.value("script") or "")))
    texts += [(f"env.{key}", str(value)) for key, value in (job.value("env") or {}).items()]
    for field, text in texts:
        if names(text, own):
            cannot(
                job,
                field,
                f"{own}, and {field} names it",
                fix=f"read the path from the variable {path_variable(name)}, which is right on every target",
                why="a process of this host sees the host's own paths; nothing is mounted for it",
            )
