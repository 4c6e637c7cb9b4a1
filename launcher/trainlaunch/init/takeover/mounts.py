"""What a container mounts, as the job's mounts and secrets."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from trainlaunch.formats.docker.placed_values import UNREAD
from trainlaunch.formats.quantities import is_shm
from trainlaunch.formats.workload import Known, MountPoint, Unknown
from trainlaunch.init.takeover.job_draft import JobDraft
from trainlaunch.job.reserved import SECRETS_FOLDER

_HERE = re.compile(r"""["']?(?:\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`|\$\{localWorkspaceFolder\}|\$CI_PROJECT_DIR)["']?""")
_HOME = re.compile(r"""["']?(?:\$HOME|\$\{HOME\}|~(?=/))["']?((?:/[\w./-]*)?)["']?""")
_WORKSPACE = re.compile(r"\$\{\{ *github\.workspace *\}\}")
_TAKEN = frozenset({"bind", "volume", "tmpfs", "scratch", "pvc", "config"})
_NO_SOURCE = frozenset({"tmpfs", "scratch"})
_HARMLESS = re.compile(
    r"(?:z|Z|rw|consistency=\w+|create_host_path|cached|delegated|by default|bind-propagation=rprivate)?"
)
_VARIABLE = re.compile(r"[A-Za-z_]\w*")


def take_mounts(draft: JobDraft, mounts: tuple[MountPoint, ...]) -> None:
    """Set mounts, and secrets for what stands where a job's secrets do; /dev/shm is shm_size's."""
    taken: list[dict[str, Any]] = []
    for mount in mounts:
        target = mount.target
        if isinstance(target, Known) and is_shm(target.value):
            continue
        if isinstance(target, Known) and _as_secret(draft, mount, target.value):
            continue
        made = _mount(draft, mount)
        if made is not None:
            taken.append(made)
    if taken:
        draft.set("mounts", taken)


def _as_secret(draft: JobDraft, mount: MountPoint, target: str) -> bool:
    """Return whether a mount is a secret as a file; add the secret where it is one."""
    folder, name = posixpath.split(target)
    source = mount.source
    if mount.type != "secret" and folder != SECRETS_FOLDER:
        return False
    if folder != SECRETS_FOLDER or not _VARIABLE.fullmatch(name) or not isinstance(source, Known) or mount.options:
        return False
    on_cluster = mount.type == "secret" and not draft.record.mounts_host_paths
    path = source.value if on_cluster else path_in_job(draft, source.value)
    draft.set(f"secrets.{name}", {"kubernetes" if on_cluster else "file": path, "as": "file"})
    return True


def _mount(draft: JobDraft, mount: MountPoint) -> dict[str, Any] | None:
    """Return a mount of a job, None for what has none."""
    if mount.type == UNREAD and isinstance(mount.source, Unknown):
        mount = mount._replace(type="bind")  # a path of the host, or a variable that holds one
    if isinstance(mount.target, Unknown):
        mount = mount._replace(target=known_here(draft, "mounts", mount.target))
    target, source = mount.target, mount.source
    place = target.span if target is not None else None
    where = target.value if isinstance(target, Known) else target.text if target else "somewhere"
    if (
        not isinstance(target, Known)
        or mount.type not in _TAKEN
        or (mount.type == "bind" and not draft.record.mounts_host_paths)
    ):
        _without(draft, mount, where)
        return None
    if mount.type == "config" and mount.options.startswith("items."):
        why = "a ConfigMap holds their content, and a job names the folder that they come from"
        fix = f"add {{type: code, source: FOLDER, target: {where}}} to mounts"
        draft.note(f"the folder of files at {where}", why, fix, place)
        return None
    path: str | None = None
    if mount.type not in _NO_SOURCE:
        path = _source(draft, mount)
        if path is None:
            shown = source.text if source is not None else "nothing"
            why = f"its source is {shown}, and only a shell or a template tells what that is"
            draft.note(
                f"the mount at {where}", why, f"add {{type: {mount.type}, source: …, target: {where}}} to mounts", place
            )
            return None
    _tell_options(draft, mount, where)
    made: dict[str, Any] = {"type": mount.type}
    if path is not None:
        made["source"] = path
    made["target"] = target.value
    if mount.read_only:
        made["read_only"] = True
    return made


def known_here(draft: JobDraft, field: str, value: Unknown) -> Known[str] | Unknown:
    """Return the path that $HOME or $PWD begins where this host's shell runs the text; else the value itself."""
    home, here = _HOME.fullmatch(value.text), _HERE.match(value.text)
    rest = value.text[here.end() :].strip("\"'") if here else ""
    if home is not None:
        path = str(Path.home()) + home[1].rstrip("/")
    elif here is not None and re.fullmatch(r"(?:/[\w./-]*)?", rest) and ".." not in rest:
        path = draft.here + rest
    else:
        return value
    draft.comment(field, f"{value.text} is taken for what it is on this host.")
    return Known(path, value.text, value.span)


def _tell_options(draft: JobDraft, mount: MountPoint, where: str) -> None:
    """Say which of a mount's options and sizes a job's mount does not have."""
    place = mount.target.span if mount.target is not None else None
    if not all(map(_HARMLESS.fullmatch, mount.options.split(","))):
        draft.note(
            f"{mount.options} of the mount at {where}",
            "mounts of a job have type, source, target and read_only",
            "check that the job works without it",
            place,
        )
    if mount.size is not None and mount.type in _NO_SOURCE:
        what = (
            "a tmpfs may take as much as the memory limit"
            if mount.type == "tmpfs"
            else "a scratch has no size of its own"
        )
        draft.note(
            f"the size of the {mount.type} at {where}",
            what,
            "resources.memory or resources.ephemeral_storage bounds it",
            place,
        )


def _without(draft: JobDraft, mount: MountPoint, where: str) -> None:
    place = mount.target.span if mount.target is not None else None
    if mount.type == "bind":
        why = "it is a folder of the node, and which node runs the job is the cluster's business"
        fix = f"put the data on a PVC, and add {{type: pvc, source: CLAIM, target: {where}}} to mounts"
    elif mount.type == "secret":
        why = "a job's secrets are single variables, or files below /run/secrets"
        fix = "write it as secrets: {NAME: {kubernetes: name/key, as: file}}, and read NAME_FILE"
    else:
        why = f"a job has no mounts of type {mount.type}"
        fix = "put what it brings into the image, or on a volume or PVC"
    draft.note(f"the {mount.type} mount at {where}", why, fix, place)


def _source(draft: JobDraft, mount: MountPoint) -> str | None:
    source = mount.source
    if isinstance(source, Known):
        if mount.type == "bind" and (source.value == "~" or source.value.startswith("~/")):
            draft.comment("mounts", "~ is taken for the home of whoever made this file.")
            return str(Path(source.value).expanduser())
        return path_in_job(draft, source.value) if mount.type == "bind" else source.value
    if source is None:
        return None
    home = _HOME.fullmatch(source.text)
    if home is not None:
        draft.comment("mounts", "$HOME is taken for the home of whoever made this file.")
        return str(Path.home()) + home[1].rstrip("/")
    here = _HERE.match(source.text) or _WORKSPACE.match(source.text)
    rest = source.text[here.end() :].strip("\"'") if here else "$"
    if re.search(r"[$`]|\.\.", rest) or (rest and not rest.startswith("/")):
        return None
    draft.comment("mounts", f"{here[0] if here else ''} is taken for the folder of {draft.file}.")
    return path_in_job(draft, f".{rest}")


def path_in_job(draft: JobDraft, path: str) -> str:
    """Return a path as the job file will name it."""
    if posixpath.isabs(path):
        return path
    found = os.path.normpath(f"{draft.folder}/{path}")
    return found if posixpath.isabs(found) or found.startswith(".") else f"./{found}"
