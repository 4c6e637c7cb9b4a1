"""`$(NAME)` and `$$` in command, args, env and probes, undone as the kubelet does it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_DOLLAR = re.compile(r"\$(?:(\$)|\(([^)]*)\))")


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return `text` as the kubelet passes it on: `$$` is one dollar anywhere, `$(NAME)` its value if it has one.

    Values are put in as they are and not expanded again.
    """
    if "$" not in text:
        return text
    return _DOLLAR.sub(lambda match: "$" if match[1] else variables.get(match[2], match[0]), text)


def references(text: str) -> Iterator[str]:
    """Yield the name in each `$(NAME)`, whether or not it is a variable."""
    for match in _DOLLAR.finditer(text):
        if match[2] is not None:
            yield match[2]
