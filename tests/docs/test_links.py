"""Every relative link of every page leads to a file that is there and to a heading that it has."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
FENCED = re.compile(r"^( *)(```+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def prose(text: str) -> str:
    """Return the page without its code, in which brackets are no links and `#` is no heading."""
    return CODE.sub("", FENCED.sub("", text))


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings: lower case, without punctuation, a hyphen for each space."""
    titles = HEADING.findall(FENCED.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page: Path) -> list[str]:
    """Return the relative links of a page that lead nowhere."""
    found = []
    for link in LINK.findall(prose(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            found.append(link)
    return found


def ours(page: Path) -> bool:
    """Return whether a page is this repository's, and not what a build or an installation put here."""
    inside = page.relative_to(ROOT).parts
    return not any(part.startswith(".") or part == "build" for part in inside)


def test_relative_links_lead_somewhere() -> None:
    """A renamed page or heading takes its links along."""
    pages = [page for page in sorted(ROOT.rglob("*.md")) if ours(page)]
    links = {page.relative_to(ROOT).as_posix(): broken(page) for page in pages}
    assert len(links) > 20
    assert {page: lead_nowhere for page, lead_nowhere in links.items() if lead_nowhere} == {}


def test_a_link_to_a_missing_file_or_heading_is_found(tmp_path: Path) -> None:
    """The check sees both kinds of broken link, and none in code or of other sites."""
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b`: c\n[1](#a-b-c) [2](#no) [3](page.md#a-b-c) [4](gone.md) [5](https://x/y#z) `[6](gone)`\n"
        "```\n# d\n[7](gone)\n```\n[8](page.md#d)\n",
        encoding="utf-8",
    )
    assert broken(page) == ["#no", "gone.md", "page.md#d"]


def test_the_index_has_every_page_of_the_documentation() -> None:
    """A page that docs/README.md doesn't name is not found by who reads it."""
    index = ROOT / "docs" / "README.md"
    linked = {link.partition("#")[0] for link in LINK.findall(index.read_text(encoding="utf-8"))}
    assert {page.name for page in index.parent.glob("*.md")} - linked == {"README.md"}
