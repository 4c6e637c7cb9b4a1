"""Values of secrets, from this machine: read when a run is made, said nowhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from launcher.container.paths import absolute_source
from launcher.diagnostics import Diagnostic, Explanation
from launcher.errors import TargetUnavailable
from launcher.job.spec import Secret
from launcher.plan.launch_plan import LaunchPlan

TL507 = Explanation(
    "TL507",
    "secret-missing",
    "A secret's source is not there: the variable is not set or empty, or the file is missing, unreadable or "
    "empty; or its value can't be a variable.",
    """\
**Why**: secrets are passed by reference and read when the container is created; an empty one fails
later, inside the job. A variable holds UTF-8 text without NUL bytes; `as: file` passes any bytes.

**Example**:

```yaml up
secrets: {WANDB_API_KEY: {env: TRAINLAUNCH_UNSET_EXAMPLE}, SSH_KEY: {file: ./nowhere, as: file}}
```

**Write instead**:

```text
export WANDB_API_KEY=… && trainlaunch up job.yaml
```
""",
)
LONGEST_VARIABLE = 128 * 1024 - 1  # bytes of NAME=value that the kernel hands to a program
SHORTEST_REDACTED, SHORTEST_LINE = 4, 8  # characters of a value, and of one of its lines; shorter ones are words


NOTHING_REDACTED: Callable[[str], str] = str
# Values that a keeper was given, by variable: no process started by it has them in its environment.
_held: dict[str, str] = {}


def hold_values(values: Mapping[str, str]) -> None:
    """Let variables have values that are not in this process's environment."""
    _held.update(values)


def environment() -> dict[str, str]:
    """Return this process's variables, those that are held included."""
    return {**os.environ, **_held}


def variables(plan: LaunchPlan) -> dict[str, str]:
    """Return the variables of this machine that a job's secrets are read from, where they are set."""
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


def _text_of(plan: LaunchPlan, name: str, path: str) -> str:
    """Return what a file holds, or the beginning of more than a variable could hold."""
    problem = ""
    if not Path(path).is_file():
        problem = "is not a file" if Path(path).exists() else "does not exist"
    else:
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - as bytes, and no more of them than a variable can hold
                text = os.fsdecode(file.read(LONGEST_VARIABLE + 2))
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
    elif len(name) + 1 + len(encoded) > LONGEST_VARIABLE:
        problem = f"is longer than the {LONGEST_VARIABLE - len(name) - 1} bytes that a variable can hold"
    elif plan.target_record.starts_container and any("\ud800" <= each <= "\udfff" for each in value):
        problem = "is no UTF-8 text, and an engine takes no other"
    if problem:
        fix = f"write file: and as: file for secrets.{name}, which passes any bytes"
        raise _missing(plan, name, problem, why="the job would see another value", fix=fix)
    return value


def _missing(plan: LaunchPlan, name: str, what: str, *, why: str, fix: str) -> TargetUnavailable:
    field = f"secrets.{name}"
    found = Diagnostic(TL507.code, f"secret {name} {what}", fix, why=why, span=plan.job.span(field), field=field)
    return TargetUnavailable([found])


class Redactor:
    """Takes the values of a job's secrets out of what trainlaunch quotes from the job's own output."""

    def __init__(self, plan: LaunchPlan) -> None:
        known = plan.job.secrets if plan.target_record.on_this_machine else ()  # a cluster's are in the cluster alone
        values = ((name, secret_value(plan, name)) for name in known)
        self._words = tuple(sorted(_words(values), key=lambda word: len(word[1]), reverse=True))

    def __call__(self, text: str) -> str:
        """Return `text` with `[secret NAME]` in the place of each value."""
        for name, value in self._words:
            text = text.replace(value, f"[secret {name}]")
        return text


def _words(values: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield what a quoted line may hold of a value: a job prints a value of several lines line by line."""
    for name, value in values:
        lines = [each.strip() for each in value.splitlines()]
        if len(value.strip()) >= SHORTEST_REDACTED:
            yield name, value.strip()
        yield from ((name, each) for each in lines if len(each) >= SHORTEST_LINE)


def file_contents(plan: LaunchPlan) -> Mapping[str, str]:
    """Return, by name, the values of variables that the job sees as files."""
    secrets = plan.job.secrets.items()
    return {name: secret_value(plan, name) for name, each in secrets if each.as_file and each.file is None}
