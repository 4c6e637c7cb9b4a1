"""The flags of `docker run` (CLI 28), as far as `patches.docker.extra_args` may add them to ours."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from launcher.diagnostics import Report, Span
from launcher.yamltree.source import Scalar, SequenceNode

# What the text states or means already, and what to write instead of a second flag.
OURS = {
    "shm-size": "shm_size",
    "ipc": "shm_size",
    "volumes-from": "mounts",
    "entrypoint": "image_entrypoint",
    "memory": "resources.memory",
    "cpus": "resources.cpus",
    "cpu-period": "resources.cpus",
    "cpu-quota": "resources.cpus",
    "gpus": "resources.gpus",
    "name": "name",
    "pull": "pull_policy",
    "restart": "restart.max_attempts",
    "user": "user",
    "group-add": "group_add",
    "workdir": "working_dir",
    "read-only": "read_only",
    "stop-signal": "stop_signal",
    "stop-timeout": "stop_grace_period",
    "health-cmd": "healthcheck",
    "health-interval": "healthcheck.interval",
    "health-timeout": "healthcheck.timeout",
    "health-retries": "healthcheck.retries",
    "health-start-period": "healthcheck.start_period",
    "health-start-interval": "healthcheck",
    "no-healthcheck": "healthcheck",
    "env-file": "env",
    "label-file": "labels",
    "rm": "",
    "init": "",
    "detach": "",
    "detach-keys": "",
    "attach": "",
    "interactive": "",
    "tty": "",
    "sig-proxy": "",
    "cidfile": "",
    "help": "",
}
SWITCHES = frozenset({
    "detach", "disable-content-trust", "help", "init", "interactive", "no-healthcheck", "oom-kill-disable",
    "privileged", "publish-all", "quiet", "read-only", "rm", "sig-proxy", "tty", "use-api-socket",
})  # fmt: skip
# Those that the engine's create request can give as the command line does; `up` refuses the rest.
FOR_UP = frozenset({
    "add-host", "blkio-weight", "cap-add", "cap-drop", "cgroup-parent", "cgroupns", "cpu-shares", "cpuset-cpus",
    "cpuset-mems", "device", "device-cgroup-rule", "dns", "dns-option", "dns-search", "domainname", "env",
    "expose", "hostname", "label", "log-driver", "log-opt", "memory-reservation", "memory-swap",
    "memory-swappiness", "mount", "network", "oom-kill-disable", "oom-score-adj", "pid", "pids-limit",
    "privileged", "publish", "publish-all", "runtime", "security-opt", "storage-opt", "sysctl", "tmpfs",
    "ulimit", "userns", "uts", "volume",
})  # fmt: skip
_ONLY_TEXT = frozenset({
    "annotation", "blkio-weight-device", "cpu-rt-period", "cpu-rt-runtime", "device-read-bps",
    "device-read-iops", "device-write-bps", "device-write-iops", "disable-content-trust", "ip", "ip6",
    "isolation", "kernel-memory", "link", "link-local-ip", "mac-address", "network-alias", "platform", "quiet",
    "use-api-socket", "volume-driver",
})  # fmt: skip
_ALIASES = {"net": "network", "net-alias": "network-alias", "dns-opt": "dns-option"}
KNOWN = FOR_UP | _ONLY_TEXT | OURS.keys()
_SHORT = {
    "a": "attach",
    "c": "cpu-shares",
    "d": "detach",
    "e": "env",
    "h": "hostname",
    "i": "interactive",
    "l": "label",
    "m": "memory",
    "p": "publish",
    "P": "publish-all",
    "q": "quiet",
    "t": "tty",
    "u": "user",
    "v": "volume",
    "w": "workdir",
}


class Flag(NamedTuple):
    """One flag by its long name without dashes; `value` is None for a bare switch. `at` is the index of its word."""

    name: str
    value: str | None
    at: int
    span: Span

    @property
    def words(self) -> tuple[str, ...]:
        """The flag as words of a command line."""
        if self.value is None:
            return (f"--{self.name}",)
        return (f"--{self.name}={self.value}",) if self.name in SWITCHES else (f"--{self.name}", self.value)

    @property
    def mount_target(self) -> str | None:
        """Where --mount, --volume or --tmpfs mounts something; None for any other flag."""
        value = self.value or ""
        if self.name == "tmpfs":
            return value.partition(":")[0]
        if self.name == "volume":
            parts = value.split(":")
            return parts[1] if len(parts) > 1 else parts[0]
        return mount_fields(value).get("target", "") if self.name == "mount" else None


def mount_fields(value: str) -> dict[str, str]:
    """Return the fields of a --mount by their first names: type, source, target, readonly; a bare one is `true`."""
    import csv

    other = {"src": "source", "dst": "target", "destination": "target", "ro": "readonly"}
    fields = next(csv.reader([value]), [])
    pairs = (field.partition("=") for field in fields)
    return {other.get(key.lower(), key.lower()): text if equals else "true" for key, equals, text in pairs}


def takes_shm(target: str) -> bool:
    """Return whether something mounted at `target` hides /dev/shm."""
    return posixpath.normpath(f"/{target}").replace("//", "/") in {"/", "/dev", "/dev/shm"}


def flags_of(node: SequenceNode, report: Report | None) -> Iterator[Flag]:
    """Yield the flags of a list of words; what is no flag of docker run is put in `report`, if there is one."""
    words = [each for each in node.items if isinstance(each, Scalar)]
    left = iter(enumerate(words))
    for index, word in left:
        name, value = _name(word.text)
        if name is None or name not in KNOWN:
            if report is not None:
                _refuse(report, word, name)
            return
        if value is None and name not in SWITCHES:
            following = next(left, None)
            if following is None:
                if report is not None:
                    fix = "add its value as the next element of extra_args"
                    report.add("TL145", word, message=f"{word.text} stands without its value", fix=fix)
                return
            value = following[1].text
        yield Flag(name, value, index, word.span)


def _name(word: str) -> tuple[str | None, str | None]:
    """Return the long name that a word starts with, and the value in it; no name for what is no flag."""
    long = re.fullmatch(r"--([a-z0-9][-a-z0-9]*)(?:=([\s\S]*))?", word)
    if long:
        return _ALIASES.get(long[1], long[1]), long[2]
    short = re.fullmatch(r"-([A-Za-z])(?:=?([\s\S]+))?", word)
    if short and short[1] in _SHORT and (short[2] is None or _SHORT[short[1]] not in SWITCHES):
        return _SHORT[short[1]], short[2]
    return None, None


def _refuse(report: Report, word: Scalar, name: str | None) -> None:
    import difflib

    shown = word.text if len(word.text) <= 60 and word.text.isprintable() else ascii(word.text[:59])
    close = difflib.get_close_matches(name, sorted(KNOWN - OURS.keys()), n=1, cutoff=0.7) if name else []
    parted = re.fullmatch(r"(--[a-z0-9-]+) (.+)", word.text)
    if parted:
        fix = f'write two elements, "{parted[1]}" and "{parted[2]}"'
    elif close:
        fix = f"write --{close[0]}"
    else:
        fix = "write flags of docker run with their values, as in [--cap-add, SYS_PTRACE]"
    report.add(
        "TL145",
        word,
        message=f"{shown} is no flag of docker run",
        why="docker would take the first word that is no flag for the image",
        fix=fix,
        field="patches.docker.extra_args",
    )
