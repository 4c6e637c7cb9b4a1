"""What the words of a command give to a script's options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_SHORT = 2  # characters of an option like -j


def option_at(argv: Sequence[str], at: int) -> tuple[str, str | None]:
    """Return an option with what joins it to its value, `=` or a space, and the value; None where the command ends."""
    name, joined, value = argv[at].partition("=")
    if joined:
        return f"{name}=", value
    return f"{name} ", argv[at + 1] if at + 1 < len(argv) else None


def given_to(argv: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield what a command gives to an option by whichever of its names, as option_at has it: of `-j4` `-j`, `4`."""
    for at, word in enumerate(argv):
        if word.partition("=")[0] in names:
            yield option_at(argv, at)
        elif any(re.fullmatch(rf"{each}\d+", word) for each in names if re.fullmatch(r"-\w", each)):
            yield word[:_SHORT], word[_SHORT:]
