"""Flags of `docker run` as the body of the engine's `POST /containers/create`, with the command line's own effect."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from trainlaunch.formats.docker import table
from trainlaunch.formats.docker.line import Line
from trainlaunch.formats.docker.table import FLAGS
from trainlaunch.formats.docker.values import cpu_thousandths, gpu_request, mount_fields, ulimit
from trainlaunch.formats.quantities import engine_bytes, engine_seconds

_PORT = re.compile(r"(?:(?:([0-9.]+):)?([0-9]*):)?([0-9]+)(?:/(tcp|udp|sctp))?")
_EXPOSED = re.compile(r"([0-9]+)(?:/(tcp|udp|sctp))?")
_DEVICE = re.compile(r"(/[^:]*)(?::(/[^:]*))?(?::([rwm]+))?")
_OPTIONS = {"type", "source", "target", "readonly", "bind-propagation", "tmpfs-size", "tmpfs-mode", "volume-nocopy"}
_NANO = 1_000_000_000
Body = dict[str, Any]
Variable = Callable[[str], str | None]
Read = TypeVar("Read")


def request_of(line: Line, *, folder: Path, variable: Variable) -> Body:
    """Return the body by which the engine makes what the command of a line would start.

    Relative binds are seen from `folder`; `variable` gives the value of one that is passed on by its name, None where
    there is none. Raises ValueError for what only a shell or the command line can work out.
    """
    words = [*([line.image] if line.image else []), *line.arguments, *(each.word for each in line.flags)]
    unknown = [each for each in words if not each.known]
    if line.image is None or unknown or line.unclear:
        raise ValueError(f"{unknown[0].text if unknown else 'the image'} is not decided by the file")
    restart = {"Name": "no", "MaximumRetryCount": 0}
    body: Body = {"Image": line.image.text, "AttachStdout": True, "AttachStderr": True}
    body["HostConfig"] = {"NetworkMode": "default", "RestartPolicy": restart}
    add_flags(body, ((each.name, each.value) for each in line.flags), folder=folder, variable=variable)
    body["Cmd"] = [each.text for each in line.arguments]
    return body


def add_flags(
    body: Body, flags: Iterable[tuple[str, str | None]], *, folder: Path, variable: Variable = os.environ.get
) -> None:
    """Put each flag that has a place in a create request; raises ValueError as `request_of` does.

    One without a place has its effect before the request is made, or after it, as --name, --pull and --rm do.
    """
    request = _Request(body, folder, variable)
    for name, value in flags:
        flag = FLAGS[name]
        if flag.api_path:
            request.add(flag.form, flag.api_path, value)
    host = body["HostConfig"]
    for key in {"CapAdd", "CapDrop"} & host.keys():
        host[key] = sorted(map(_capability, host[key]))  # as the command line sends them


class _Request:
    """A create request that flags are put in, each by its form, at its dotted place."""

    def __init__(self, body: Body, folder: Path, variable: Variable) -> None:
        self.body, self.folder, self.variable = body, folder, variable

    def add(self, form: str, api_path: str, value: str | None) -> None:
        """Put in one flag; raises ValueError."""
        if form in _ONE:
            self._put(api_path, _ONE[form](value))
        elif form in _MANY:
            self._append(api_path, _MANY[form](value or ""))
        else:
            places: dict[str, Callable[[str, str], None]] = {
                table.MAP: partial(self._pair, "="),
                table.ENV: self._env,
                table.NETWORK: self._network,
                table.PORT: self._port,
                table.EXPOSED: self._exposed,
                table.TMPFS: partial(self._pair, ":"),
                table.VOLUME: self._volume,
                table.MOUNT: self._mount,
            }
            places[form](api_path, value or "")

    def _above(self, api_path: str) -> dict[str, Any]:
        inside = self.body
        for key in api_path.split(".")[:-1]:
            inside = inside.setdefault(key, {})
        return inside

    def _put(self, api_path: str, value: Any) -> None:
        self._above(api_path)[api_path.rpartition(".")[2]] = value

    def _item(self, api_path: str, key: str, value: Any) -> None:
        self._above(api_path).setdefault(api_path.rpartition(".")[2], {})[key] = value

    def _append(self, api_path: str, value: Any) -> None:
        self._above(api_path).setdefault(api_path.rpartition(".")[2], []).append(value)

    def _pair(self, separator: str, api_path: str, value: str) -> None:
        key, _, text = value.partition(separator)
        self._item(api_path, key, text)

    def _env(self, api_path: str, value: str) -> None:
        given = None if "=" in value else self.variable(value)
        self._append(api_path, value if given is None else f"{value}={given}")

    def _network(self, api_path: str, value: str) -> None:
        if "=" in value or self.body["HostConfig"].get("NetworkMode", "default") != "default":
            raise ValueError("the command line connects a container to several networks, or by their options, in steps")
        self._put(api_path, value)

    def _port(self, api_path: str, value: str) -> None:
        match = _read(value, _PORT.fullmatch, "a single port, like 8080:80 or 127.0.0.1:8080:80/tcp")
        port = f"{match[3]}/{match[4] or 'tcp'}"
        self._item("ExposedPorts", port, {})
        binding = {"HostIp": match[1] or "", "HostPort": match[2] or ""}
        self._above(api_path).setdefault("PortBindings", {}).setdefault(port, []).append(binding)

    def _exposed(self, api_path: str, value: str) -> None:
        match = _read(value, _EXPOSED.fullmatch, "a single port, like 80 or 80/udp")
        self._item(api_path, f"{match[1]}/{match[2] or 'tcp'}", {})

    def _volume(self, api_path: str, value: str) -> None:
        if ":" in value:
            self._append(api_path, value)
        else:
            self._item("Volumes", value, {})

    def _mount(self, api_path: str, value: str) -> None:
        made = mount_request(mount_fields(value))
        source = made.get("Source", "")
        if made["Type"] == "bind" and not source.startswith("/"):
            made["Source"] = os.path.normpath(self.folder.absolute() / source)
        self._append(api_path, made)


def mount_request(fields: dict[str, str]) -> dict[str, Any]:
    """Return the engine's own form of a --mount; raises ValueError for an option that it doesn't know."""
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
    return made


def _capability(value: str) -> str:
    upper = value.upper()
    return upper if upper == "ALL" or upper.startswith("CAP_") else f"CAP_{upper}"


def _read(value: str | None, reader: Callable[[str], Read | None], what: str) -> Read:
    found = reader(value or "")
    if found is None:
        raise ValueError(f"{value} is not {what}")
    return found


def _size(value: str | None) -> int:
    size = engine_bytes(value or "")
    if size is None or not re.fullmatch(r"[0-9]+[a-z]*", value or "", re.IGNORECASE):
        raise ValueError(f"{value} is not a size in whole units, like 512m")
    return size


def _cpus(value: str | None) -> int:
    return _read(value, cpu_thousandths, "a number of CPUs, like 1.5") * _NANO // 1000


def _nanoseconds(value: str | None) -> int:
    return _read(value, engine_seconds, "a duration in whole seconds, like 1m30s") * _NANO


def _limit(value: str) -> dict[str, Any]:
    name, soft, hard = _read(value, ulimit, "a limit, like nofile=1024:2048")
    return {"Name": name, "Soft": soft, "Hard": hard}


def _device(value: str) -> dict[str, Any]:
    match = _read(value, _DEVICE.fullmatch, "a path of a device, like /dev/fuse or /dev/fuse:/dev/fuse:rw")
    return {"PathOnHost": match[1], "PathInContainer": match[2] or match[1], "CgroupPermissions": match[3] or "rwm"}


def _security(value: str) -> str:
    if value.startswith("systempaths") or re.match(r"seccomp[=:](?!unconfined$|builtin$)", value):
        raise ValueError("the command line reads a file for it, or turns it into something else")
    return value


def _gpus(value: str) -> dict[str, Any]:
    gpus = _read(value, gpu_request, "a number of GPUs, all, or a quoted list, like '\"device=0,1\"'")
    count = -1 if gpus.all else gpus.number
    ids = list(gpus.ids) or None
    return {"Driver": "", "Count": count, "DeviceIDs": ids, "Capabilities": [["gpu"]], "Options": {}}


_ONE: dict[str, Callable[[str | None], Any]] = {
    table.TEXT: lambda value: value or "",
    table.SWITCH: lambda value: value in {None, "true", "1"},
    table.INTEGER: lambda value: int(value or ""),
    table.SIZE: _size,
    table.SWAP: lambda value: -1 if value == "-1" else _size(value),
    table.CPUS: _cpus,
    table.DURATION: _nanoseconds,
    table.CHECK: lambda value: ["CMD-SHELL", value or ""],
}
_MANY: dict[str, Callable[[str], Any]] = {
    table.LIST: str,
    table.LIMIT: _limit,
    table.DEVICE: _device,
    table.SECURITY: _security,
    table.GPUS: _gpus,
}
