"""Regular expressions of a policy, in RE2: matched in linear time, and with one meaning here and in a cluster's CEL."""

from __future__ import annotations

import functools
from typing import Any


def pattern_error(pattern: str) -> str | None:
    """Return what is wrong with a pattern, None for nothing."""
    import re2

    try:
        _compiled(pattern)
    except re2.error as error:
        return error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
    return None


def matches(pattern: str, value: str) -> bool:
    """Return whether a pattern without error is that of the whole value."""
    return _compiled(pattern).fullmatch(value) is not None


@functools.cache
def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False  # they are ours to say
    options.dot_nl = True
    return re2.compile(pattern, options)
