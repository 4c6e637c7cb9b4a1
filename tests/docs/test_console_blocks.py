"""Every ```console block of README.md and docs/ is what its commands really print, from the root of the repository.

A block has lines `$ COMMAND`, each followed by what it prints on stdout (write `2>&1` to show stderr too).
`pytest tests/docs --update-goldens` writes what the commands print now.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.shell_text import run_text

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
BLOCK = re.compile(r"^```console\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(page, match["body"]) for page in PAGES for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def printed(body: str) -> str:
    """Return the block as its commands print it now."""
    commands = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
    environment = {"NO_COLOR": "1", "COLUMNS": "100"}
    return "".join(f"$ {each}\n{run_text(each, ROOT, environment, stderr=False)}" for each in commands)


@pytest.mark.parametrize(("page", "body"), BLOCKS, ids=[f"{page.name}-{n}" for n, (page, _) in enumerate(BLOCKS)])
def test_a_console_block_is_what_its_commands_print(page: Path, body: str, request: pytest.FixtureRequest) -> None:
    """The text in the page equals the output, byte for byte."""
    now = printed(body)
    if request.config.getoption("--update-goldens"):
        page.write_text(page.read_text(encoding="utf-8").replace(body, now), encoding="utf-8")
        return
    assert body == now, f"{page.name} shows other output; if meant: pytest tests/docs --update-goldens"


def test_the_readme_has_console_blocks() -> None:
    """The README shows real output, so there is something to compare."""
    assert sum(page.name == "README.md" for page, _ in BLOCKS) >= 1
