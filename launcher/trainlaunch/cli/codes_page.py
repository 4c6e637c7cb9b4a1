"""Writes docs/codes.md and a page a code from the manuals in trainlaunch/manuals, so that they can't differ."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from trainlaunch.manuals import Manual, manuals

_INTRODUCTION = """\
# What a code means

<!-- written by `python -m trainlaunch.cli.codes_page` from the manuals in launcher/; edit those -->

Each error, warning and cause has a code. `trainlaunch explain CODE` prints its page offline. Codes are never reused.

| codes | what they are about |
|---|---|
| 1xx | the job file and the command line |
| 2xx | CPUs, memory and /dev/shm |
| 3xx | files that people wrote by hand; [rules.md](rules.md) lists all rules of `lint` |
| 4xx | what a target does not support |
| 5xx | the machine and its engine |
| 6xx | why a job died; [troubleshooting.md](troubleshooting.md) lists them by what is on the screen |
| 7xx | what a measurement found in a script |
| 9xx | a bug of trainlaunch |

"""
_HEADER = "<!-- written by `python -m trainlaunch.cli.codes_page` from the manuals in launcher/; edit those -->"


def codes_markdown() -> str:
    """Return docs/codes.md: a table of all codes."""
    rows = "".join(
        f"| [{each.code}](codes/{each.code}.md) | {each.name} | {each.title} |\n" for each in manuals().values()
    )
    return _INTRODUCTION + "| code | name | what it says |\n|---|---|---|\n" + rows


def code_pages() -> dict[str, str]:
    """Return the pages of docs/codes/ by file name."""
    return {f"{each.code}.md": _page(each) for each in manuals().values()}


def _page(manual: Manual) -> str:
    told, references, sources = manual.sections.partition("**References**: ")
    linked = re.sub(r"docs/([a-z-]+\.md)", r"[\1](../\1)", sources)
    return f"{_HEADER}\n\n# {manual.code} {manual.name}\n\n{manual.title}\n\n{told}{references}{linked}"


if __name__ == "__main__":
    docs = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    (docs / "codes.md").write_text(codes_markdown(), encoding="utf-8")
    for name, text in code_pages().items():
        (docs / "codes" / name).write_text(text, encoding="utf-8")
