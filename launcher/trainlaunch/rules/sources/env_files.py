"""Files of variables beside a Compose file: the .env that Compose reads, and the samples that users copy to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trainlaunch.repository.own_files import own_text

# As Compose's reader takes it: `export` in front, blanks around, and a colon for the sign.
_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*[=:](.*)")
_SAMPLES = (
    *(f".env{sign}{each}" for each in ("example", "sample", "template", "dist", "default") for sign in ".-_"),
    *("env.example", "env.sample", "env.template", "example.env", "sample.env", "template.env", ".env.local"),
)


def lines_of(path: Path, beside: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each variable of a file in the same repository; none of what can't be read."""
    matches = (_LINE.fullmatch(each.strip()) for each in own_text(path, beside).splitlines())
    yield from ((each[1], each[2].strip()) for each in matches if each is not None)


def named_beside(file: Path) -> frozenset[str]:
    """Return the variables that the .env beside a Compose file has, or a sample of one."""
    paths = (file.with_name(each) for each in (".env", *_SAMPLES))
    return frozenset(name for path in paths for name, _ in lines_of(path, file))
