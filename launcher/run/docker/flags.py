"""A job's own flags of `docker run` in the engine's create request, with the same effect as on the command line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from launcher.diagnostics import Diagnostic
from launcher.formats.docker_flags import FOR_UP, Flag, mount_fields
from launcher.plan.launch_plan import LaunchPlan

NOT_FOR_UP = "TL147"
_SIZE = re.compile(r"([0-9]+)(?:([kmgtp])i?)?b?", re.IGNORECASE)
_PORT = re.compile(r"(?:(?:([0-9.]+):)?([0-9]*):)?([0-9]+)(?:/(tcp|udp|sctp))?")
_DEVICE = re.compile(r"(/[^:]*)(?::(/[^:]*))?(?::([rwm]+))?")
_OPTIONS = {"type", "source", "target", "readonly", "bind-propagation", "tmpfs-size", "tmpfs-mode", "volume-nocopy"}
_LISTS = {
    "add-host": "ExtraHosts",
    "cap-add": "CapAdd",
    "cap-drop": "CapDrop",
    "device-cgroup-rule": "DeviceCgroupRules",
    "dns": "Dns",
    "dns-option": "DnsOptions",
    "dns-search": "DnsSearch",
}
_TEXTS = {
    "cgroup-parent": "CgroupParent",
    "cgroupns": "CgroupnsMode",
    "cpuset-cpus": "CpusetCpus",
    "cpuset-mems": "CpusetMems",
    "network": "NetworkMode",
    "pid": "PidMode",
    "runtime": "Runtime",
    "userns": "UsernsMode",
    "uts": "UTSMode",
}
_INTEGERS = {
    "blkio-weight": "BlkioWeight",
    "cpu-shares": "CpuShares",
    "memory-swappiness": "MemorySwappiness",
    "oom-score-adj": "OomScoreAdj",
    "pids-limit": "PidsLimit",
}
_SIZES = {"memory-reservation": "MemoryReservation", "memory-swap": "MemorySwap"}
_SWITCHES = {"oom-kill-disable": "OomKillDisable", "privileged": "Privileged", "publish-all": "PublishAllPorts"}
_CONFIG = {"domainname": "Domainname", "hostname": "Hostname"}
_MAPS = {"sysctl": "Sysctls", "storage-opt": "StorageOpt"}


def flag_findings(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error for each flag whose effect only the `docker` command can give."""
    body: dict[str, Any] = {"HostConfig": {}}
    for flag in plan.job.patch.flags if plan.job.patch else ():
        try:
            add_flags(body, (flag,))
        except ValueError as cause:
            yield Diagnostic(
                NOT_FOR_UP,
                f"`up` can't give {' '.join(flag.words)} the effect that it has for the docker command",
                f"run `trainlaunch render {plan.job.path} | sh`, or delete the flag",
                why=str(cause),
                span=flag.span,
                field=f"patches.docker.extra_args.{flag.at}",
            )


def add_flags(body: dict[str, Any], flags: tuple[Flag, ...]) -> None:
    """Put each flag in a create request; raises ValueError for a value that only the command line can work out."""
    host = body["HostConfig"]
    for flag in flags:
        _add(body, host, flag)
    for key in {"CapAdd", "CapDrop"} & host.keys():
        host[key] = sorted(map(_capability, host[key]))  # as the command line sends them


def _add(body: dict[str, Any], host: dict[str, Any], flag: Flag) -> None:
    name, value = flag.name, flag.value or ""
    if name not in FOR_UP:
        raise ValueError("the command line does something for it that no create request says")
    if name in _LISTS:
        host.setdefault(_LISTS[name], []).append(value)
    elif name == "network" and ("=" in value or host.get("NetworkMode", "default") != "default"):
        raise ValueError("the command line connects a container to several networks, or by their options, in steps")
    elif name in _TEXTS:
        host[_TEXTS[name]] = value
    elif name in _INTEGERS:
        host[_INTEGERS[name]] = int(value)
    elif name in _SIZES:
        host[_SIZES[name]] = -1 if value == "-1" else _size(value)
    elif name in _SWITCHES:
        host[_SWITCHES[name]] = flag.value in {None, "true", "1"}
    elif name in _CONFIG:
        body[_CONFIG[name]] = value
    elif name in _MAPS:
        key, _, text = value.partition("=")
        host.setdefault(_MAPS[name], {})[key] = text
    else:
        _OTHERS[name](body, host, value)


def _capability(value: str) -> str:
    upper = value.upper()
    return upper if upper == "ALL" or upper.startswith("CAP_") else f"CAP_{upper}"


def _size(value: str) -> int:
    match = _SIZE.fullmatch(value)
    if not match:
        raise ValueError(f"{value} is no size in whole units, like 512m")
    power = "kmgtp".index(match[2].lower()) + 1 if match[2] else 0
    return int(match[1]) << 10 * power


def _env(body: dict[str, Any], host: dict[str, Any], value: str) -> None:
    known = "=" in value or value not in os.environ
    body.setdefault("Env", []).append(value if known else f"{value}={os.environ[value]}")


def _label(body: dict[str, Any], host: dict[str, Any], value: str) -> None:
    key, _, text = value.partition("=")
    body.setdefault("Labels", {})[key] = text


def _ulimit(body: dict[str, Any], host: dict[str, Any], value: str) -> None:
    match = re.fullmatch(r"([a-z]+)=(-?[0-9]+)(?::(-?[0-9]+))?", value)
    if not match:
        raise ValueError(f"{value} is no limit, like nofile=1024:2048")
    limit = {"Name": match[1], "Soft": int(match[2]), "Hard": int(match[3] or match[2])}
    host.setdefault("Ulimits", []).append(limit)


def _security(body: dict[str, Any], host: dict[str, Any], value: str) -> None:
    if value.startswith("systempaths") or re.match(r"seccomp[=:](?!unconfined$|builtin$)", value):
        raise ValueError("the command line reads a file for it, or turns it into something else")
    host.setdefault("SecurityOpt", []).append(value)


def _log(body: dict[str, Any], host: dict[str, Any], value: str) -> None:
    host.setdefault("LogConfig", {"Config": {}})["Type"] = value


def _log_option(body: dict[str, Any], host: dict[str, Any], value: str) -> None:
    key, _, text = value.partition("=")
    host.setdefault("LogConfig", {"Config": {}})["Config"][key] = text


def _port(body: dict[str, Any], host: dict[str, Any], value: str) -> None:
    match = _PORT.fullmatch(value)
    if not match:
        raise ValueError(f"{value} is no single port, like 8080:80 or 127.0.0.1:8080:80/tcp")
    port = f"{match[3]}/{match[4] or 'tcp'}"
    body.setdefault("ExposedPorts", {})[port] = {}
    binding = {"HostIp": match[1] or "", "HostPort": match[2] or ""}
    host.setdefault("PortBindings", {}).setdefault(port, []).append(binding)


def _expose(body: dict[str, Any], host: dict[str, Any], value: str) -> None:
    match = re.fullmatch(r"([0-9]+)(?:/(tcp|udp|sctp))?", value)
    if not match:
        raise ValueError(f"{value} is no single port, like 80 or 80/udp")
    body.setdefault("ExposedPorts", {})[f"{match[1]}/{match[2] or 'tcp'}"] = {}


def _device(body: dict[str, Any], host: dict[str, Any], value: str) -> None:
    match = _DEVICE.fullmatch(value)
    if not match:
        raise ValueError(f"{value} is no path of a device, like /dev/fuse or /dev/fuse:/dev/fuse:rw")
    device = {"PathOnHost": match[1], "PathInContainer": match[2] or match[1], "CgroupPermissions": match[3] or "rwm"}
    host.setdefault("Devices", []).append(device)


def _tmpfs(body: dict[str, Any], host: dict[str, Any], value: str) -> None:
    path, _, options = value.partition(":")
    host.setdefault("Tmpfs", {})[path] = options


def _volume(body: dict[str, Any], host: dict[str, Any], value: str) -> None:
    if ":" in value:
        host.setdefault("Binds", []).append(value)
    else:
        body.setdefault("Volumes", {})[value] = {}


def _mount(body: dict[str, Any], host: dict[str, Any], value: str) -> None:
    fields = mount_fields(value)
    unknown = sorted(set(fields) - _OPTIONS)
    if unknown:
        raise ValueError(f"it has the option {unknown[0]}")
    made: dict[str, Any] = {"Type": fields.get("type", "volume"), "Target": fields.get("target", "")}
    if "source" in fields:
        made["Source"] = fields["source"]
    if fields.get("readonly") in {"true", "1"}:
        made["ReadOnly"] = True
    if "bind-propagation" in fields:
        made["BindOptions"] = {"Propagation": fields["bind-propagation"]}
    if fields.get("volume-nocopy") in {"true", "1"}:
        made["VolumeOptions"] = {"NoCopy": True}
    memory: dict[str, int] = {}
    if "tmpfs-size" in fields:
        memory["SizeBytes"] = _size(fields["tmpfs-size"])
    if "tmpfs-mode" in fields:
        memory["Mode"] = int(fields["tmpfs-mode"], 8)
    if memory:
        made["TmpfsOptions"] = memory
    host.setdefault("Mounts", []).append(made)


_OTHERS: dict[str, Callable[[dict[str, Any], dict[str, Any], str], None]] = {
    "device": _device,
    "env": _env,
    "expose": _expose,
    "label": _label,
    "log-driver": _log,
    "log-opt": _log_option,
    "mount": _mount,
    "publish": _port,
    "security-opt": _security,
    "tmpfs": _tmpfs,
    "ulimit": _ulimit,
    "volume": _volume,
}
