"""`$(NAME)` and `$$` in command, args, env and probes, undone as the kubelet does it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_DOLLAR = re.compile(r"\$(?:(\$)|\(([^)]*)(\))?)")  # a reference that nothing closes reaches to the end


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return `text` as the kubelet passes it on: `$$` is one dollar anywhere, `$(NAME)` its value if it has one.

    Values are put in as they are and not expanded again.
    """
    if "$" not in text:
        return text

    def read(match: re.Match[str]) -> str:
        return variables.get(match[2], match[0]) if match[3] else match[0].replace("$$", "$")

    return _DOLLAR.sub(read, text)


def references(text: str) -> Iterator[str]:
    """Yield the name in each `$(NAME)`, whether or not it is a variable."""
    for match in _DOLLAR.finditer(text):
        if match[3]:
            yield match[2]
