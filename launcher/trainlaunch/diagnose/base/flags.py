"""What to type where there is no job file: its fields, as the flags of an engine, or the words of a pod.

A symptom writes its way out in fields. A log from elsewhere has none, so they are put into what started it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from trainlaunch.diagnose.base.case import Diagnosis
from trainlaunch.targets import KUBERNETES

_SIZE = r"(\d[\w.]{0,20})"
_UNITS = {"Ki": "k", "Mi": "m", "Gi": "g", "Ti": "t"}
_PAIR = re.compile(r"([A-Z]\w{0,60}): (?:'([^']{0,200})'|\"([^\"]{0,200})\"|([^,}'\"]{1,200}))")
Told = str | Callable[[re.Match[str]], str]


def _flag(name: str) -> Callable[[re.Match[str]], str]:
    def told(match: re.Match[str]) -> str:
        size = match[1]
        return f"start the container with `{name}={size[:-2]}{_UNITS[size[-2:]]}`" if size[-2:] in _UNITS else name

    return told


def _both(match: re.Match[str]) -> str:
    shm, memory = (f"{each[:-2]}{_UNITS.get(each[-2:], each[-2:])}" for each in (match[1], match[2]))
    return f"start the container with `--shm-size={shm}` and at least `--memory={memory}`"


def _environment(match: re.Match[str]) -> str:
    pairs = _PAIR.findall(match[1])
    return "set " + " ".join(f"{name}={(one or two or bare).strip()}" for name, one, two, bare in pairs)


def _compiled(*table: tuple[str, Told]) -> tuple[tuple[re.Pattern[str], Told], ...]:
    return tuple((re.compile(pattern), told) for pattern, told in table)


# Patterns and what they become, the longer before those that they contain.
_ANYWHERE = _compiled(
    (r", or (?:correct|set) data_loader\.sample so that trainlaunch computes it", ""),
    (r", or set what the planned [^;(]{0,300}\([^;(]{0,60}\)[^;(]{0,120}\(docs/frameworks\.md\)", ""),
    (r"set env: \{([^{}]{0,400})\}", _environment),
    (r"\{((?:[A-Z_]{2,40}: '?\w{1,20}'?(?:, )?){1,3})\}", lambda match: _environment(match).removeprefix("set ")),
    (r"set data_loader\.num_workers to (\d{1,6}) or to auto", r"set num_workers to \1"),
    (r"data_loader\.(num_workers|pin_memory|timeout|multiprocessing_context) (\w{1,20})", r"\1=\2"),
    (r"use data_loader\.sharing_strategy file_descriptor", "use set_sharing_strategy('file_descriptor')"),
    (r"data_loader\.", "DataLoader's "),
    (r"\(the torchrun block, or (`[^`]{1,80}`)\)", r"(\1)"),
    (r"set torchrun\.rdzv_port to a free port", "take a free port"),
    (r"let torchrun\.nproc_per_node be the number of GPUs \(or write \{nproc_per_node\} in command\)",
     "let `--nproc-per-node` be the number of GPUs"),
    (r"with higher? kubernetes\.priority_class where you may use one", "with a higher priority where you may use one"),
    (r", with a higher kubernetes\.priority_class where you may use one", ""),
    (
        r"; restart\.max_attempts does it by itself(?:, and of several nodes kubernetes\.kind jobset starts all again)?"
        r"|, or set restart\.max_attempts to \d{1,3}",
        "",
    ),
    (r"kubernetes\.image_pull_secrets", "imagePullSecrets"),
    (r"start it again with `trainlaunch up` when it should go on", "start it again when it should go on"),
    (r"raise active_deadline: it counts", "raise the time limit (`#SBATCH --time`, activeDeadlineSeconds): it counts"),
    (r"raise stop_grace_period", "raise the grace period"),
    (r"check mounts and working_dir", "check what is mounted and the working directory"),
    (r"that one of mounts brings", "that a mount brings"),
    (r", and working_dir for a relative path", "; a relative path counts from the working directory"),
    (r"counts from working_dir", "counts from the working directory"),
    (r"or correct its name in the job file|or correct the job file", "or correct its name"),
    (r"correct image in the job file", "correct the image's name"),
    (r"first word of command", "first word of the command"),
    (r"arguments of command", "arguments of the command"),
)  # fmt: skip
_ENGINE = _compiled(
    (rf"set shm_size to {_SIZE} and resources\.memory to at least {_SIZE}", _both),
    (rf"set shm_size to {_SIZE}", _flag("--shm-size")),
    (rf"set resources\.memory to {_SIZE}", _flag("--memory")),
    (r"a larger shm_size alone", "a larger --shm-size alone"),
    (r"set resources\.memory, or lower", "raise or leave out the container's `--memory`, or lower"),
    (r"set ulimits: \{nofile: (\d{1,9})\}", r"start the container with `--ulimit nofile=\1:\1`"),
    (r"set ulimits: \{memlock: -1\}", "start the container with `--ulimit memlock=-1`"),
    (r"add `\{type: tmpfs, target: /tmp\}` to mounts", "start the container with `--tmpfs /tmp`"),
    (r"give shm_size, not ipc host", "give `--shm-size`, not `--ipc=host`"),
    (r"give shm_size and no ipc none|delete ipc none, and give shm_size", "give `--shm-size` and no `--ipc=none`"),
    (r"delete ipc host and keep shm_size", "leave out `--ipc=host` and keep `--shm-size`"),
    (r"give shm_size in the place of ipc host", "give `--shm-size` in the place of `--ipc=host`"),
    (r"with shm_size, without (?:ipc host|joining)",
     lambda match: match[0].replace("shm_size", "`--shm-size`").replace("ipc host", "`--ipc=host`")),
    (r"or make /dev/shm a tenth larger than it: shm_extra: \[\{name: ray, size: [^}]{1,20}\}\]",
     "or `--shm-size` a tenth larger than it"),
    (r"or name it in shm_extra with its size, so that /dev/shm holds it", "or give a `--shm-size` that holds it"),
    (r"set resources\.ephemeral_storage to", "raise limits.ephemeral-storage to"),
    (r"set user to its owner", "give `--user` its owner"),
    (r"set pull_policy to missing", "let it be pulled"),
    (r"\bresources\.gpus; ", ""),
    (r"\bresources\.(gpus|cpus|memory)", r"`--\1`"),
    (r"(?<!-)\bshm_size\b", "`--shm-size`"),
)  # fmt: skip
_POD = _compiled(
    (rf"set shm_size to {_SIZE} and resources\.memory to at least {_SIZE}",
     r"mount an emptyDir with medium: Memory and sizeLimit: \1 at /dev/shm, and set limits.memory to at least \2"),
    (rf"set shm_size to {_SIZE}", r"mount an emptyDir with medium: Memory and sizeLimit: \1 at /dev/shm"),
    (r"a larger shm_size alone", "a larger sizeLimit alone"),
    (r"give shm_size and no ipc none|delete ipc none, and give shm_size",
     "mount an emptyDir (medium: Memory) at /dev/shm"),
    (r"\bresources\.(?:gpus; )", "limits nvidia.com/gpu; "),
    (r"\bresources\.gpus", "limits nvidia.com/gpu"),
    (r"\bresources\.ephemeral_storage", "limits.ephemeral-storage"),
    (r"\bresources\.(memory|cpus?)s?", r"limits.\1"),
    (r"set user to its owner", "set runAsUser to its owner"),
    (r"add `\{type: tmpfs, target: /tmp\}` to mounts", "mount an emptyDir at /tmp"),
    (r"set pull_policy to missing", "set imagePullPolicy to IfNotPresent"),
    (r"or make /dev/shm a tenth larger than it: shm_extra: \[\{name: ray, size: [^}]{1,20}\}\]",
     "or the sizeLimit at /dev/shm a tenth larger than it"),
    (r"or name it in shm_extra with its size, so that /dev/shm holds it", "or give a sizeLimit that holds it"),
    (r"\bshm_size\b", "an emptyDir (medium: Memory) at /dev/shm"),
)  # fmt: skip


_RUN = _compiled(
    (rf"set shm_size to {_SIZE} and resources\.memory to at least {_SIZE}", r"add `--set shm_size=\1 --memory \2`"),
    (rf"set shm_size to {_SIZE}", r"add `--set shm_size=\1`"),
    (rf"set resources\.memory to {_SIZE}", r"add `--memory \1`"),
    (r"set resources\.memory, or lower", "raise `--memory`, or lower"),
    (r"set ulimits: (\{\w{1,10}: -?\d{1,9}\})", r"add `--set 'ulimits=\1'`"),
    (r"add `\{type: tmpfs, target: /tmp\}` to mounts", "add `-e TMPDIR=/dev/shm`"),
    (r"shm_extra: (\[\{name: ray, size: [^}]{1,20}\}\])", r"`--set 'shm_extra=\1'`"),
    (r"or name it in shm_extra with its size, so that /dev/shm holds it", "or give a shm_size that holds it"),
    (r"set user to its owner, or ", ""),  # a command has its caller's user
    (r"\(secrets, or `docker run (-e \w{1,40})`\)", r"(`\1`)"),
    (r"a larger shm_size alone", "a larger /dev/shm alone"),
    (r"\bresources\.(gpus|cpus|memory)", r"`--\1`"),
    (r"(?<!--set )\bshm_size\b", "`--set shm_size=SIZE`"),
)  # fmt: skip


def without_fields(diagnosis: Diagnosis, target: str, *, by_run: bool = False) -> Diagnosis:
    """Return a diagnosis whose way out names no field of a job file; `by_run`: it names options of `run`."""
    table = _RUN if by_run else _POD if target == KUBERNETES.name else _ENGINE
    return replace(diagnosis, fix=_by(table, diagnosis.fix))


def as_options(fix: str) -> str:
    """Return a way out in fields with options of `run` in their place."""
    return _by(_RUN, fix)


def _by(table: tuple[tuple[re.Pattern[str], Told], ...], fix: str) -> str:
    for pattern, told in (*_ANYWHERE, *table):
        fix = pattern.sub(told, fix)
    return fix
