"""Pages and manuals have short sentences: none of more than 25 words, and few on average."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT

MOST, AVERAGE = 25, 12.5
PAGES = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "launcher/trainlaunch/manuals").glob("*.md"))
_CODE = re.compile(r"^( *)(```|~~~).*?^\1\2|<!--.*?-->|(?<=\n\n) {4}[^\n]*(\n {4}[^\n]*)*", re.M | re.S)
_ONE_WORD = re.compile(r"(`+).+?\1", re.S)
_LINK = re.compile(r"\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)[\"*)]* +(?=\S)")
_BEGINS = re.compile(r" *(?:[-*] |\d+\. |#|\||$)")  # a list's item, a heading, a table's row, an empty line


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence outside code, tables and headings, with its number of words; a code span is one word."""
    prose = _LINK.sub("]", _ONE_WORD.sub("X", _CODE.sub("", text)))
    lines = [f"\0{line}" if _BEGINS.match(line) else line for line in prose.split("\n")]
    for paragraph in re.split(r"\0", " ".join(lines)):
        if not paragraph.lstrip().startswith(("|", "#")):
            for sentence in _END.split(re.sub(r"^ *(?:[-*]|\d+\.) +", "", paragraph)):
                if words := sum(bool(re.search(r"\w", word)) for word in sentence.split()):
                    yield words, " ".join(sentence.split())


def test_a_sentence_ends_where_a_reader_breathes() -> None:
    """Words are counted over lines, in list items too; code, links, tables and headings don't count."""
    text = "# A b c\n\nOne `two three` [four](x y.md). torch is\nnext, e.g. here!\n\n    no code\n"
    text += "\n- An item\n  goes on.\n- B\n\n| no | row |\n"
    assert [words for words, _ in sentences(text)] == [3, 5, 4, 1]


def test_no_sentence_is_long() -> None:
    """A reader with English as a second language reads each one once."""
    long = [f"{path.name}, {words} words: {text[:110]}" for path in PAGES for words, text in sentences(path.read_text())
            if words > MOST]  # fmt: skip
    assert not long, f"{len(long)} sentences have more than {MOST} words:\n" + "\n".join(long)


def test_sentences_are_short_on_average() -> None:
    """The average stays where it is."""
    counts = [words for path in PAGES for words, _ in sentences(Path(path).read_text())]
    assert sum(counts) / len(counts) <= AVERAGE, f"{sum(counts) / len(counts):.2f} words on average"
