"""The commands of a shell text that start a container: `docker run` and its like, as words and flags with places."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trainlaunch.formats.docker.literals import NO_LITERALS, Literals
from trainlaunch.formats.docker.shell_lexer import Operator, Word, assignment, tokens
from trainlaunch.formats.docker.table import ALIASES, FLAGS, PODMAN_SWITCHES, PODMAN_VALUES, SHORT, SWITCHES

PROGRAMS = frozenset({"docker", "podman", "nvidia-docker", "nerdctl"})
# Programs and words of a shell behind which another command stands.
_IN_FRONT = frozenset({
    *("exec", "sudo", "doas", "env", "command", "time", "nohup", "nice", "ionice", "timeout", "stdbuf", "setsid"),
    *("srun", "flock", "chrt", "taskset", "numactl", "unbuffer", "chronic", "systemd-run", "systemd-inhibit"),
    *("if", "then", "else", "elif", "do", "while", "until", "!", "{", "$", "eval", "xargs", "watch", "strace"),
})  # fmt: skip
_GLOBAL_VALUES = frozenset({
    *("--config", "--context", "--host", "--log-level", "--tlscacert", "--tlscert", "--tlskey", "-c", "-H", "-l"),
    *("--root", "--runroot", "--url", "--connection", "--storage-driver", "--cgroup-manager", "--namespace", "-n"),
})  # fmt: skip
_RUN_C = frozenset({"sh", "bash", "dash", "zsh", "ksh", "sg", "su", "script"})  # what stands behind -c
_OF_TMUX = frozenset({"send-keys", "send", "new-session", "new", "new-window", "neww", "split-window", "splitw"})
_VARIABLE = r"\$[{(]?(\w+)[})]?"
_TAGGED = r"(?=[^:@]*[a-z])[a-z0-9][\w.-]*(?::\d+)?(?:/[\w.-]+)*(?::[A-Za-z_][\w.-]*|:\d[\w.-]*|@sha256:[0-9a-f]+)"
_DEEPEST = 4


class ParsedFlag(NamedTuple):
    """A flag of a line: its long name, the word that it begins in, and the characters of a word that are its value.

    `value` is None for a bare switch. `listed` says that the table of flags, or Podman, has it.
    """

    name: str
    at: Word
    word: Word
    first: int
    last: int
    value: str | None
    listed: bool = True


class Line(NamedTuple):
    """One command that starts a container.

    `command` is its words up to `run`, `run` is that word. `unclear` are words that may hold further flags. `image` is
    None where no word is clearly the image. `before` and `after` are the other commands around it, as `statements`
    gives them; `carriage` says that lines end with CR LF, which no shell of Unix takes.
    """

    command: tuple[str, ...]
    run: Word
    flags: tuple[ParsedFlag, ...]
    unclear: tuple[Word, ...]
    image: Word | None
    arguments: tuple[Word, ...]
    before: tuple[tuple[str, ...], ...] = ()
    after: tuple[tuple[str, ...], ...] = ()
    carriage: bool = False


def run_lines(
    text: str,
    start: int = 0,
    end: int | None = None,
    single: frozenset[str] = frozenset(),
    literals: Literals = NO_LITERALS,
) -> tuple[Line, ...]:
    """Return the lines of a text, or of its characters `start` to `end`, that start a container, in their order.

    `single` are variables that are one word each where they stand unquoted, whatever their value; `literals` have the
    values that the text gives others.
    """
    return tuple(_lines(text, (start, len(text) if end is None else end), 0, (single, literals)))


def _lines(text: str, place: tuple[int, int], depth: int, variables: tuple[frozenset[str], Literals]) -> Iterator[Line]:
    found: list[Line] = []
    before: list[tuple[str, ...]] = []
    inner: list[Line] = []
    carriage = False
    single, literals = variables
    for words, operators in commands(literals.filled(tokens(text, *place))):
        line = _line(words, single)
        carriage = carriage or any("\r" in each.text for each in operators)
        active = tuple(f"<{each.text}>" for each in operators if each.text not in "\n;")
        if depth < _DEEPEST:
            inner += _inside(text, words, depth, variables)
        if line is not None:
            after = (active,) if active else ()
            found.append(line._replace(before=tuple(before), after=after))
            before = []
        elif words or active:
            before.append((*(each.marked for each in words), *active))
    if found:
        found[-1] = found[-1]._replace(after=(*found[-1].after, *before))
    lines = [each._replace(carriage=carriage) for each in found]
    yield from sorted([*lines, *inner], key=lambda each: each.run.start)


def _inside(text: str, words: Sequence[Word], depth: int, variables: tuple[frozenset[str], Literals]) -> Iterator[Line]:
    """Yield the lines in command substitutions, and in the quoted text that a program of the words runs."""
    ran = _text_run(words) if any(" run " in each.text for each in words) else None
    for word in words:
        if word is ran:
            begin, end = word.start + 1, word.end - 1
            source = (text[each.start : each.end].strip("\"'") if each.filled else each.text for each in word.pieces)
            if text[begin:end] == "".join(source):  # quoted whole, with nothing escaped
                yield from _lines(text, (begin, end), depth + 1, variables)
                continue
        for piece in word.pieces:
            if not piece.known and piece.text.startswith(("$(", "`")) and not piece.text.startswith("$(("):
                opened, closing = ("$(", ")") if piece.text.startswith("$(") else ("`", "`")
                begin = piece.inner + len(opened)
                end = piece.inner + len(piece.text.removesuffix(closing))
                yield from _lines(text, (begin, max(begin, end)), depth + 1, variables)


def _is_beside(text: str) -> bool:
    """Return whether a word stands in front of a command's program, or beside what wraps that."""
    return text.startswith("-") or text in _IN_FRONT or assignment(text) is not None


def _text_run(words: Sequence[Word]) -> Word | None:
    """Return the word that a command's program has a shell run, here or elsewhere; None where it has none."""
    texts = [each.text.lstrip("@") for each in words]
    first = next((i for i, each in enumerate(texts) if not _is_beside(each)), 0)
    program = posixpath.basename(texts[first])
    behind = range(first + 1, len(texts))
    if program in _RUN_C:
        return next((words[i] for i in behind[1:] if re.fullmatch(r"-[a-z]*c", texts[i - 1])), None)
    own = [i for i in behind if texts[i][:1] != "-" and not re.fullmatch(r"-[A-Za-z]", texts[i - 1])]
    to_host = program == "ssh" and len(own) == 2  # behind the host
    in_pane = program == "tmux" and len(own) > 1 and texts[own[0]] in _OF_TMUX
    if to_host or in_pane:
        return words[own[1]]
    return words[-1] if program == "gcloud" and texts[-2:-1] == ["--command"] else None


def commands(stream: Iterator[Word | Operator]) -> Iterator[tuple[list[Word], list[Operator]]]:
    """Yield the words of each command without those of redirections, and all operators in and after it."""
    words: list[Word] = []
    operators: list[Operator] = []
    redirected = False
    for each in stream:
        if isinstance(each, Word):
            if redirected:
                operators.append(Operator(each.marked, each.start, each.end))
            else:
                words.append(each)
            redirected = False
            continue
        operators.append(each)
        redirected = "<" in each.text or ">" in each.text
        if not redirected and each.text != "\\\r\n":
            yield words, operators
            words, operators = [], []
    yield words, operators


def _line(words: Sequence[Word], single: frozenset[str]) -> Line | None:
    """Return the line that the words of a command are, None where they start no container."""
    at = _program(words)
    if at is None:
        return None
    run = at + 1
    while run < len(words) and words[run].text.startswith("-"):
        run += 2 if words[run].text in _GLOBAL_VALUES else 1
    if run < len(words) and words[run].text == "container":
        run += 1
    if run >= len(words) or words[run].text not in {"run", "create"}:
        return None
    command = tuple(each.marked for each in words[: run + 1])
    return parsed(command, words[run], words[run + 1 :], single)


def _program(words: Sequence[Word]) -> int | None:
    """Return the index of the word that is docker or its like, as far as nothing but wrappers stand before it."""
    first = next((index for index, each in enumerate(words) if not assignment(each.text)), None)
    if first is None:
        return None
    wrapped = words[first].opaque or posixpath.basename(words[first].text).lstrip("@-") in _IN_FRONT
    for index in range(first, len(words) if wrapped else first + 1):
        if posixpath.basename(words[index].text).lstrip("@") in PROGRAMS and words[index].known:
            return index
    return None


def parsed(command: tuple[str, ...], run: Word, words: Sequence[Word], single: frozenset[str] = frozenset()) -> Line:
    """Return the line that a command makes whose words behind `run` are flags, image and arguments."""
    flags: list[ParsedFlag] = []
    unclear: list[Word] = []
    certain = True  # that the next word which is no flag is the image
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word.text == "--" and word.known:
            break
        if word.opaque and not is_single(word, single):
            unclear.append(word)
            certain = False
        elif word.text.startswith("-") and len(word.text) > 1:
            given, taken = _flag(word, words[at : at + 1], more=len(words) > at + 1)
            flags += given
            unclear += [each.at for each in given if not each.listed and not each.at.known]
            certain = certain and all(each.listed for each in given)
            at += taken
        elif certain or re.fullmatch(_TAGGED, word.text):
            at -= 1
            break
        else:  # it may be the value of a flag that nobody knows
            at -= 1
            return Line(command, run, tuple(flags), tuple(unclear) or (word,), None, tuple(words[at:]))
    left = tuple(words[at:])
    if not left and unclear and unclear[-1] is words[-1] and unclear[-1].opaque:
        return Line(command, run, tuple(flags), tuple(unclear), unclear[-1], ())
    return Line(command, run, tuple(flags), tuple(unclear), left[0] if left else None, left[1:])


def is_single(word: Word, single: frozenset[str]) -> bool:
    """Return whether a word is a variable of `single` and nothing else: `$IMAGE`, `${IMAGE}`, make's `$(IMAGE)`."""
    name = re.fullmatch(_VARIABLE, word.text) if single else None
    return name is not None and name[1] in single


def _flag(word: Word, following: Sequence[Word], *, more: bool) -> tuple[list[ParsedFlag], int]:
    """Return the flags that a word holds, and how many words behind it are values of theirs."""
    if not word.text.startswith("--"):
        return _letters(word, following)
    name, equals, _ = word.text[2:].partition("=")
    known = word.part(0, len(name) + 2)[2]
    name = ALIASES.get(name, name)
    listed = known and (name in FLAGS or name in PODMAN_SWITCHES or name in PODMAN_VALUES)
    if equals:
        first = word.text.index("=") + 1
        return [ParsedFlag(name, word, word, first, len(word.text), word.text[first:], listed)], 0
    takes = name in PODMAN_VALUES or (name in FLAGS and name not in SWITCHES)
    if not listed:  # the word behind it is its value where another one is left to be the image
        behind = following[0] if following else None
        takes = bool(behind and more and not behind.text.startswith("-") and not re.fullmatch(_TAGGED, behind.text))
    if takes and following:
        value = following[0]
        return [ParsedFlag(name, word, value, 0, len(value.text), value.text, listed)], 1
    return [ParsedFlag(name, word, word, 0, len(word.text), None, listed)], 0


def _letters(word: Word, following: Sequence[Word]) -> tuple[list[ParsedFlag], int]:
    """Return the flags of a bundle as `-itd`, whose last letter may take a value: `-p80:80`, `-e=A=1`."""
    found: list[ParsedFlag] = []
    for index in range(1, len(word.text)):
        flag = SHORT.get(word.text[index])
        if flag is None or not word.part(index, index + 1)[2]:
            return [*found, ParsedFlag(word.text, word, word, 0, len(word.text), None, listed=False)], 0
        first = index + 1
        if first < len(word.text) and word.text[first] == "=":
            return [*found, ParsedFlag(flag.name, word, word, first + 1, len(word.text), word.text[first + 1 :])], 0
        if flag.name in SWITCHES:
            found.append(ParsedFlag(flag.name, word, word, 0, len(word.text), None))
        elif first < len(word.text):
            return [*found, ParsedFlag(flag.name, word, word, first, len(word.text), word.text[first:])], 0
        elif following:
            value = following[0]
            return [*found, ParsedFlag(flag.name, word, value, 0, len(value.text), value.text)], 1
    return found, 0
