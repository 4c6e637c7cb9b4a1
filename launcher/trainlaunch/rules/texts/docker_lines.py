"""Lines of docker run that docker refuses, or doesn't get whole."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from trainlaunch.diagnostics import Edit, Severity
from trainlaunch.formats.docker.table import FLAGS, SHORT, SWITCHES
from trainlaunch.formats.workload import ABSENT, Workload
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import text_rule
from trainlaunch.rules.sources.container_facts import command_span, has_gpu
from trainlaunch.rules.sources.instructions import is_command
from trainlaunch.rules.sources.source_text import SourceContainer, SourceText, SourceWord

_GOES_ON = re.compile(r"--?[A-Za-z]|[a-z0-9][\w.-]*(?:/[\w.-]+)*:[\w.-]+$")  # an option, or an image with its tag
_OWN = re.compile(r"(?:--(?:shm-size|ipc|gpus)[= ](?:all|host|\d+[bkmgBKMG])|--rm)(?!\S)")  # what few programs have


class _Line(NamedTuple):
    """A command that starts a container: its words behind `run`, and the words of the command behind it."""

    container: SourceContainer
    words: tuple[SourceWord, ...]
    following: tuple[SourceWord, ...]

    @property
    def workload(self) -> Workload:
        return self.container.workload


def _lines(file: SourceText) -> Iterator[_Line]:
    lines = {each.workload.span: each for each in file.containers if each.workload.format == "docker_run"}
    for command, following in itertools.zip_longest(file.commands if lines else (), file.commands[1:], fillvalue=()):
        spans = [file.source.span(each.start, each.end) for each in command]
        run = next((place for place, span in enumerate(spans) if span in lines), None)
        if run is not None:
            yield _Line(lines[spans[run]], command[run + 1 :], following)


@text_rule("TL318", Severity.ERROR)
def flag_with_underscores(file: SourceText) -> Iterator[Problem]:
    """A flag of a container's line is one that docker knows by another spelling."""
    for line in _lines(file):
        for word in line.words:
            name = word.text.partition("=")[0]
            right = name.lstrip("-").replace("_", "-")
            wrong = name.startswith("-") and ("_" in name or not name.startswith("--")) and right in FLAGS
            if word.known and wrong and not {name, f"--{word.text}"}.isdisjoint(line.workload.rest):  # before the image
                yield _misspelled(file, word, name, right)._replace(about=line.workload.place)


def _misspelled(file: SourceText, word: SourceWord, name: str, right: str) -> Problem:
    start = word.start + file.text[word.start : word.end].find(name)
    span = file.source.span(start, start + len(name))
    return Problem(
        f"docker run has no flag {name}",
        f"write --{right}",
        f"docker stops with `unknown flag: {name}`, exit 125; underscores are Compose's"
        if name.startswith("--")
        else f"docker reads the letters of {name} as flags of their own, and stops with exit 125",
        span=span,
        edits=(Edit(span, f"--{right}"),),
        safe=file.text.startswith(name, start),
    )


@text_rule("TL385", Severity.WARNING)
def docker_line_cut(file: SourceText) -> Iterator[Problem]:
    """A docker line with GPUs or a /dev/shm ends in front of its image, or has docker's own options behind that."""
    for line in _lines(file):
        workload = line.workload
        if "unclear" in workload.rest or not line.words:
            continue
        if line.container.argv and _OWN.match(" ".join(line.container.argv[:2])):
            problem = _options_behind(line)
        elif has_gpu(workload) or workload.shm.kind != ABSENT:
            problem = _line_ends(file, line)
        else:
            problem = None
        if problem is not None:
            yield problem._replace(about=workload.place)


def _line_ends(file: SourceText, line: _Line) -> Problem | None:
    """Return what is wrong with a line that has no image, and whose next one goes on with it."""
    why = "a shell takes what follows as another command; docker finds no image, or one that is called ` `"
    blank = next((each for each in line.words if each.known and each.text.isspace()), None)
    rest = re.compile(r"[ \t]*(#[^\n]*)?(?=\n|$)").match(file.text, blank.end) if blank is not None else None
    if blank is not None and rest is not None:
        span = file.source.span(blank.start + 1, rest.end())
        return Problem(
            f"a {'comment' if rest[1] else 'blank'} stands behind the backslash, so the line ends there",
            "let the backslash be the last character of the line",
            why,
            span=span,
            edits=(Edit(span, ""),),
            safe=not rest[1],
        )
    last, first = line.words[-1], line.following[0] if line.following else None
    between = file.text[last.end : first.start] if first is not None else ""
    goes_on = first is not None and re.fullmatch(r"[ \t]*\n[ \t]*", between) and _GOES_ON.match(first.text)
    if line.workload.image is not None or not goes_on:
        return None
    span = file.source.span(last.end, last.end)
    return Problem(
        "the docker line ends in front of its image",
        "end the line with a backslash, as the next one goes on with it",
        why,
        span=file.source.span(last.start, last.end),
        edits=(Edit(span, " \\"),),
    )


def _options_behind(line: _Line) -> Problem | None:
    """Return what is wrong with docker's options behind an image, where no other word may be the image."""
    argv = line.container.argv
    at = 0
    while at < len(argv) and argv[at].startswith("-"):
        short = SHORT.get(argv[at][-1]) if not argv[at].startswith("--") else None
        name = short.name if short is not None else argv[at].lstrip("-")
        at += 2 if name in FLAGS and name not in SWITCHES else 1
    if argv[at:] and not is_command(argv[at:]):
        return None
    return Problem(
        f"{argv[0]} stands behind the image, and is no option of docker's there",
        "write it in front of the image",
        "what follows the image is the command, or goes to the image's ENTRYPOINT",
        span=command_span(line.workload),
    )
