"""What somebody meant who misspelt a name."""

from __future__ import annotations

from collections.abc import Iterable


def closest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the known name that is spelled most like `word`, `` where none is as alike as `cutoff`, of 1.0, says."""
    import difflib  # only on the way to an error

    return "".join(difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff))
