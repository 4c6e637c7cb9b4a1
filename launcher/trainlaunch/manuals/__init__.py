"""What each code means: a page of Markdown a family, a section a code, read when somebody asks.

    ## TL307 shm-unlimited          code and name
    A /dev/shm in memory …          the title: one paragraph
    **Why**: … **Example**: …       the sections; those from **Fix** on are printed in docs/rules.md alone

A fence of kind `pod` has the lines of a container, and behind a blank line those of the pod's spec after it; it becomes
a whole manifest. The tests run the examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
_SECTION = re.compile(r"^## (TL\d{3}) (\S+)\n\n(.*?)\n\n(.*?)(?=^## TL|\Z)", re.MULTILINE | re.DOTALL)
_POD_FENCE = re.compile(r"^```pod\n((?:(?!```).*\n)*)```$", re.MULTILINE)
_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: train
    image: trainer:1
"""


class Manual(NamedTuple):
    """The manual of one code: its `name`, a `title` of one paragraph, the sections after it, and the page's stem."""

    code: str
    name: str
    title: str
    sections: str
    page: str

    @property
    def explained(self) -> str:
        """The sections without those for an author and a reviewer of the rule."""
        return self.sections.partition("\n\n**Fix**: ")[0].rstrip("\n") + "\n"


@cache
def manuals() -> dict[str, Manual]:
    """Return every manual by its code, in order. Raises ValueError where a code has two."""
    every = [manual for path in sorted(FOLDER.glob("*.md")) for manual in _of_page(path)]
    known = {each.code: each for each in sorted(every)}
    if len(known) != len(every):
        raise ValueError("a code has two manuals")
    return known


def find_manual(asked: str) -> Manual | None:
    """Return the manual of a code or name; letters in any case, `_` as `-`. None where there is none."""
    known = manuals()
    by_name = {each.name: each for each in known.values()}
    return known.get(asked.upper()) or by_name.get(asked.lower().replace("_", "-"))


def _of_page(path: Path) -> Iterator[Manual]:
    for code, name, title, sections in _SECTION.findall(path.read_text(encoding="utf-8")):
        yield Manual(code, name, title, _POD_FENCE.sub(_manifest, sections).rstrip("\n") + "\n", path.stem)


def _manifest(fence: re.Match[str]) -> str:
    container, _, spec = fence[1].partition("\n\n")
    lines = [f"    {line}" for line in container.splitlines()] + [f"  {line}" for line in spec.splitlines()]
    return "```kubernetes\n" + _POD + "\n".join(lines) + "\n```"
