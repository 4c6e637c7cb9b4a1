"""The docker target's script: what it must say, and what it does say, each as a Workload."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainlaunch.container.container import name_conflict_message
from trainlaunch.container.paths import has_relative_bind, host_source
from trainlaunch.container.secret_delivery import mounted_secrets, passed_secrets
from trainlaunch.formats.docker.functions import inlined
from trainlaunch.formats.docker.read import read_docker_run
from trainlaunch.formats.docker.shell_lexer import statements
from trainlaunch.formats.workload import Known, MountPoint, Workload
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.verify.expected_workload import absolute, engine_workload

_INTO_ITS_FOLDER = (("cd", "--", '<$(dirname -- "$0")>', "<||>"), ("exit", "125"))
_READING = "<$(>"  # stands before the words of a command whose output a variable takes
Commands = Sequence[tuple[str, ...]]


def parse_rendering(text: str, folder: Path) -> Workload:
    """Return what a script starts; relative binds are seen from `folder`. Raises ValueError where it isn't one line."""
    found = read_docker_run(inlined(text), "")
    if len(found) != 1:
        raise ValueError(f"{len(found)} commands start a container, not one")
    read = found[0]
    before = tuple(map(_taken_apart, read.rest.get("commands before", ())))  # type: ignore[call-overload]
    return read._replace(
        secrets={name: _source(name, before, folder) for name in read.secrets},
        mounts=tuple(_absolute(each, folder) for each in read.mounts),
        rest={**read.rest, **({"commands before": before} if before else {})},
    )


def _taken_apart(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command; one that gives a variable the output of another has that one's words."""
    match = re.fullmatch(r"(\w+=)<\$\((.*)\)>", command[0], re.DOTALL) if len(command) == 1 else None
    if not match:
        return command
    return (match[1], _READING, *(word for words in statements(match[2]) for word in (*words, ";")))[:-1]


def _absolute(mount: MountPoint, folder: Path) -> MountPoint:
    if mount.type != "bind" or not isinstance(mount.source, Known):
        return mount
    source = mount.source
    return mount._replace(source=Known(str(absolute(source.value, folder)), source.text, source.span))


def _source(name: str, before: Commands, folder: Path) -> str:
    """Return the host variable or file behind `name`, marked where its absence doesn't end the script with 125."""
    exported = {word for words in before if words[0] == "export" for word in words[1:]}
    assigned = dict(words[0].partition("=")[::2] for words in before if len(words) == 1 and "=" in words[0])
    files = {words[0].removesuffix("="): words[3] for words in before if words[1:3] == (_READING, "cat") and words[3:]}
    source = tested = name
    if name in assigned:
        holder = re.sub(r"[<>$]", "", assigned[name])
        source = tested = re.sub(r"<\$\{(\w+):-\}>", r"\1", assigned.get(holder, ""))
        if holder in files:
            source, tested = f"file {absolute(files[holder], folder)}", holder
    guard = ("if", "<[>", "-z", f"<${{{tested}:-}}>", "]")
    at = next((index for index, words in enumerate(before) if words == guard), None)
    stops = at is not None and before[at + 1][0] == "then" and ("exit", "125") in before[at + 1 : at + 4]
    return source if stops and name in exported else f"{source}, unguarded"


def expected(plan: LaunchPlan, base: Path | None) -> Workload:
    """Return what the script says when it says what the plan says; `base` is the folder that it will lie in."""
    rest: dict[str, object] = {"command": "exec docker run", "--rm": True, "--init": True}
    before = tuple(_commands_before(plan, base))
    return engine_workload(plan)._replace(rest=rest | {"commands before": before})


def _commands_before(plan: LaunchPlan, base: Path | None) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command that the script runs before docker's, as `parse_rendering` gives them."""
    if base is not None and has_relative_bind(plan):
        yield from _INTO_ITS_FOLDER
    for name, secret in mounted_secrets(plan):
        path = host_source(plan, str(secret.file), base)
        yield ("if", "<[>", "!", "-f", path, "]", "<||>")
        yield ("<[>", "!", "-r", path, "]", "<||>")
        yield ("<[>", "!", "-s", path, "]")
        yield from _stop_before(f"secret {name}: file {path} can't be read, or is empty")
    passed = passed_secrets(plan)
    held = [name for name, secret in passed if secret.file is not None or name != secret.env]
    holders = {name: f"trainlaunch_secret_{number}" for number, name in enumerate(held, start=1)}
    for name, secret in passed:
        tested, message = secret.env, f"variable {secret.env} of this shell is not set"
        if secret.file is not None:
            path, tested = host_source(plan, secret.file, base), holders[name]
            message = f"file {path} can't be read, or is empty"
            yield (f"{tested}=", _READING, "cat", path)
        yield ("if", "<[>", "-z", f"<${{{tested}:-}}>", "]")
        yield from _stop_before(f"secret {name}: {message}")
    renamed = [(name, secret.env) for name, secret in passed if name in holders and secret.file is None]
    yield from ((f"{holders[name]}=<${{{source}:-}}>",) for name, source in renamed)
    yield from ((f"{name}=<${holder}>",) for name, holder in holders.items())
    if passed:
        yield ("export", *(name for name, _ in passed))
    yield ("if", "docker", "container", "inspect", plan.name, "<>>", "</dev/null>", "<2>&>", "<1>")
    yield from _stop_before(name_conflict_message(plan))


def _stop_before(message: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of a guard after its condition."""
    yield from (("then",), ("echo", message, "<>&>", "<2>"), ("exit", "125"), ("fi",))
