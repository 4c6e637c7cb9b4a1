"""Values as the engine's own tools read them, the docker command line and Compose alike: sizes, durations, paths."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

_POWERS = "kmgtpe"
_SIZE = re.compile(
    r"\+?([0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(e[-+]?[0-9]{1,2})?(?: ?([kmgtp])(?:i?b)?| ?b?)", re.ASCII | re.I
)
_KERNEL_SIZE = re.compile(r"([0-9]{1,30})([kmgtpe])?", re.ASCII | re.I)
_DURATION = re.compile(r"(?<![0-9.])([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(w|d|h|ms|us|µs|ns|m|s)", re.ASCII)
_SECONDS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_MAX_BYTES = 2**63


def engine_bytes(text: str) -> int | None:
    """Return the bytes that docker and Compose read: `8G`, `8gb` and `8GiB` are all 8·2³⁰. None for no such size."""
    match = _SIZE.fullmatch(text)
    if not match:
        return None
    number, exponent, unit = match.groups()
    shift = 10 * (_POWERS.index(unit.lower()) + 1) if unit else 0
    whole = number.replace("_", "")
    size = int(float(whole + (exponent or "")) * 2**shift) if exponent or "." in whole else int(whole[:40]) << shift
    return size if size < _MAX_BYTES else None


def kernel_bytes(text: str) -> int | None:
    """Return the bytes of a tmpfs option `size=`, which the kernel reads: `200m`. None for a part of RAM, `50%`."""
    match = _KERNEL_SIZE.fullmatch(text)
    return int(match[1]) << 10 * (_POWERS.index(match[2].lower()) + 1 if match[2] else 0) if match else None


def engine_seconds(text: str) -> int | None:
    """Return the whole seconds of a duration: `1m30s`; None for what is no duration or no whole number of seconds."""
    if not re.fullmatch(f"(?:{_DURATION.pattern})+", text, re.ASCII) or len(text) > 60:
        return 0 if text == "0" else None
    total = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text))
    return int(total) if total == int(total) else None


def is_shm(target: str) -> bool:
    """Return whether a mount at `target` is /dev/shm's own place."""
    return posixpath.normpath("/" + target.lstrip("/")) == "/dev/shm"


class Tmpfs(NamedTuple):
    """What `PATH:OPTIONS` says; `size` is its own text, `options` are those beside size.

    Engines mount with noexec unless exec is said; `render` always says it, so exec alone leaves no options.
    """

    target: str
    size: str | None
    options: str


def tmpfs_of(text: str) -> Tmpfs:
    """Return the parts of a `--tmpfs` flag or an item of Compose's `tmpfs`."""
    target, _, listed = text.partition(":")
    options = [each for each in listed.split(",") if each]
    sizes = [each.removeprefix("size=") for each in options if each.startswith("size=")]
    others = ",".join(each for each in options if not each.startswith("size=")) or "noexec"
    return Tmpfs(target, sizes[-1] if sizes else None, "" if others == "exec" else others)
