"""Flags of `docker run` and keys of a Compose service that no field of a job has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainlaunch.diagnostics import Span
from trainlaunch.formats.compose.values import plain
from trainlaunch.formats.docker.table import FLAGS
from trainlaunch.formats.workload import ABSENT, ShmSetting, Unknown, Workload
from trainlaunch.init.takeover.container_fields import amd_nodes
from trainlaunch.init.takeover.job_draft import JobDraft
from trainlaunch.rules.sources.source_text import text_at
from trainlaunch.yamltree.emitter import yaml_inline
from trainlaunch.yamltree.tolerant import Mapping as MappingNode
from trainlaunch.yamltree.tolerant import Node

# What each rendered file says too, or what a run of trainlaunch does by itself.
_SAME = frozenset({"rm", "init", "detach", "volume", "ipc", "pod", "device", "pull", "name", "cpu-period", "cpu-quota"})
_RESTARTS = "an engine that starts a job again does so after every code, also 78, after which nothing changes"
_WHY = {
    "interactive": (
        "a job has no terminal; `trainlaunch up` follows its log",
        "start a shell with `docker run` itself",
    ),
    "tty": ("a job has no terminal; `trainlaunch up` follows its log", "start a shell with `docker run` itself"),
    "restart": (_RESTARTS, "write restart: {max_attempts: 3}"),
    "env-file": ("its lines are not in this file", "write its variables into env, and its secrets into secrets"),
    "volumes-from": ("a job names each mount", "write them into mounts"),
    "gpus": ("several are set, and no engine takes both", "set resources.gpus"),
}
_COMPOSE_WHY = {
    "build": ("a job starts an image that is there", "build it first, and write its name into image"),
    "restart": (_RESTARTS, "write restart: {max_attempts: 3}"),
    "env_file": ("its lines are not in this file", "write its variables into env, and its secrets into secrets"),
    "depends_on": ("the other services are not in the job file", "start them first, with the Compose file"),
    "networks": ("a job has its project's own network", "write patches.compose for another one"),
    "extends": ("what it extends is in another file", "write what that says into this file first"),
    "links": ("the other services are not in the job file", "start them first, with the Compose file"),
    "profiles": ("a job file is one job", "name the job file instead of the profile"),
    "stdin_open": ("a job has no terminal", "start a shell with `docker compose run`"),
    "tty": ("a job has no terminal", "start a shell with `docker compose run`"),
    "deploy": ("Swarm schedules no training job, and a job's limits are in resources", "set them in resources"),
    "configs": ("the file is the Compose file's", "mount it: {type: bind, source: …, target: …, read_only: true}"),
}
_COMPOSE_SAME = frozenset({"init", "container_name", "ipc", "volumes", "hostname", "shm_size"})
# Keys that mean the same wherever the service stands.
_CARRIED = frozenset({
    "cap_add", "cap_drop", "security_opt", "privileged", "ports", "expose", "extra_hosts", "dns", "dns_search",
    "sysctls", "pid", "userns_mode", "oom_score_adj", "cpuset", "logging", "pids_limit", "mac_address", "network_mode",
    "platform", "memswap_limit", "mem_swappiness", "mem_reservation", "domainname", "uts", "cgroup", "cgroup_parent",
    "runtime",
})  # fmt: skip


def without_unclear(workload: Workload) -> Workload:
    """Return a line's container without the values that only an unclear word may set; `rest` still names the word."""
    words = workload.rest.get("unclear")
    texts = set(words) if isinstance(words, tuple) else set()
    fields = [name for name, each in workload._asdict().items() if isinstance(each, Unknown) and each.text in texts]
    absent: dict[str, Any] = dict.fromkeys(set(fields) - {"image", "command", "entrypoint"})
    if "entrypoint" in fields and workload.command is not None:
        absent["entrypoint"] = None
    shm = workload.shm
    if isinstance(shm.size, Unknown) and shm.size.text in texts:
        absent["shm"] = ShmSetting(ABSENT)
    return workload._replace(**absent)


def take_flags(draft: JobDraft, workload: Workload) -> None:
    """Keep a line's other flags as patches.docker.extra_args, where a job may have them; else say why not."""
    kept: list[str] = []
    for flag, values in _flags(workload.rest):
        name = flag.removeprefix("--")
        marked = any(each.startswith("<") for each in values)
        if name in _SAME or (values == ("False",)):
            continue
        shown = f"{flag} {' '.join(values)}".removesuffix(" True")
        if name in _WHY or marked or name not in FLAGS or FLAGS[name].job_field is not None:
            usual = ("a job file has no field for it", "leave it out, or start the container with the line itself")
            why, fix = _WHY.get(name, usual)
            why = "a variable of the shell decides it" if marked else why
            draft.note(shown, why, fix, workload.span)
        else:
            kept += [flag] if values == ("True",) else [word for each in values for word in (flag, each)]
    others = [each for each in workload.devices.get("nodes", "").split() if each not in amd_nodes(workload)]
    kept += [part for each in others for part in ("--device", each)]
    if kept:
        draft.set("patches.docker.extra_args", kept, "Flags of the file that no field has; for docker alone.")
    _take_around(draft, workload)


def _flags(rest: Mapping[str, object]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for key, value in rest.items():
        if key.startswith("--") and not key.endswith(" twice") and " " not in key:
            yield key, tuple(map(str, value)) if isinstance(value, tuple) else (str(value),)


def _take_around(draft: JobDraft, workload: Workload) -> None:
    """Say what else the text does, and what docker would not take of it."""
    rest = workload.rest
    for key, value in rest.items():
        if key.startswith("refused "):
            draft.note(f"{key.removeprefix('refused ')} {value}", "docker refuses it", "correct it", workload.span)
    around = [each for key in ("commands before", "commands after") for each in rest.get(key, ())]  # type: ignore[attr-defined]
    if around:
        words = "; ".join(" ".join(each) for each in around)
        draft.note(
            f"what the script does beside it ({' '.join(words.split())[:100]})",
            "a job file starts one container",
            "keep it in the script, around `trainlaunch up`",
            workload.span,
        )
    unclear = rest.get("unclear")
    if isinstance(unclear, tuple):
        draft.note(
            f"what {' '.join(map(str, unclear))[:100]} may hold",
            "only a shell could say which flags it has",
            "write its flags into the line",
            workload.span,
        )


def name_volumes(draft: JobDraft, nodes: Sequence[Node], span: Span) -> None:
    """Give each volume the name that the engine knows it by: Compose puts the project's in front of a bare one."""
    root = nodes[0] if nodes else None
    project = text_at(root, "name")
    for mount in draft.fields.get("mounts", ()):
        name = mount.get("source")
        if mount["type"] != "volume" or name is None:
            continue
        external = text_at(root, "volumes", name, "external") == "true"
        own = text_at(root, "volumes", name, "name") or (name if external else None)
        if own is None and project is None:
            draft.note(
                f"the volume {name} by that name",
                f"Compose puts its project's name in front, as in PROJECT_{name}, and the file has none",
                "write the one that `docker volume ls` shows",
                span,
            )
        mount["source"] = own or (f"{project}_{name}" if project else name)


def take_keys(draft: JobDraft, workload: Workload, service: MappingNode | None) -> None:
    """Keep a service's other keys as patches.compose, where they mean the same in another file; else say why not."""
    rest = {key.split(".")[1] for key in workload.rest if key.startswith("service.")}
    kept: dict[str, Any] = {}
    for name in sorted(rest - _COMPOSE_SAME):
        node = service.items.get(name) if service is not None else None
        value = plain(node) if node is not None else None
        span = node.span if node is not None else workload.span
        shown = f"{name}: {yaml_inline(value)}"
        if value is None or value in ("", [], {}) or (name == "restart" and value == "no"):
            continue
        if name in _CARRIED and "<variable" not in shown and not str(value).startswith(("service:", "container:")):
            kept[name] = value
            continue
        why, fix = _COMPOSE_WHY.get(name, ("a job file has no field for it", "write patches.compose, if it is needed"))
        draft.note(shown if len(shown) <= 100 else f"{shown[:99]}…", why, fix, span)
    for key, value in workload.rest.items():
        if key.startswith("refused service."):
            draft.note(
                f"{key.removeprefix('refused service.')} {value}", "Compose refuses it", "correct it", workload.span
            )
    others = [each for each in workload.devices.get("nodes", "").split() if each not in amd_nodes(workload)]
    if others:
        kept["devices"] = others
    if kept:
        name = str(draft.fields["name"])
        draft.set(
            "patches", {"compose": {"services": {name: kept}}}, "Keys of the file that no field has; for Compose."
        )
