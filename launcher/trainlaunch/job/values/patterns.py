"""Regular expressions of a policy, in RE2: matched in linear time, and with one meaning here and in a cluster's CEL.

google-re2 comes with the extra `policy` alone, since it has no wheel for musl.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

ANY_VALUE = ".+"  # any that is not empty, which needs no regular expression


class PatternProblem(NamedTuple):
    """What is said of a pattern that can't be matched, behind its name, and what to do."""

    said: str
    fix: str


def pattern_problem(pattern: str) -> PatternProblem | None:
    """Return what is wrong with a pattern, None for nothing; without google-re2, any that isn't ANY_VALUE."""
    if pattern == ANY_VALUE:
        return None
    try:
        import re2
    except ImportError:
        return PatternProblem(
            "is a regular expression, and google-re2, which reads those, is not installed",
            f"run `pip install 'trainlaunch[policy]'`, or write {ANY_VALUE} for any value",
        )
    try:
        _compiled(pattern)
    except re2.error as error:
        wrong = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        return PatternProblem(
            f"is not a regular expression (RE2): {wrong}", f"correct it, or write {ANY_VALUE} for any value"
        )
    return None


def matches(pattern: str, value: str) -> bool:
    """Return whether a pattern without a problem is that of the whole value."""
    return bool(value) if pattern == ANY_VALUE else _compiled(pattern).fullmatch(value) is not None


@functools.cache
def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False  # they are ours to say
    options.dot_nl = True
    return re2.compile(pattern, options)
