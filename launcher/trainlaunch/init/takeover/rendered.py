"""A rendered file of ours, converted back to the job: process without preflight, fields without what all get."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

from trainlaunch.container.container import VARIABLE as RENDEZVOUS
from trainlaunch.container.job_variables import VARIABLE as SHUTDOWN
from trainlaunch.container.job_variables import seconds_for_ranks as shutdown_seconds
from trainlaunch.container.preflight import SCRIPT_MARK
from trainlaunch.formats.workload import GpuRequest, Known, MountPoint, Workload, stated
from trainlaunch.init.takeover.container_fields import take_container
from trainlaunch.init.takeover.job_draft import JobDraft, flow, word
from trainlaunch.init.takeover.mounts import path_in_job
from trainlaunch.init.takeover.prologue import Wrapped, wrapped
from trainlaunch.job.reserved import CLUSTER_HOME, KUBERNETES_LABEL_PREFIX, LABEL_PREFIX, PLAN_VARIABLE, SECRETS_FOLDER
from trainlaunch.job.spec import secret_path
from trainlaunch.plan.instrumentation import DATA_WAIT
from trainlaunch.plan.plan_label import LABEL, Planned, planned_from
from trainlaunch.plan.ranks import SCRIPT_ARGV, SCRIPT_NAME
from trainlaunch.targets import TARGETS
from trainlaunch.units import format_duration, format_size, parse_duration

_SCRIPT_START = re.compile(r"trap 'set -- \$\?; wait; exit \$1' [A-Z0-9+ ]+; trap : [A-Z0-9 ]*\n")
_TORCHRUN = re.compile(r"--([a-z-]+)=(.*)", re.DOTALL)
_HEALTH = {"interval": 30, "timeout": 10, "retries": 3, "start_period": 30 * 60}
_OWN_LABELS = ("app.kubernetes.io/name", "app.kubernetes.io/managed-by", "app.kubernetes.io/instance")
_COMMENTS = {
    "healthcheck.start_period": re.compile(r"^ *# start_period (\w+) has no field", re.MULTILINE),
    "restart.max_attempts": re.compile(r"^(?:#|//) restart\.max_attempts (\d+):", re.MULTILINE),
    "restart.backoff": re.compile(r"^(?:#|//) restart\.backoff (\w+) is", re.MULTILINE),
    "active_deadline": re.compile(r"^(?:#|//) active_deadline (\w+):", re.MULTILINE),
    "healthcheck.on_unhealthy": re.compile(r"^ *# healthcheck\.on_unhealthy (\w+):", re.MULTILINE),
    "ttl_after_finished": re.compile(r"^(?:#|//) ttl_after_finished (\w+):", re.MULTILINE),
}
_STALL = re.compile(r"\btl_stall=(\d{1,9})\b", re.ASCII)  # in the prologue of the health check
_NO_ENTRYPOINT = re.compile(r"image_entrypoint is not (?:set|stated)")  # the latter in earlier rendered files


def is_rendered(workload: Workload) -> bool:
    """Return whether a container has our preflight in front of its command."""
    return wrapped(workload) is not None


def as_verified(workload: Workload, text: str, folder: Path, target: str) -> Workload | None:
    """Return a rendered file's container as `verify` reads it, its mounts as they stand there; None for any other.

    A reader of anybody's text takes `{{` for a template, `verify` nothing; secrets get their sources.
    """
    if SCRIPT_MARK not in text and "tl_ranks=" not in text:
        return None
    try:
        read: Workload = TARGETS[target].module("trainlaunch.verify").parse_rendering(text, folder)
    except (ValueError, KeyError, IndexError):  # a text that somebody added to
        read = workload
    found = read if is_rendered(read) else workload
    secrets = {name: _relative(source, text, folder) for name, source in found.secrets.items()}
    return found._replace(mounts=workload.mounts, secrets=secrets) if is_rendered(found) else None


def _relative(source: str, text: str, folder: Path) -> str:
    """Return a secret's source, a file as the text names it."""
    path = source.removeprefix("file ")
    return source if path == source or path in text else f"file {os.path.relpath(path, folder.absolute())}"


def take_rendered(draft: JobDraft, workload: Workload, plan: Wrapped, text: str) -> None:
    """Set what a rendered file's container says; what the plan itself adds is left out."""
    take_container(draft, _bare(draft, workload, plan))
    draft.set("name", word(plan.numbers.get("name", "")) or draft.fields["name"])
    draft.comments.pop("name", None)
    if draft.fields.get("pull_policy") == "missing":
        del draft.fields["pull_policy"]
    _take_process(draft, plan, text)
    _drop_variables(draft, plan)
    _take_secrets(draft, plan)
    if plan.numbers.get("saves"):
        draft.set("checkpoint_dir", plan.numbers["saves"])
    if plan.number("bytes"):
        draft.set("checkpoint_bytes", word(format_size(plan.number("bytes"))))
    for key, usual in _HEALTH.items():
        value = stated(workload.health_times.get(key))
        if value is not None and value != usual:
            draft.set(f"healthcheck.{key}", value if key == "retries" else word(format_duration(value)))
    before = _STALL.search(stated(workload.health) or "")  # a number; from format 3 on the script has its name alone
    longest = int(before[1]) if before else plan.number("stall")
    if longest:
        draft.set("healthcheck.stall_after", word(format_duration(longest)))
    if DATA_WAIT in plan.names("parts"):
        draft.set("observe", word("true"))
    for field, pattern in _COMMENTS.items():
        match = pattern.search(text)
        if match and match[1] != "30m":
            draft.set(field, word(match[1]))


def planned(workload: Workload) -> Planned:
    """Return what a rendered file's label or annotation says of its plan."""
    label = stated(workload.labels.get(LABEL_PREFIX + LABEL))
    found: object = label
    if found is None:  # of a pod
        ending = f"annotations.{KUBERNETES_LABEL_PREFIX}{LABEL}"
        found = next((value for key, value in workload.rest.items() if key.endswith(ending)), None)
    return planned_from(None if found is None else str(found), size=None)


def _bare(draft: JobDraft, workload: Workload, plan: Wrapped) -> Workload:
    """Return a container without the parts that every rendered file gets."""
    labels = {key: value for key, value in workload.labels.items() if key not in _OWN_LABELS}
    paths = {name: secret_path(name.removesuffix("_FILE")) for name in plan.names("paths")}
    own = {key for key, value in workload.env.items() if stated(value) == paths.get(key, 0)} | {PLAN_VARIABLE}
    env = {key: value for key, value in workload.env.items() if key not in own}
    gpus = workload.gpus
    if _nodes(plan) > 1 and isinstance(gpus, Known) and gpus.value.ids:
        gpus = Known(GpuRequest(len(gpus.value.ids)), gpus.text, gpus.span)
    return workload._replace(
        labels=labels,
        env=env,
        gpus=gpus,
        mounts=_mounts(draft, workload, plan),
        health=None,
    )


def _mounts(draft: JobDraft, workload: Workload, plan: Wrapped) -> tuple[MountPoint, ...]:
    """Return the job's own mounts; a text has those in memory first, and the preflight the order of all empty ones."""
    own = [
        each._replace(size=None)
        for each in workload.mounts
        if not _is_added(each, read_only=stated(workload.read_only) is True)
    ]
    in_memory = {stated(each.target): each for each in own if each.type == "tmpfs" and draft.record.mounts_host_paths}
    found = [each for each in own if each not in in_memory.values()]
    at = len(found)
    for target in reversed(shlex.split(plan.numbers.get("disks", ""))):
        if target in in_memory:
            found.insert(at, in_memory.pop(target))
        else:
            at = next((index for index, each in enumerate(found) if stated(each.target) == target), at)
    return (*in_memory.values(), *found)


def _is_added(mount: MountPoint, *, read_only: bool) -> bool:
    """Return whether a mount comes with every such job: a home, a /tmp, a folder for secrets."""
    target = stated(mount.target)
    if mount.type in ("tmpfs", "scratch") and target == SECRETS_FOLDER:
        return True
    if mount.type in ("tmpfs", "scratch") and target == "/tmp" and read_only:
        return True
    return mount.type == "scratch" and target == CLUSTER_HOME


def _nodes(plan: Wrapped) -> int:
    given = _options(plan.argv[:8])
    number = given.get("nnodes", "1")
    return int(number) if plan.argv[:1] == ("torchrun",) and number.isdigit() else 1


def _options(words: tuple[str, ...]) -> dict[str, str]:
    """Return torchrun's own arguments."""
    return {match[1]: match[2] for word_ in words if (match := _TORCHRUN.fullmatch(word_))}


def _take_process(draft: JobDraft, plan: Wrapped, text: str) -> None:
    argv = _without_torchrun(draft, plan)
    if argv[:3] == SCRIPT_ARGV and argv[4:] == (SCRIPT_NAME,) and _SCRIPT_START.match(argv[3]):
        draft.set("script", _SCRIPT_START.sub("", argv[3], count=1))
    else:
        draft.set("command", flow(argv))
    if plan.entrypoint or not _NO_ENTRYPOINT.search(text):
        draft.set("image_entrypoint", flow(plan.entrypoint))
    if "torchrun" not in draft.fields:
        draft.set("ranks_per_container", plan.number("ranks"))


def _without_torchrun(draft: JobDraft, plan: Wrapped) -> tuple[str, ...]:
    """Return the job's own argv, with the block `torchrun` for what a plan puts in front of it."""
    argv = plan.argv
    if (
        argv[:1] != ("torchrun",)
        or "--no-python" not in argv[:9]
        or not any(each.startswith("--rdzv-id=") for each in argv[:9])
    ):
        return argv
    end = argv.index("--no-python")
    given = _options(argv[1:end])
    block: dict[str, Any] = {"nproc_per_node": plan.number("ranks")}
    if given.get("nnodes", "1") != "1":
        block["nnodes"] = word(given["nnodes"])
    if given.get("rdzv-backend") != "c10d":
        block["rdzv_backend"] = word(given.get("rdzv-backend", "c10d"))
    if given.get("max-restarts", "0") != "0":
        block["max_restarts"] = word(given["max-restarts"])
    port = given.get("rdzv-endpoint", "").rpartition(":")[2]
    meeting = draft.fields.get("env", {}).get(RENDEZVOUS, "").rpartition(":")[2]
    if port not in ("", "0"):
        block["rdzv_port"] = word(port)
    elif meeting not in ("", "29500"):
        block["rdzv_port"] = word(meeting)
    draft.set("torchrun", block)
    return argv[end + 1 :]


def _drop_variables(draft: JobDraft, plan: Wrapped) -> None:
    """Take out the variables that tell torchrun what the plan knows."""
    env, grace = draft.fields.get("env", {}), str(draft.fields.get("stop_grace_period", "30s"))
    if env.get(SHUTDOWN) == str(shutdown_seconds(parse_duration(grace))):
        del env[SHUTDOWN]
    if _nodes(plan) > 1 and env.get(RENDEZVOUS, "").startswith(plan.numbers.get("name", "")[:1]):
        del env[RENDEZVOUS]


def _take_secrets(draft: JobDraft, plan: Wrapped) -> None:
    """Say of each secret how the job sees it: a file that the preflight writes, a variable that it reads."""
    secrets = draft.fields.get("secrets", {})
    for name in plan.names("written"):
        if name in secrets:
            secrets[name]["as"] = word("file")
    for name in plan.names("read"):
        if name in secrets:
            secrets[name].pop("as", None)
    for name, secret in secrets.items():
        source = str(secret.get("env", ""))
        if source.startswith("file "):
            secret.pop("env")
            secrets[name] = {"file": path_in_job(draft, source.removeprefix("file ")), **secret}
