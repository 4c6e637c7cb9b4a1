"""Sizes, CPU amounts and durations: one reading of each spelling, for every target.

Sizes are integer bytes, CPUs are integer thousandths of a CPU, durations are integer seconds. Docker reads `8G` as
8 GiB and Kubernetes reads it as 8·10⁹ bytes, so that spelling is refused here rather than guessed.
"""

from __future__ import annotations

import re

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
TIB = 1024 * GIB

_BINARY = {"Ki": KIB, "Mi": MIB, "Gi": GIB, "Ti": TIB}
_DOCKER = {"k": KIB, "m": MIB, "g": GIB, "t": TIB}
_SIZE = re.compile(r"(\d+)(?:\.(\d+))?(Ki|Mi|Gi|Ti|[kmgt]b?)?", re.ASCII)
_FOREIGN = r"([1-9]\d*) ?([kmgt])i?b?"
_AMBIGUOUS = re.compile(r"(\d+(?:\.\d+)?)([KMGTPE])([Bb]?)", re.ASCII)
_DURATION = r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?"
MIN_BARE_SIZE = MIB


class UnreadableValue(ValueError):
    """A scalar that is no size, CPU amount or duration; `fix` says what to type instead."""

    def __init__(self, message: str, fix: str, *, ambiguous: bool = False) -> None:
        super().__init__(message)
        self.fix = fix
        self.ambiguous = ambiguous


def parse_size(text: str) -> int:
    """Return the bytes that `text` means: `512m`, `1.5Gi`, `2147483648`.

    Raises UnreadableValue for spellings that Docker and Kubernetes read differently, for bare integers under 1 MiB
    and for sizes that are no whole number of bytes.
    """
    ambiguous = _AMBIGUOUS.fullmatch(text)
    if ambiguous:
        raise _two_readings(*ambiguous.groups())
    match = _SIZE.fullmatch(text)
    if not match:
        meant = re.fullmatch(_FOREIGN, text, re.ASCII | re.IGNORECASE)
        exact = f"{meant[1]}{meant[2].upper()}i" if meant else "a number and a unit, like 512Mi or 8Gi"
        raise UnreadableValue(f"{text!r} is not a size", f"write {exact}")
    whole, fraction, unit = match.groups()
    if unit is None:
        return _bare_size(text, whole, fraction)
    factor = _BINARY.get(unit) or _DOCKER[unit[0]]
    scaled = int(whole + (fraction or "")) * factor
    divisor: int = 10 ** len(fraction or "")
    if scaled % divisor:
        rounded = _ceil_div(scaled, divisor * MIB)
        raise UnreadableValue(f"{text} is not a whole number of bytes", f"write {rounded}Mi")
    return scaled // divisor


def _two_readings(number: str, letter: str, byte: str) -> UnreadableValue:
    power = "KMGTPE".index(letter) + 1
    decimal = f"{number}·10{'³⁶⁹'[power - 1] if power <= 3 else '^' + str(3 * power)}"
    suffix = {"K": "Ki", "M": "Mi", "G": "Gi", "T": "Ti"}.get(letter, "Ti")
    return UnreadableValue(
        f"{number}{letter}{byte} has two readings: {number} {suffix}B in Docker, {decimal} bytes in Kubernetes",
        f"write {number}{suffix}",
        ambiguous=True,
    )


def _bare_size(text: str, whole: str, fraction: str | None) -> int:
    if fraction:
        raise UnreadableValue(f"{text} has no unit", f"write {text}Gi, or the unit that you mean")
    value = int(whole)
    if value < MIN_BARE_SIZE:
        in_bytes = (
            f"{value}Gi or {value}Mi" if value < 4 * KIB else f"{value}Mi, or {_ceil_div(value, KIB)}Ki for bytes"
        )
        raise UnreadableValue(f"{text} without a unit is {value} bytes, less than one MiB", f"write {in_bytes}")
    return value


def format_size(size: int) -> str:
    """Return the shortest exact spelling in `Ki Mi Gi Ti`, else bytes; parse_size reads it back to the same number."""
    for unit, factor in reversed(_BINARY.items()):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def docker_size(size: int) -> str:
    """Return `size` bytes as Docker and Compose read them: `512m`, or plain bytes where that is not exact."""
    return f"{size // MIB}m" if size % MIB == 0 else str(size)


def kubernetes_size(size: int) -> str:
    """Return `size` bytes as a Kubernetes quantity: `512Mi`, or plain bytes where that is not exact."""
    return f"{size // MIB}Mi" if size % MIB == 0 else str(size)


def human_size(size: int) -> str:
    """Return a rounded size for people: `311 MiB`, `2.0 GiB`."""
    for unit, factor in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if size >= factor:
            amount = size / factor
            return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:.0f} {unit}"
    return f"{size} bytes"


def needed_size(size: int) -> str:
    """Return a size of which less wouldn't do, rounded up as the preflight says it: `311 MiB`, `2048 MiB`."""
    return f"{_ceil_div(size, MIB)} MiB" if size < 10 * GIB else human_size(size)


def counted(number: int | str, noun: str) -> str:
    """Return a number of things in words: `8 CPUs`, `1 process`."""
    plural = "es" if noun.endswith(("s", "x", "tch", "sh")) else "s"
    return f"{number} {noun}{plural * (str(number) != '1')}"


def round_up(size: int, step: int) -> int:
    """Return the smallest multiple of `step` that is at least `size`; both in bytes."""
    return _ceil_div(size, step) * step


def _ceil_div(number: int, divisor: int) -> int:
    return -(-number // divisor)


def parse_cpus(text: str) -> int:
    """Return thousandths of a CPU: `4` → 4000, `1.5` → 1500, `500m` → 500."""
    if re.fullmatch(r"\d+m", text, re.ASCII):
        return int(text[:-1])
    match = re.fullmatch(r"(\d+)(?:\.(\d{1,3}))?", text, re.ASCII)
    if not match:
        raise UnreadableValue(f"{text!r} is not a number of CPUs", "write 4, 1.5 or 500m")
    return int(match[1]) * 1000 + int((match[2] or "").ljust(3, "0"))


def format_cpus(milli: int) -> str:
    """Return CPUs as a plain decimal without trailing zeros: 1500 → `1.5`."""
    whole, rest = divmod(milli, 1000)
    return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)


def kubernetes_cpus(milli: int) -> str:
    """Return thousandths of a CPU as a Kubernetes quantity in its own canonical form: `2`, `1500m`."""
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def parse_duration(text: str) -> int:
    """Return seconds: `30s`, `5m`, `1h30m`, `2d`."""
    match = re.fullmatch(_DURATION, text, re.ASCII)
    if not match or not any(match.groups()):
        hint = f"write {text}s" if text.isdigit() else "write 30s, 5m or 1h30m"
        raise UnreadableValue(f"{text!r} is not a duration", hint)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def format_duration(seconds: int) -> str:
    """Return `90` as `1m30s`; parse_duration reads it back."""
    hours, rest = divmod(seconds, 3600)
    minutes, secs = divmod(rest, 60)
    parts = f"{hours}h" * bool(hours) + f"{minutes}m" * bool(minutes) + f"{secs}s" * bool(secs)
    return parts or "0s"


def age(seconds: float) -> str:
    """Return a time span in its one or two largest units: `42s`, `3m12s`, `2h5m`, `4d3h`."""
    total = max(0, int(seconds))
    minutes, secs = divmod(total, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{secs}s" if minutes else f"{secs}s"
