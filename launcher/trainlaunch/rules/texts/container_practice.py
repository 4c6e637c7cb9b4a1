"""How a container starts, stays and is allowed, beside what it trains with."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from trainlaunch.diagnostics import Severity
from trainlaunch.formats.workload import Known
from trainlaunch.job.spec import is_floating
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import container_rule, text_rule
from trainlaunch.rules.plan.target_effects import TAG_FLOATS
from trainlaunch.rules.sources.container_facts import has_gpu, is_privileged
from trainlaunch.rules.sources.programs import program, work_of
from trainlaunch.rules.sources.purpose import trains
from trainlaunch.rules.sources.source_text import (
    COMPOSE,
    GITHUB,
    GITLAB,
    PRACTICE,
    SHELL,
    SourceContainer,
    SourceText,
    at,
)

_FOR_EVER = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController"})
_STAY = frozenset({"sleep", "tail"})  # what keeps a pod there that has trained
_LENGTH = r"--?(?:(?:max|num|total|n|train|training)[-_])*(?:steps|iters|iterations|epochs)"
_ENDLESS = re.compile(rf"{_LENGTH}=(?:0|-1|inf)")
_ENDS = re.compile(rf"{_LENGTH}=[1-9].*")  # it trains so long, whatever another one leaves open: --max_steps -1
_USER_NAMES = frozenset({"LOGNAME", "USER", "LNAME", "USERNAME"})
# What makes a terminal, asks whether there is one, or has Podman called docker.
_MAKES_TERMINAL = re.compile(
    r"\bscript -[a-z]*[qec]|\bssh -t|\bunbuffer\b|\bfaketty\b|podman-docker|docker=podman"
    r"|(?:\[\[? |\btest )-t [012]\b|\btty -s"
)
_ADDS_USER = re.compile(r"\b(?:useradd|adduser)\b|/etc/passwd")


@container_rule("TL367", Severity.INFO, group=PRACTICE, kinds=(COMPOSE, SHELL))
def healthcheck_missing(container: SourceContainer) -> Iterator[Problem]:
    """A container trains without a health check; one of the image is unknown here."""
    workload, own = container.workload, container.own
    if not trains(container) or workload.health is not None or at(own, "healthcheck") is not None:
        return
    if not {"unclear", "--no-healthcheck"} & {*workload.rest} and at(own, "extends") is None:
        yield Problem(
            "training runs without a health check",
            "add a healthcheck" if workload.format == COMPOSE else "add --health-cmd",
            "a loader or a rank that waits for ever leaves no exit code",
        )


@container_rule("TL368", Severity.INFO, group=PRACTICE, kinds=(COMPOSE, SHELL))
def init_missing(container: SourceContainer) -> Iterator[Problem]:
    """A container trains as process 1."""
    workload = container.workload
    stated = {"--init", "service.init", "unclear"} & {*workload.rest}
    if trains(container) and not stated and at(container.own, "extends") is None:
        yield Problem(
            "training runs as process 1, without an init process",
            "add init: true" if workload.format == COMPOSE else "add --init",
            "process 1 ignores SIGTERM without a handler, and reaps no dead workers of others",
        )


@container_rule("TL369", Severity.INFO, group=PRACTICE)
def privileged(container: SourceContainer) -> Iterator[Problem]:
    """A privileged container trains or has a GPU."""
    if is_privileged(container.workload) and (trains(container) or has_gpu(container.workload)):
        yield Problem(
            "the container is privileged",
            "delete it, and set the devices and capabilities that are needed",
            "a privileged container is root on its machine; neither GPUs nor /dev/shm need it",
        )


@text_rule("TL333", Severity.ERROR, GITHUB, GITLAB)
def terminal_in_ci(file: SourceText) -> Iterator[Problem]:
    """A docker run of a CI job has a terminal and stdin; detached ones need none."""
    may_have_one = _MAKES_TERMINAL.search(file.text) is not None
    for container in file.containers:
        rest = container.workload.rest
        if container.podman or not str(rest.get("command", "")).endswith(" run"):
            continue  # Podman only warns, and `docker create` asks nobody: so a job's own container comes to be
        if rest.get("--tty") is True and rest.get("--interactive") is True and rest.get("--detach") is not True:
            yield Problem(
                "-it asks for a terminal, and a CI job has none",
                "delete -t",
                "docker stops with `the input device is not a TTY`, exit 1, before anything starts",
                container.workload.place,
                container.workload.span,
                Severity.INFO if may_have_one else None,
            )


@container_rule("TL370", Severity.INFO, group=PRACTICE, kinds=(SHELL,))
def terminal_in_script(container: SourceContainer) -> Iterator[Problem]:
    """A docker run with a terminal trains; CI's are terminal-in-ci's."""
    rest = container.workload.rest
    if rest.get("--tty") is True and rest.get("--detach") is not True and trains(container):
        yield Problem(
            "-t asks for a terminal, and this line runs only where there is one",
            "delete -t",
            "without a terminal docker stops with `the input device is not a TTY`, exit 1",
        )


@container_rule("TL334", Severity.WARNING)
def training_in_deployment(container: SourceContainer) -> Iterator[Problem]:
    """A container trains in an object which runs for ever."""
    kind = container.object_kind
    served = {"its ports", "its probes", "its name"} & {*container.purpose.signs}
    named = any("the script " in sign for each in container.argvs for sign in work_of(each)[1])
    if (
        kind in _FOR_EVER
        and "initContainers[" not in container.workload.place
        and named
        and trains(container)
        and not served
        and program(container.argvs[-1]).name not in _STAY
        and not any(map(_is_endless, container.argvs))
    ):
        yield Problem(
            f"a training command runs in a {kind}, which starts it again when it has ended",
            "make it a Job with restartPolicy: Never",
            "such pods are restarted whatever their exit code, so training begins again and keeps its GPU",
        )


def _is_endless(argv: Sequence[str]) -> bool:
    words = tuple(_joined(argv))
    return any(map(_ENDLESS.fullmatch, words)) and not any(map(_ENDS.fullmatch, words))


def _joined(argv: Sequence[str]) -> Iterator[str]:
    """Yield each option with its value behind `=`, however it is written."""
    return (one if "=" in one else f"{one}={other}" for one, other in itertools.pairwise((*argv, "")))


@container_rule("TL111", Severity.WARNING, group=PRACTICE)
def image_tag_floating(container: SourceContainer) -> Iterator[Problem]:
    """The image of a container that trains or has a GPU has no fixed release."""
    image = container.workload.image
    if not isinstance(image, Known) or not is_floating(image.value) or at(container.own, "build") is not None:
        return
    if trains(container) or has_gpu(container.workload):
        yield Problem(
            f"image {image.value} names no fixed release",
            "name a tag other than latest, or a digest (name@sha256:…)",
            TAG_FLOATS,
            span=image.span,
            severity=Severity.INFO,
        )


@text_rule("TL328", Severity.INFO, group=PRACTICE)
def uid_without_name(file: SourceText) -> Iterator[Problem]:
    """A numeric user has no variable that names it."""
    for workload in (each.workload for each in file.containers):
        user = workload.user
        if workload.format != "docker_run" or user is None or _USER_NAMES & {*workload.env, *workload.secrets}:
            continue
        if _is_number(user.text) and not any("/etc/passwd" in str(each.target) for each in workload.mounts):
            yield _nameless(user.text, "-e USER=…")._replace(span=user.span, field=workload.place)
    named = any(
        each.name == "ENV" and re.search(r"\b(?:LOGNAME|USER|LNAME|USERNAME)[= ]", each.value)
        for each in file.instructions
    )
    if named or any(_ADDS_USER.search(each.value) for each in file.instructions):
        return
    for each in file.instructions:
        number = re.fullmatch(r"([1-9][0-9]*)(?::\S+)?", each.value.strip()) if each.name == "USER" else None
        if number:
            span = file.source.span(each.start, each.end)
            yield _nameless(number[1], "ENV USER=app HOME=/tmp")._replace(span=span)


def _is_number(text: str) -> bool:
    bare = text.strip("\"'")
    return bool(re.match(r"[1-9][0-9]*(?::|$)|\$\(id -u\)|\$\{?UID\b|`id -u`", bare))


def _nameless(user: str, add: str) -> Problem:
    return Problem(
        f"user {user} may have no name in the image",
        f"add {add}, and a HOME that it may write",
        "getpass.getuser() raises KeyError where neither a variable nor /etc/passwd names the uid",
    )
