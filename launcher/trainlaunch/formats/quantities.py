"""Sizes, durations and paths as their own readers take them: Kubernetes quantities, as the API server's parser reads
each spelling, and what the engine's own tools read, the docker command line and Compose alike.
"""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

# As the parser takes a text apart: no digit is needed, and `1.` is one. A suffix is looked up afterwards.
_QUANTITY = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?((?:[eEinumkKMGTP]+[+-]?|[+-])[0-9]*)?", re.ASCII)
_EXPONENT = r"[eE]([+-]?[0-9]+)"
_DECIMAL = {each: power for power, each in zip(range(-9, 19, 3), ("n", "u", "m", "", *"kMGTPE"), strict=True)}
_BINARY = {f"{each}i": 10 * power for power, each in enumerate("KMGTPE", start=1)}
MAX_QUANTITY = 2**63 - 1  # what a quantity's int64 holds
_MAX_TEXT_LENGTH = 100
_FURTHEST_EXPONENT = 40  # beyond it a number is the largest, or the smallest above zero


def parse_quantity(text: str) -> int | None:
    """Return a quantity in whole units, bytes or GPUs, rounded up as Kubernetes does; None for what is none.

    `m` is a thousandth, so `512m` is 1. What an int64 can't hold counts as the largest one.
    """
    return _scaled(text, 0)


def parse_milli_quantity(text: str) -> int | None:
    """Return a quantity in thousandths, rounded up: a CPU amount. None for what is no quantity."""
    return _scaled(text, 3)


def quantity_text(value: object) -> str | None:
    """Return the text that the parser gets for a value of YAML or JSON: a number's own, a string without its blanks.

    None for what can't be a quantity: null, a truth value, a list.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return str(value).strip()


def bytes_of(quantity: object) -> int:
    """Return the bytes of a quantity of a live object; 0 for what is none."""
    text = quantity_text(quantity)
    return 0 if text is None else parse_quantity(text) or 0


def _scaled(text: str, more: int) -> int | None:
    """Return the quantity times ten to the `more`."""
    match = _QUANTITY.fullmatch(text)
    if not text or len(text) > _MAX_TEXT_LENGTH or not match:
        return None
    sign, whole, fraction, suffix = match.groups(default="")
    power = _power(suffix)
    if power is None:
        return None
    number = int(whole + fraction or "0") * 2 ** _BINARY.get(suffix, 0)
    power += more - len(fraction)
    if not number:
        return 0
    if abs(power) > _FURTHEST_EXPONENT + _MAX_TEXT_LENGTH:
        size = MAX_QUANTITY if power > 0 else 1
    else:
        size = number * 10**power if power >= 0 else -(-number // 10**-power)
    size = min(size, MAX_QUANTITY)
    return -size if sign == "-" else size


def _power(suffix: str) -> int | None:
    """Return the power of ten of a suffix, 0 for the binary ones; None where there is no such suffix."""
    if suffix in _BINARY:
        return 0
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    match = re.fullmatch(_EXPONENT, suffix, re.ASCII)
    return int(match[1]) if match else None


_POWERS = "kmgtpe"
_SIZE = re.compile(
    r"\+?([0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(e[-+]?[0-9]{1,2})?(?: ?([kmgtp])(?:i?b)?| ?b?)", re.ASCII | re.I
)
_KERNEL_SIZE = r"([0-9]{1,30})([kmgtpe])?"
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
    match = re.fullmatch(_KERNEL_SIZE, text, re.ASCII | re.I)
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
