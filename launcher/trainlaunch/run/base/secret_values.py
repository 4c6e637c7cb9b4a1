"""Values of secrets, from this host: read when a run is made, said nowhere."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainlaunch.container.paths import absolute_source
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.job.spec import Secret
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.repository.regular_files import open_regular

MAX_VARIABLE_BYTES = 128 * 1024 - 1  # bytes of NAME=value that the kernel hands to a program
MIN_REDACTED, MIN_REDACTED_LINE = 4, 8  # characters of a value, and of one of its lines; shorter ones are words


# Values that a supervisor was given, by variable: no process started by it has them in its environment.
_held: dict[str, str] = {}


def hold_values(values: Mapping[str, str]) -> None:
    """Let variables have values that are not in this process's environment."""
    _held.update(values)


def environment() -> dict[str, str]:
    """Return this process's variables, those that are held included."""
    return {**os.environ, **_held}


def variables(plan: LaunchPlan) -> dict[str, str]:
    """Return the variables of this host that a job's secrets are read from, where they are set."""
    names = {each.env or name for name, each in plan.job.secrets.items() if each.file is None}
    return {name: value for name, value in environment().items() if name in names}


def secret_findings(plan: LaunchPlan) -> tuple[Diagnostic, ...]:
    """Return an error for each secret whose source is not here, or can't be passed on (TL507)."""
    found: list[Diagnostic] = []
    for name, secret in plan.job.secrets.items():
        try:
            _value(plan, name, secret)
        except TargetUnavailable as refused:
            found += refused.diagnostics
    return tuple(found)


def secret_value(plan: LaunchPlan, name: str) -> str:
    """Return a secret's value as a variable holds it: a file's text without the line breaks at its end.

    Raises TargetUnavailable (TL507) where its source is not here, any more or at all.
    """
    return _value(plan, name, plan.job.secrets[name])


def _value(plan: LaunchPlan, name: str, secret: Secret) -> str:
    if secret.file is None:
        variable = secret.env or name
        value = _held.get(variable) or os.environ.get(variable, "")
        if not value:
            raise _missing(
                plan,
                name,
                f"has no value: the variable {variable} is not set here, or empty",
                why="a secret is read from this shell's environment when the container is created",
                fix=f"export {variable} before `trainlaunch up`",
            )
        return _passable(plan, name, value)
    text = _text_of(plan, name, absolute_source(plan, secret.file))
    return text if secret.as_file else _passable(plan, name, text.rstrip("\n"))


def read_beginning(path: str) -> str:
    """Return what a file holds, or the beginning of more than a variable could hold. Raises OSError, as for a pipe."""
    with open_regular(path) as file:
        return os.fsdecode(file.read(MAX_VARIABLE_BYTES + 2))


def _text_of(plan: LaunchPlan, name: str, path: str) -> str:
    """Return a file's beginning; raises TargetUnavailable where it has none."""
    problem = ""
    if not Path(path).is_file():
        problem = "is not a file" if Path(path).exists() else "does not exist"
    else:
        try:
            text = read_beginning(path)
        except OSError as refused:
            problem = f"can't be read: {refused.strerror}"
        else:
            if text.strip("\n"):
                return text
            problem = "is empty"
    raise _missing(
        plan,
        name,
        f"has no value: the file {path} {problem}",
        why="a secret's file is read, or mounted, when the container is created",
        fix=f"write the secret to that file, or correct secrets.{name}.file",
    )


def _passable(plan: LaunchPlan, name: str, value: str) -> str:
    """Return `value` if it can be a variable of the target."""
    encoded = os.fsencode(value)
    problem = ""
    if "\0" in value:
        problem = "holds a NUL byte, and a variable ends at one"
    elif len(name) + 1 + len(encoded) > MAX_VARIABLE_BYTES:
        problem = f"is longer than the {MAX_VARIABLE_BYTES - len(name) - 1} bytes that a variable can hold"
    elif plan.target_record.starts_container and any("\ud800" <= each <= "\udfff" for each in value):
        problem = "is no UTF-8 text, and an engine takes no other"
    if problem:
        fix = f"write file: and as: file for secrets.{name}, which passes any bytes"
        raise _missing(plan, name, problem, why="the job would see another value", fix=fix)
    return value


def _missing(plan: LaunchPlan, name: str, what: str, *, why: str, fix: str) -> TargetUnavailable:
    field = f"secrets.{name}"
    found = Diagnostic("TL507", f"secret {name} {what}", fix, why=why, span=plan.job.span(field), field=field)
    return TargetUnavailable([found])


def values_here(plan: LaunchPlan) -> dict[str, str]:
    """Return the values of a job's secrets by name, as far as their sources are on this host."""
    found = {}
    for name in plan.job.secrets if plan.target_record.on_this_machine else ():  # a cluster's are in the cluster alone
        with contextlib.suppress(TargetUnavailable):
            found[name] = secret_value(plan, name)
    return found


class Redactor:
    """Takes values of secrets, given with their names, out of what trainlaunch quotes or keeps of a job's output."""

    def __init__(self, values: Iterable[tuple[str, str]]) -> None:
        words = {word: name for name, value in values for word in _words(value)}
        self._words = sorted(words.items(), key=lambda each: len(each[0]), reverse=True)

    def __call__(self, text: str) -> str:
        """Return `text` with `[secret NAME]` in the place of each value."""
        for word, name in self._words:
            text = text.replace(word, f"[secret {name}]")
        return text

    def record(self, value: Any) -> Any:
        """Return a plain value, as JSON has them, with the secrets taken out of all its texts."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self.record(each) for each in value]
        return {key: self.record(each) for key, each in value.items()} if isinstance(value, dict) else value


class RedactedStream:
    """Takes values of secrets out of bytes that come in pieces, which may cut a value anywhere."""

    def __init__(self, values: Iterable[tuple[str, str]]) -> None:
        self._names = {os.fsencode(word): os.fsencode(name) for name, value in values for word in _words(value)}
        longest_first = sorted(self._names, key=len, reverse=True)
        self._any = re.compile(b"|".join(map(re.escape, longest_first)) or b"(?!)")
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Return what can be told of the bytes so far; the beginning of a value is held until the next call."""
        data, shown, at = self._held + data, bytearray(), 0
        held = self._begun(data, at)
        for found in self._any.finditer(data):
            if held <= found.start():  # of a longer value too
                break
            shown += data[at : found.start()] + b"[secret " + self._names[found[0]] + b"]"
            at = found.end()
            held = self._begun(data, at)
        self._held = data[held:]
        return bytes(shown + data[at:held])

    def end(self) -> bytes:
        """Return what is held, when nothing more comes soon."""
        held, self._held = self._held, b""
        return self._any.sub(lambda found: b"[secret " + self._names[found[0]] + b"]", held)

    def _begun(self, data: bytes, start: int) -> int:
        """Return where, from `start` on, a value begins that the data ends within; its length where none does."""
        first = len(data)
        for word in self._names:
            at = data.find(word[:1], max(start, len(data) - len(word) + 1))
            while 0 <= at < first:
                if word.startswith(data[at:]):
                    first = at
                at = data.find(word[:1], at + 1)
        return first


def _words(value: str) -> Iterator[str]:
    """Yield what a text may hold of a value: itself, as Python, JSON or a decoded log has it; its lines."""
    stripped = value.strip()
    decoded = os.fsencode(stripped).decode(errors="replace")
    for whole in (stripped, decoded, repr(stripped)[1:-1], json.dumps(stripped)[1:-1]):
        if len(whole) >= MIN_REDACTED:
            yield whole
    yield from (each for each in map(str.strip, value.splitlines()) if len(each) >= MIN_REDACTED_LINE)


def file_contents(plan: LaunchPlan) -> Mapping[str, str]:
    """Return, by name, the values of variables that the job sees as files."""
    secrets = plan.job.secrets.items()
    return {name: secret_value(plan, name) for name, each in secrets if each.as_file and each.file is None}
