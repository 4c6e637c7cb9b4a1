"""Lines of docker run that docker refuses, or doesn't get whole."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from trainlaunch.diagnostics import Edit, Severity
from trainlaunch.formats.docker.flags import flag_name
from trainlaunch.formats.docker.table import FLAGS, SWITCHES
from trainlaunch.formats.workload import Known, Workload, stated
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import text_rule
from trainlaunch.rules.sources.container_facts import command_span, is_torch_image
from trainlaunch.rules.sources.instructions import is_command
from trainlaunch.rules.sources.source_text import SourceContainer, SourceText, SourceWord

# Between a line and the one that goes on with it: the end of a line, or lines that break a continued one.
_BETWEEN = re.compile(r"[ \t]*(?:(?:#[^\n]*)?\r?\n|\\\r?\n(?:[ \t]*(?:#[^\n]*)?\r?\n)+)[ \t]*")
_MOST_BETWEEN = 40
_STARTS = frozenset({"run", "create"})
_TAGGED = re.compile(r"[a-z0-9][\w.-]*(?:/[\w.-]+)*:[\w.-]+")
_NEEDS = re.compile(r"--(?:gpus|shm-size|ipc|runtime)\b")
_OWN = re.compile(r"--(?:shm-size|ipc|gpus)[= ](?:all|host|\d+[bkmgBKMG])(?!\S)")  # which few programs have


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
    if not lines:
        return
    for command, following in itertools.zip_longest(file.commands, file.commands[1:], fillvalue=()):
        for place, each in enumerate(command):
            started = lines.get(file.source.span(each.start, each.end)) if each.text in _STARTS else None
            if started is not None:
                yield _Line(started, command[place + 1 :], following)
                break


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
    """A docker line with GPUs or a /dev/shm has no image, a path in its place, or docker's own options behind it."""
    for line in _lines(file):
        blank = next((each for each in line.words if file.text[each.start : each.end] in {"\\ ", "\\\t"}), None)
        needs = any(_NEEDS.match(each.text) for each in (*line.words, *line.following))
        problem: Problem | None
        if blank is not None and needs and (stated(line.workload.image) or "").isspace():
            problem = _behind_backslash(file, blank)
        elif line.workload.image is None and line.words and needs:
            problem = _line_ends(file, line)
        elif needs and isinstance(line.workload.image, Known) and line.workload.image.value.startswith("/"):
            problem = _path_for_image(file, line, line.workload.image)
        else:
            problem = _options_behind(line)
        if problem is not None:
            yield problem._replace(about=line.workload.place)


def _behind_backslash(file: SourceText, blank: SourceWord) -> Problem:
    end = re.compile(r"[^\r\n]*").match(file.text, blank.end)
    rest = end[0].strip() if end is not None else ""
    span = file.source.span(blank.start + 1, blank.end + len(rest))
    return Problem(
        f"a {'comment' if rest else 'blank'} stands behind the backslash, so the line ends there",
        "let the backslash be the last character of the line",
        "docker takes a blank for the image's name, and the shell what follows for another command",
        span=span,
        edits=() if rest else (Edit(span, ""),),
    )


def _path_for_image(file: SourceText, line: _Line, image: Known[str]) -> Problem | None:
    """Return that a path stands where the image does, which only Podman's --rootfs takes, if no variable is empty."""
    place = next((index for index, each in enumerate(line.words) if each.text == image.value), 0)
    start = line.words[place].start if line.words else 0
    empty = "$" in file.text[line.words[place - 1].end if place else max(0, start - _MOST_BETWEEN) : start]
    if "--rootfs" in line.workload.rest or empty:
        return None
    return Problem(
        f"the docker line has no image: it takes {image.text} for one",
        f"write the image in front of {image.text}",
        "docker stops with `invalid reference format`, exit 125",
        span=image.span,
    )


def _line_ends(file: SourceText, line: _Line) -> Problem | None:
    """Return what is wrong with a line that has no image, and whose next one goes on with it."""
    last, first = line.words[-1], line.following[0] if line.following else None
    between = file.text[last.end : first.start] if first is not None else ""
    goes_on = first is not None and (flag_name(first.text)[0] in FLAGS or _TAGGED.fullmatch(first.text))
    if not goes_on or not _BETWEEN.fullmatch(between) or _is_in_array(file.text, last.start):
        return None
    span = file.source.span(last.end, last.end)
    return Problem(
        "the docker line ends in front of its image",
        "end each line with a backslash and nothing behind it, with no comments between",
        "docker finds no image, and the shell takes what follows for another command",
        span=file.source.span(last.start, last.end),
        edits=() if "#" in between or "\\" in between or _lacks_value(last.text) else (Edit(span, " \\"),),
    )


def _is_in_array(text: str, at: int) -> bool:
    opened = text.rfind("(", 0, at)
    return opened > text.rfind(")", 0, at) and text.startswith("=", opened - 1)


def _lacks_value(word: str) -> bool:
    name, value = flag_name(word)
    return value is None and name in FLAGS and name not in SWITCHES


def _options_behind(line: _Line) -> Problem | None:
    """Return what is wrong with docker's options behind an image, where they are surely no program's own."""
    argv, built = line.container.argv, line.container.built
    if not _OWN.match(" ".join(argv[:2])) or (built is not None and built.entrypoint):
        return None
    at = 0
    while at < len(argv) and argv[at].startswith("-"):
        at += 2 if _lacks_value(argv[at]) else 1
    alone = is_torch_image(line.container) or built is not None  # whose ENTRYPOINT only starts what it gets, or none
    if not is_command(argv[at:]) and (argv[at:] or not alone):
        return None
    return Problem(
        f"{argv[0]} stands behind the image, and is no option of docker's there",
        "write it in front of the image",
        "what follows the image is the command, or goes to the image's ENTRYPOINT",
        span=command_span(line.workload),
    )
