"""Kubernetes quantities, as the API server writes them back."""

from __future__ import annotations

import math
import re
from fractions import Fraction

_QUANTITY = re.compile(r"([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)")
_POWERS = {
    suffix: Fraction(1000) ** power
    for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
}
_POWERS |= {f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", 1)}


def bytes_of(quantity: object) -> int:
    """Return a quantity as whole bytes, rounded up as Kubernetes does; 0 for what is none."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        return 0
    number = Fraction(match[1] + (match[2] or "")) if match[2] else Fraction(match[1])
    return math.ceil(number * _POWERS[match[3] or ""])
