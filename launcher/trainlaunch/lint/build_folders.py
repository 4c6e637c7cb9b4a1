"""In which folders the commands of a text may run, which says what Dockerfile one builds: where in doubt, in none."""

from __future__ import annotations

import functools
import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trainlaunch.lint.file_kinds import MAKEFILE, MARKDOWN, kind_of
from trainlaunch.repository.regular_files import read_regular
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.rules.sources.source_text import GITHUB, SHELL, SourceText, SourceWord, at, below, text_at
from trainlaunch.units import MIB

Command = tuple[SourceWord, ...]
DOCKERFILE = "Dockerfile"
_ENTERS = frozenset({"cd", "pushd"})
_LEAVES = frozenset({"popd", "fi", "done", "esac", "}", "else", "elif"})
_IN_BRANCH = frozenset({"then", "else", "do", "{", "if", "while", "!"})
_BEFORE_CD = frozenset({"cd", "pushd", "mkdir", "git", "echo", "set", "source", "."})  # which && doesn't make unsure
# What brings files of others, a Dockerfile among them.
_BRINGS = frozenset({"curl", "wget", "tar", "unzip", "rsync", "scp"})
_OF_VERSIONS = frozenset({"git", "gh", "hg", "svn"})
_IN_FRONT = re.compile(r"-\w|[A-Za-z_]\w*=.*|[$@]|sudo|time|exec|command|env|if|then|else|do|!|\{")  # not ssh
# Behind what nobody knows whether a `cd` still holds, and what begins another shell in the first folder.
_APART = re.compile(r"\)|;;")
_APART_IN_PROSE = re.compile(r"\)|;;|`{3}|~~~|\n[ \t]*\n|\n[ \t]*- |script:")
_ANEW = {MAKEFILE: re.compile(r"(?<!\\)\n"), GITHUB: re.compile(r"\brun:")}
_FUNCTION = re.compile(r"\([ \t]{0,9}\)[ \t\n]{0,9}[{(]|^[ \t]*function[ \t]", re.MULTILINE)
_OF_TEXT = re.compile(r"dirname|rev-parse|BASH_SOURCE")  # the folder of the text, or the root around it
_BELOW = re.compile(r"/[\"' ]?[\w$]")
_VARIABLE = re.compile(r"[\"']?\$\{?([A-Za-z_]\w*)\}?[\"']?")
_ASSIGNED = re.compile(r"(?<![\w$])([A-Za-z_]\w*)[ \t]*[:?+]?=[ \t]*")
_LONGEST = 120
_URL = re.compile(r"^[ \t]*url[ \t]*=[ \t]*(\S+)", re.MULTILINE)


class Place(NamedTuple):
    """Where a command may run; `open` says that prose may mean another folder, so that a path has to name one."""

    folders: tuple[Path, ...]
    open: bool = False


def placed(file: SourceText) -> Iterator[tuple[Command, Place]]:
    """Yield the commands of a text, each with where it may run."""
    name = file.source.span(0, 0).file
    if name in {"", "-"} or _is_elsewhere(file) or _has_functions_and_folders(file):
        return
    named = kind_of(name, "").name
    shell = _Shell(Path(name), named if file.kind == SHELL and named in {MARKDOWN, MAKEFILE} else file.kind)
    prose = named == MARKDOWN and _are_several(shell.root)
    before: Command = ()
    for command in file.commands:
        shell.take(command, before, file.text)
        yield command, Place(shell.folders, prose and not shell.moved)
        before = command


def program_at(words: Sequence[str]) -> int:
    """Return where the program stands that this host runs itself."""
    return next((index for index, each in enumerate(words) if not _IN_FRONT.fullmatch(each)), len(words))


def _brings(words: Sequence[str]) -> bool:
    name, *rest = [*map(posixpath.basename, words[program_at(words) :]), ""]
    return name in _BRINGS or (name in _OF_VERSIONS and not {"clone", "checkout"}.isdisjoint(rest))


class _Shell:
    """The folders in which a shell may be; `moved` says that a `cd` has named them."""

    def __init__(self, text: Path, kind: str) -> None:
        self.root = ITS_OWN.root(text)
        parents = (each for each in text.absolute().parents if each.is_relative_to(self.root))
        self.own = (text.absolute().parent,) if kind == MAKEFILE else (*parents,)
        self.apart, self.anew = _APART if kind == SHELL else _APART_IN_PROSE, _ANEW.get(kind)
        self.folders, self.moved, self.cloned = self.own, False, ""

    def take(self, command: Command, before: Command, text: str) -> None:
        """Note what a command does to the folder, and what stands between it and the one before."""
        gap = text[before[-1].end : command[0].start] if before else ""
        words = [each.text.lstrip("@-") for each in command if each.text != "$"] or [""]
        if self.moved and self.anew and self.anew.search(gap):
            self.folders, self.moved = self.own, False
        elif self.moved and (words[0] in _LEAVES or self.apart.search(gap)):
            self.folders = ()
        if _brings(words):
            self.cloned = _clone_of(words, self.root)
            if not self.cloned:
                self.own = self.folders = ()
        elif words[0] in _ENTERS:
            unsure = "||" in gap or ("&&" in gap and before[0].text not in _BEFORE_CD)
            self._enter(None if unsure or len(words) != 2 else command[-1], text)
        elif words[0] in _IN_BRANCH and not _ENTERS.isdisjoint(words[1:3]):
            self._enter(None, text)

    def _enter(self, word: SourceWord | None, text: str) -> None:
        if word is not None and word.known and self.cloned and word.text.rstrip("/") == self.cloned:
            self.own, self.cloned, word = (self.root,) if self.own else (), "", None
            self.folders, self.moved = self.own, False
        elif word is not None and not word.known and _is_of_text(word.text, text):
            self.folders, self.moved = self.own, False
        else:
            named = word.text if word is not None and word.known else "\0"
            found = (Path(os.path.normpath(each / named)) for each in self.folders)
            inner = (each for each in found if each.is_relative_to(self.root) and os.path.isdir(each))  # noqa: PTH112
            self.folders, self.moved = tuple(dict.fromkeys(inner)), True


def _is_elsewhere(file: SourceText) -> bool:
    """Return whether a workflow has its steps run in other folders, or checks out other repositories."""
    if file.kind != GITHUB:
        return False
    steps = (each for node in file.nodes for each in below(node) if "checkout" in (text_at(each, "uses") or ""))
    return "working-directory" in file.text or any(
        at(each, "with", key) is not None for each in steps for key in ("repository", "path")
    )


def _has_functions_and_folders(file: SourceText) -> bool:
    entered = (each for each in file.commands if each[0].text in _ENTERS and each[-1].known)
    return _FUNCTION.search(file.text) is not None and any(entered)


def _is_of_text(word: str, text: str) -> bool:
    """Return whether a word is the folder of the text, or one above it, as the text itself says."""
    variable = _VARIABLE.fullmatch(word)
    values = assignments(text).get(variable[1], ()) if variable else (word,)
    plain = [each.replace("/dev/null", "") for each in values]
    return bool(plain) and all(_OF_TEXT.search(each) and not _BELOW.search(each) for each in plain)


@functools.lru_cache(maxsize=16)
def assignments(text: str) -> Mapping[str, frozenset[str]]:
    """Return what a text gives to each of its variables: the rest of each line."""
    found: dict[str, set[str]] = {}
    for match in _ASSIGNED.finditer(text):
        value = text[match.end() : match.end() + _LONGEST].partition("\n")[0]
        found.setdefault(match[1], set()).add(value)
    return {name: frozenset(values) for name, values in found.items()}


def _clone_of(words: Sequence[str], root: Path) -> str:
    """Return the folder into which the text's own repository is cloned; empty for what brings another one's files."""
    urls = [each for each in words[1:] if ":" in each and "/" in each]
    if "clone" not in words or len(urls) != 1 or _name_of(urls[0]) not in {root.name, *_remotes(root)}:
        return ""
    return words[-1].rstrip("/") if words[-1] != urls[0] else _name_of(urls[0])


def _name_of(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2].removesuffix(".git")


@functools.lru_cache(maxsize=64)
def _remotes(root: Path) -> frozenset[str]:
    try:
        text = read_regular(root / ".git" / "config", MIB).decode()
    except (OSError, ValueError):
        return frozenset()
    return frozenset(map(_name_of, _URL.findall(text)))


@functools.lru_cache(maxsize=64)
def _are_several(root: Path) -> bool:
    """Return whether Dockerfiles compete in the first two levels of a repository."""
    try:
        names = [each.path for each in os.scandir(root) if each.is_dir(follow_symlinks=False)]
    except OSError:
        return True
    return sum(os.path.isfile(f"{each}/{DOCKERFILE}") for each in (str(root), *names)) > 1  # noqa: PTH113
