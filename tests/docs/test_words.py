"""The words of docs/glossary.md hold: what it replaces is in no message, help, manual, page, comment or docstring."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "launcher/trainlaunch"


class Word(NamedTuple):
    """A term of the glossary, what nobody writes in its place, and a sentence of each that tells the two apart."""

    term: str
    instead: str
    caught: str
    ordinary: str


WORDS = (
    Word("one-epoch peak", r"(the|a|its|whose|known|planned|computed|below|above|epoch's) need\b(?! to)",
         "shm_size is below the need", "the DataLoaders need 2 GiB"),
    Word("multi-epoch peak", r"multi_epoch", "plan for multi_epoch bytes", "the multi-epoch peak"),
    Word("upper bound", r"worst[_ ]case", "above worst_case 2.8 MiB", "at worst it is slow"),
    Word("minimum size", r"floors?\b", "the floor of 2 GiB", "flooring is rounding down"),
    Word("limit", r"ceilings?\b|cap(s|ped)?\b(?!-)", "a policy's ceilings", "--cap-add SYS_PTRACE"),
    Word("batch in use", r"(?<=[\d}] )held\b|batch(es)? held\b|held batch", "2 workers + 2 held",
         "a lock that another thread held"),
    Word("estimated process memory", r"working[_ ]sets?\b", "the working set exceeds it", "a working setup"),
    Word("supervisor", r"keepers?\b|(keeps|kept|keep) (the|a|that|this) run\b(?!')", "another process keeps that run",
         "the job keeps running"),
    Word("rendered file", r"renderings?\b(?! format)|(final|rendered|patched|docker|compose|kubernetes) texts?\b",
         "no rendering is in .", "the text of `sh -c`"),
    Word("stale file", r"left ?overs?\b", "leftovers of dead jobs", "what a job left there"),
    Word("convert", r"(take|takes|taken|taking) over\b", "--tty is not taken over", "what it takes"),
    Word("set", r"(un)?stated\b|states (?!of|are)|(or|and|then|to|must|may|can|doesn't) state\b",
         "resources.cpus is not stated", "the state of a local run"),
    Word("command", r"verbs?\b", "no verb of that name", "a verbose log"),
    Word("host", r"this machine\b", "this machine has no GPU", "another machine"),
    Word("PVC", r"(a|the|unbound|another|of) claims?\b(?! that a| about)", "keep checkpoints on a claim",
         "a resource claim may name a GPU"),
)  # fmt: skip

_ANY_WORD = re.compile(rf"(?<![\w-])(?:{'|'.join(word.instead for word in WORDS)})", re.I)
_COMMENT_OF_THESE = re.compile(rf"#.*?{_ANY_WORD.pattern}", re.I)  # or a string with a #: tokens tell
_CODE = re.compile(r"^( *)(```|~~~).*?^\1\2|^ {4}[^\n]*|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->|^#+ TL\d+[^\n]*", re.M | re.S)
# Scripts of shells and jobs, whose bytes are another format where they change; names of the preflight's numbers; the
# first line by which a file is known again.
_NOT_SAID = ("inside/", "cli/verbs/completion.py", "committed/cluster_changes.py", "render/kubernetes.py")
_NO_PROSE = re.compile(r"\(\?|\bimport \w")  # a pattern for words of others, a line of Python
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_MADE_OF_THESE = {"codes.md", "rules.md", "troubleshooting.md"}  # manuals and their names, which are never changed


def _said(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what a module may say: its strings without docstrings, and without what f-strings fill in."""
    tree = ast.parse(path.read_text())
    parts = [each for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for each in node.values]
    inner = {id(each) for each in parts}
    inner |= {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, _DOCUMENTED)
              and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.lineno, node.value


def _explained(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and the words of docstrings and comments of a module that has a word of these at all."""
    source = path.read_text()
    if not _ANY_WORD.search(" ".join(source.split())):
        return  # two modules of three: parsing is what takes the time
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node)):
            yield f"{path.name}:{node.body[0].lineno}", _prose(text).replace("\n", " ")
    if _COMMENT_OF_THESE.search(source):
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type == tokenize.COMMENT:
                    yield f"{path.name}:{token.start[0]}", _prose(token.string)


def _written() -> Iterator[tuple[str, str]]:
    """Yield each place and the words there: messages, manuals, pages; docs/command-line.md has the help."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        if not name.startswith(_NOT_SAID):
            yield from (
                (f"{name}:{line}", _prose(text))
                for line, text in _said(path)
                if " " in text and not _NO_PROSE.search(text)
            )
    pages = [*PACKAGE.glob("manuals/*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    for path in sorted(each for each in pages if each.name not in _MADE_OF_THESE):
        for line, text in enumerate(_prose(path.read_text()).split("\n"), 1):
            yield f"{path.name}:{line}", text


def _prose(text: str) -> str:
    return _CODE.sub(lambda code: "\n" * code[0].count("\n"), text)


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.term)
def test_a_pattern_tells_the_private_word_from_the_ordinary_one(word: Word) -> None:
    """Each is a row of the glossary, and its pattern takes the one sentence and leaves the other."""
    assert f"\n| {word.term} | " in (ROOT / "docs/glossary.md").read_text()
    assert re.search(rf"\b(?:{word.instead})", word.caught)
    assert not re.search(rf"\b(?:{word.instead})", word.ordinary)


def test_nothing_that_a_reader_sees_has_a_private_word() -> None:
    """Each line with the glossary's word for it. What is code, a key or a field stands in backticks."""
    wrong = _private(_written())
    assert not wrong, "\n".join(wrong)


def test_no_comment_or_docstring_has_a_private_word() -> None:
    """Who reads the code has read the pages, and meets the same words; identifiers stand in backticks."""
    wrong = _private(place for path in sorted(PACKAGE.rglob("*.py")) for place in _explained(path))
    assert not wrong, "\n".join(wrong)


def test_a_private_word_in_a_comment_or_a_docstring_is_found(tmp_path: Path) -> None:
    """Over the end of a line too; not in a string, in backticks or in lines of code."""
    (tmp_path / "planted.py").write_text(_PLANTED)
    found = _private(_explained(tmp_path / "planted.py"))
    assert [each.split(" in ")[0] for each in found] == ["planted.py:8: 'the need'", "planted.py:10: 'verb'"]


_PLANTED = '''"""What `worst_case` is.

    worst_case = need + 1

It is in bytes.
"""
def planned(verb="# a verb"):
    """Return the
    need."""
    return verb  # as the verb says it
'''


def _private(places: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{place}: {match[0]!r} in {text[max(0, match.start() - 50):match.end() + 40]!r}; write {_term(match[0])!r}"
            for place, text in places if (match := _ANY_WORD.search(text))]  # fmt: skip


def _term(private: str) -> str:
    return next(word.term for word in WORDS if re.match(word.instead, private, re.I))
