"""The lines of a look by their first word, and the pids as a container sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Lines(NamedTuple):
    """The lines by their first word, without it."""

    by_word: dict[str, list[str]]

    def of(self, word: str) -> list[str]:
        """Return the lines of a word."""
        return self.by_word.get(word, [])

    def by_pid(self, word: str) -> Iterator[tuple[int, str]]:
        """Yield the lines of a word whose second word is a pid, with it."""
        for line in self.of(word):
            pid, _, rest = line.partition(" ")
            if pid.isdigit():
                yield int(pid), rest


def inner_pids(lines: Lines) -> dict[int, int]:
    """Return each process's pid as its container sees it: what the job's own log and files in /dev/shm name."""
    return {
        pid: int(words.split()[-1]) for pid, words in lines.by_pid("status") if re.match(r"NSpid:[\s\d]+\d$", words)
    }


def whole(text: str) -> int | None:
    """Return a whole number, None for anything else."""
    return int(text) if text.strip().isdigit() else None


def real(text: str) -> float | None:
    """Return a number, None for anything else."""
    try:
        return float(text)
    except ValueError:
        return None
