"""Kubernetes quantities: one reading of each spelling, as the API server's own parser reads it."""

from __future__ import annotations

import re

# As the parser takes a text apart: no digit is needed, and `1.` is one. A suffix is looked up afterwards.
_QUANTITY = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?((?:[eEinumkKMGTP]+[+-]?|[+-])[0-9]*)?", re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
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
    match = _EXPONENT.fullmatch(suffix)
    return int(match[1]) if match else None
