"""Containers that commands start, in scripts, Makefiles, Markdown and wherever else a text has shell in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from trainlaunch.diagnostics import Edit
from trainlaunch.formats.docker.line import PROGRAMS, Line, commands, run_lines
from trainlaunch.formats.docker.literals import NO_LITERALS, Literals, literals_of_make, literals_of_shell
from trainlaunch.formats.docker.placed_values import PlacedText
from trainlaunch.formats.docker.read import workload_of
from trainlaunch.formats.docker.shell_lexer import Word as ShellWord
from trainlaunch.formats.docker.shell_lexer import tokens
from trainlaunch.rules.sources.container_facts import engine_text
from trainlaunch.rules.sources.source_text import GITHUB, GITLAB, SHELL, SourceContainer, SourceText, SourceWord
from trainlaunch.rules.sources.training_commands import argv_of, argvs_of

Region = tuple[int, int]
MAKE_SHELL = "recipes"  # the shell of recipes, in which make has put its own variables
_FENCE = re.compile(
    r"^[ \t]*(?P<mark>`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})[ \t]*(?P<word>[\w-]*)[^\n]*(?:\n|\Z)", re.MULTILINE
)
_INDENTED = re.compile(r"(?:\A|(?<=\n)[ \t]*\n)((?:(?:[ ]{4}|\t)[^\n]*(?:\n|\Z)|[ \t]*\n)+)")
_STARTS = re.compile(r"^[ \t]+(?:\$ )?(?:sudo )?(?:nvidia-docker|docker|podman|nerdctl) run\b", re.MULTILINE)
# A line of prose that is a command, with the lines that continue it.
_BARE = re.compile(
    r"^ {0,3}(?:\$ )?(?:sudo )?(?:nvidia-docker|docker|podman|nerdctl) run -[^\n]*(?:(?<=\\)\n[^\n]*)*", re.MULTILINE
)
_DIRECTIVE = re.compile(r"\.\. (?:code-block|code|sourcecode|prompt)::[ \t]*([\w-]*)")
_SHELL_WORDS = frozenset({"", "sh", "bash", "shell", "console", "zsh", "shell-session", "terminal", "shellsession"})
# A variable of such a name is an image, and so one word.
_PLACEHOLDER = re.compile(r"(?<=[\s=:/\"'])<([A-Za-z](?:[\w./ -]{0,60}\w)?)>(?=[:/,\s\"'\\]|$)")
_IMAGE_NAME = re.compile(
    r"\$[{(]?((?:\w+_)?(?:image|img)(?:_?(?:name|tag|uri|url|ref|full))?)[})]?(?!\w)", re.IGNORECASE | re.ASCII
)
# What a shell has printed in front of a command, as `(base) user@host:~/work$ `.
_PROMPT = re.compile(r"^[ \t]*(?:\([\w.-]+\)[ ])?[\w.-]+@[\w.-]+:[\w./~-]*[$#](?=[ ]\S)", re.MULTILINE)
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_OF_MAKE = re.compile(r"^(?:export[ ]+)?([A-Za-z_][\w.-]*)[ \t]*(?:[:?]{0,2}=)[ \t]*(.*?)[ \t]*(?:#.*)?$", re.MULTILINE)
_DECLARING = frozenset({"export", "local", "readonly", "declare", "typeset"})
_ONE_WORD = re.compile(r"[\w./:@${}()+][\w./:@${}()+%,=-]*")
# Behind make's own prefixes; a dash before an option is that option's, and one before a blank a list's.
_RECIPE = re.compile(
    r"^(?:\t|[^\t\n#=:]+:(?!=)[^\n=;#]*;)(?:[ \t@+]|-(?![-\s]|(?:\w|it|ti|dit|itd)[ \t=]))*((?:[^\n]*\\\n)*[^\n]*\n?)",
    re.MULTILINE,
)


def whole(text: str) -> tuple[Region, ...]:
    """Return the one region that a script is."""
    return ((0, len(text)),)


def fences(text: str) -> Iterator[Region]:
    """Yield what may be shell in Markdown: fences, and lines and indented blocks that start a container."""
    at = 0
    for word, start, end in (*fenced(text), ("", len(text), len(text))):
        blocks_before = (each.span(1) for each in _INDENTED.finditer(text, at, start))
        yield from (each for each in blocks_before if _STARTS.search(text, *each))
        yield from (each.span() for each in _BARE.finditer(text, at, start) if not _in_comment(text, each.start()))
        if word in _SHELL_WORDS and end > start:
            yield start, end
        at = end


def _in_comment(text: str, at: int) -> bool:
    return text.rfind("<!--", 0, at) > text.rfind("-->", 0, at)


def fenced(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the word of each fence of Markdown, and where its inside stands."""
    at = 0
    while opened := _FENCE.search(text, at):
        closing = re.compile(rf"^[ \t]*{opened['mark'][0]}{{{len(opened['mark'])},}}[ \t]*$", re.MULTILINE)
        closed = closing.search(text, opened.end())
        end = closed.start() if closed else len(text)
        yield opened["word"].lower(), opened.end(), end
        at = closed.end() if closed else len(text)


def blocks(text: str) -> Iterator[Region]:
    """Yield the inside of each block of reStructuredText that may be shell: of a directive, or behind `::`."""
    at, begun, outside = 0, -1, 0
    for line in text.splitlines(keepends=True):
        indent = len(line) - len(line.lstrip())
        if begun >= 0 and line.strip() and indent <= outside:
            yield begun, at
            begun = -1
        if begun < 0:
            bare = line.strip()
            directive = _DIRECTIVE.match(bare)
            word = directive[1].lower() if directive else "" if bare.endswith("::") and bare[:3] != ".. " else None
            if word is not None and word in _SHELL_WORDS:
                begun, outside = at + len(line), indent
        at += len(line)
    if begun >= 0:
        yield begun, at


def recipes(text: str) -> Iterator[Region]:
    """Yield each recipe line of a Makefile, with the lines that continue it, and what stands behind `target: ;`."""
    for match in _RECIPE.finditer(text):
        yield match.span(1)


def read_regions(
    whole: str, name: str, regions: Iterable[Region], kind: str = SHELL, shell_text: str | None = None
) -> SourceText:
    """Return what the shell in these regions of a text starts and runs.

    `shell_text` is what a shell gets of it, as long as it, where that isn't what is written.
    """
    text, source = shell_text or whole, PlacedText(whole, name)
    # `<folder>` in a text for people is no redirection: a variable of the same length stands for it.
    text = _PLACEHOLDER.sub(lambda match: "$" + re.sub(r"\W", "_", match[1]) + "_", text)
    text = _PROMPT.sub(lambda match: " " * len(match[0]), text)
    containers: list[SourceContainer] = []
    found: list[tuple[SourceWord, ...]] = []
    places = list(regions)
    starts = any(each in text for each in PROGRAMS)
    single = frozenset(_single(text, places) if starts else ())
    literals = literals_of_make(text) if kind == MAKE_SHELL else _literals(text, places)
    for start, end in places:
        own = _literals(text, [(start, end)]) if kind in {GITHUB, GITLAB} else literals
        for line in run_lines(text, start, end, single, own) if starts else ():
            containers.append(_written(line, source, len(containers)))
        found += commands_of(text, start, end, own)
    kind = SHELL if kind == MAKE_SHELL else kind
    return SourceText(kind, whole, source, tuple(containers), commands=tuple(found))


def _single(text: str, regions: Iterable[Region]) -> Iterator[str]:
    """Yield the variables that are one word wherever they stand: each value that the text gives them is one."""
    if "$" not in text:
        return
    yield from (match[1] for match in _IMAGE_NAME.finditer(text))
    values: dict[str, list[str]] = {}
    for start, end in regions:
        for words, _ in commands(tokens(text, start, end)):
            for name, value in _assignments(words):
                values.setdefault(name, []).append(value)
    for match in _OF_MAKE.finditer(text) if "$(" in text else ():
        values.setdefault(match[1], []).append(match[2].strip("\"'"))
    for name, given in values.items():
        if all(_ONE_WORD.fullmatch(_default(each)) for each in given):
            yield name


def _assignments(words: Sequence[ShellWord]) -> Iterator[tuple[str, str]]:
    """Yield names and values of a command that only assigns."""
    rest = words[1:] if words and words[0].text in _DECLARING else words
    found = [_ASSIGNED.fullmatch(each.text) for each in rest if not each.text.startswith("-")]
    if all(found):
        yield from ((match[1], match[2]) for match in found if match is not None)


def _default(value: str) -> str:
    """Return what `${NAME:-value}` is where nobody sets NAME; any other text as it is."""
    match = re.fullmatch(r"\$\{\w+:?[-=]([^{}]*)\}", value)
    return match[1] if match else value


def _literals(text: str, regions: Iterable[Region]) -> Literals:
    """Return what the regions of a text, one shell's, set to literals."""
    listed = [each for start, end in regions for each in commands(tokens(text, start, end))] if "$" in text else []
    return literals_of_shell(text, listed)


def commands_of(text: str, start: int, end: int, literals: Literals = NO_LITERALS) -> Iterator[tuple[SourceWord, ...]]:
    """Yield the words of each simple command of a region."""
    for words, _ in commands(literals.filled(tokens(text, start, end))):
        if words:
            yield tuple(SourceWord(each.text, each.start, each.end, each.known) for each in words)


def _written(line: Line, source: PlacedText, number: int) -> SourceContainer:
    workload = workload_of(line, source, number)
    place = source.span(line.run.end, line.run.end)

    def add(size: int) -> tuple[Edit, ...]:
        return (Edit(place, f" --shm-size={engine_text(size)}"),)

    given = line.image is not None and line.image.start == line.run.start  # both by one variable, whose flag it is
    podman = any("podman" in each for each in line.command)
    words = tuple(each.text for each in line.arguments) if line.image is not None else ()
    argv = argv_of(workload, command=words)
    return SourceContainer(workload, argvs_of(argv), add_shm=None if given else add, podman=podman, argv=argv)
