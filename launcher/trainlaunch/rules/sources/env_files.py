"""Files of variables beside a Compose file: the .env that Compose reads, and the samples that users copy to it."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path, PurePath

from trainlaunch.repository.own_files import own_text

# As Compose's reader takes it: `export` in front, blanks around, and a colon for the sign.
_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*[=:](.*)")
_NAMED_ENV = re.compile(r"(?:^|[._-])(?:dot)?env(?:$|[._-])", re.IGNORECASE)
_SAMPLE = re.compile(r"example|sample|template|dist|default", re.IGNORECASE)
_PROGRAMS = frozenset({".py", ".sh", ".js", ".ts", ".json", ".yaml", ".yml", ".toml", ".md"})
_MOST_SAMPLES = 8


def lines_of(path: Path, beside: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each variable of a file in the same repository; none of what can't be read."""
    matches = (_LINE.fullmatch(each.strip()) for each in own_text(path, beside).splitlines())
    yield from ((each[1], each[2].strip()) for each in matches if each is not None)


def named_beside(file: Path) -> frozenset[str]:
    """Return the variables that the .env beside a Compose file has, or a sample of one."""
    return _named_in(file.parent)


@functools.lru_cache(maxsize=16)  # of which each service asks for the same
def _named_in(folder: Path) -> frozenset[str]:
    try:
        names = sorted(each.name for each in folder.iterdir())
    except OSError:
        return frozenset()
    samples = [name for name in names if _is_sample(PurePath(name))][:_MOST_SAMPLES]
    return frozenset(each for name in (".env", *samples) for each, _ in lines_of(folder / name, folder / ".env"))


def _is_sample(name: PurePath) -> bool:
    return bool(_NAMED_ENV.search(name.name) and _SAMPLE.search(name.name)) and name.suffix not in _PROGRAMS
