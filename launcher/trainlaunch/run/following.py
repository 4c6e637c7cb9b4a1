"""How a run that somebody else supervises goes on and ends: next attempt, and the causes that every command gives."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trainlaunch.exit_codes import EXIT_BEFORE_START
from trainlaunch.run.base.backend import Backend, Chunk, ContainerInfo, Peak, Session, ShmReading
from trainlaunch.run.base.console import another_attempt
from trainlaunch.run.base.log_position import WHOLE, LogPart, position_of
from trainlaunch.run.base.multi_node import Prefixed, containers_of_run, deciding, ends_of, merged
from trainlaunch.run.base.run_evidence import (
    NEVER_SPOKE,
    evidence_of_run,
    preflight_never_ran,
    with_plan,
    without_secrets,
)
from trainlaunch.run.base.secret_values import Redactor, values_here
from trainlaunch.run.base.shm_reading import highest, measured_line, peak_of, read_from_health
from trainlaunch.run.run_lock import keeper_of
from trainlaunch.run.run_record import RunRecord

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.evidence import Evidence
LOOK_SECONDS = 0.3


def next_attempt(backend: Backend, container: ContainerInfo) -> tuple[ContainerInfo, ...]:
    """Return the containers of the attempt after one that has ended, by node; none where no more comes.

    Where a process supervises the run on this host, its word is waited for.
    """
    while container.run:
        keeper = keeper_of(container.run)  # asked first: what it starts before it is over is seen after it
        newest = containers_of_run(backend.runs(container.job, container.run), container.run)
        if newest and newest[0].attempt > container.attempt:
            return newest
        if keeper is None or keeper.over or not newest:
            return ()
        time.sleep(LOOK_SECONDS)
    return ()


def follow_to_end(
    backend: Backend,
    containers: tuple[ContainerInfo, ...],
    show: Callable[[Chunk], None] | None,
    say: Callable[[str], None],
    part: LogPart | None = None,
) -> tuple[int, tuple[ContainerInfo, ...]]:
    """Wait for the end of a run, attempts that its supervisor adds included; return its exit code and last containers.

    Where `show` is given it gets a part of what there is of the output (None: all), and all that comes.
    A restart of the engine is outlived. Raises TargetUnavailable.
    """
    part = part or WHOLE
    while True:
        containers = _when_started(backend, containers)
        sessions = [backend.follow(each.id, position_of(part)) for each in containers]
        if show is not None:
            for chunk in _together([each.chunks() for each in sessions]):
                show(chunk)
        code = code_of_all(backend, containers, sessions, say)
        more = next_attempt(backend, containers[0])
        if not more:
            return _code_of_job(backend, containers, code, say), containers
        say(another_attempt(containers[0].attempt, containers[0].max_attempts, code))
        containers, part = more, part._replace(tail=None, since=None)


def _code_of_job(backend: Backend, containers: tuple[ContainerInfo, ...], code: int, say: Callable[[str], None]) -> int:
    """Return the exit code of a run; 125 instead of 0, and why, where nothing of its job ran."""
    if code or not is_silent(backend, containers):
        return code
    say(NEVER_SPOKE)
    return EXIT_BEFORE_START


def is_silent(backend: Backend, containers: tuple[ContainerInfo, ...]) -> bool:
    """Return whether a run ended with 0 and never came to its preflight."""
    now = tuple(filter(None, (backend.inspect(each.id) for each in containers)))
    return bool(now) and preflight_never_ran(backend, now, RunRecord(now[0].run).ended(now[0].attempt))


def code_of_all(
    backend: Backend, containers: tuple[ContainerInfo, ...], sessions: Sequence[Session], say: Callable[[str], None]
) -> int:
    """Wait until a run has ended, or the first of its nodes has failed, and return its exit code as `code_of` does."""
    if len(containers) == 1:
        return code_of(backend, containers[0], sessions[0], say)
    waits = zip(containers, sessions, strict=True)
    ends = ends_of([functools.partial(code_of, backend, each, session, say) for each, session in waits])
    code = next((each for each in ends if each), 0)
    # Those that had ended before answer in any order: the engine knows which was first.
    now = tuple(filter(None, (backend.inspect(each.id) for each in containers)))
    return (deciding(now).exit_code if now else None) or code


def code_of(backend: Backend, container: ContainerInfo, session: Session, say: Callable[[str], None]) -> int:
    """Wait for the end of a run and return its exit code; 125, and why, where it has none."""
    code = session.exit_code()
    if code is None:
        now = backend.inspect(container.id)
        removed = f"{container.noun} {container.name} was removed while it was waited for"
        why = "" if now is None else now.error or "it was created and has not started"
        say(f"{now.noun} {now.name} has no exit code: {why}" if now is not None else removed)
        return EXIT_BEFORE_START
    if container.exit_code is None and container.status != "running":
        now = backend.inspect(container.id)  # the engine answers 0 for one that was never started
        if now is not None and now.exit_code is None:
            why = now.error or "it was created and has not started"
            say(f"{now.noun} {now.name} has no exit code: {why}")
            return EXIT_BEFORE_START
    return code


def _when_started(backend: Backend, containers: tuple[ContainerInfo, ...]) -> tuple[ContainerInfo, ...]:
    """Return containers when they run: their supervisor makes all of them before it starts one."""
    while any(each.status == "created" and not each.error for each in containers):
        keeper = keeper_of(containers[0].run)
        containers = tuple(filter(None, (backend.inspect(each.id) for each in containers))) or containers
        if keeper is None or keeper.over:
            break
        time.sleep(LOOK_SECONDS)
    return containers


def printed(backend: Backend, containers: tuple[ContainerInfo, ...], part: LogPart) -> Iterator[Chunk]:
    """Yield a part of what containers have printed, one node after the other."""
    logs = [backend.logs(each.id, follow=False, position=position_of(part)) for each in containers]
    if len(logs) == 1:
        return logs[0]
    return _numbered(replace(chunk, node=node) for node, log in enumerate(logs) for chunk in log)


def _together(logs: list[Iterator[Chunk]]) -> Iterator[Chunk]:
    """Yield the output of all nodes as it comes."""
    return logs[0] if len(logs) == 1 else _numbered(merged(logs))


def _numbered(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    prefixed = Prefixed()
    for chunk in chunks:
        yield replace(chunk, data=prefixed.take(chunk))
    yield from prefixed.rest()


def end_evidence(backend: Backend, containers: tuple[ContainerInfo, ...]) -> Evidence | None:
    """Return what is known about a run's end, secrets taken out as `redaction` can; None before it."""
    now = tuple(filter(None, (backend.inspect(each.id) for each in containers)))
    evidence = evidence_of_run(backend, now, RunRecord(containers[0].run).ended(containers[0].attempt))
    if evidence is None:
        return None
    plan = RunRecord(containers[0].run).plan()
    evidence = evidence if plan is None else with_plan(evidence, plan)
    return without_secrets(evidence, redaction(backend, now))


def to_paste(backend: Backend, containers: tuple[ContainerInfo, ...], evidence: Evidence) -> str:
    """Return what an ended run without sizes is to be given, empty for a sized one and for a command's."""
    if not RunRecord(containers[0].run).has_job():
        return ""
    now = tuple(filter(None, (backend.inspect(each.id) for each in containers)))
    peak = highest(peak_of_container(each, None) for each in now)
    size = max((each.own_shm for each in now), default=0)
    return measured_line(evidence.planned, peak, size=size, exit_code=evidence.exit_code or 0)


def peak_of_container(container: ContainerInfo, reading: ShmReading | None) -> Peak | None:
    """Return the highest peak of its /dev/shm that anyone saw: a reading of now, its health check, who followed it.

    A reading that is higher than all of those is kept for the commands that come later.
    """
    kept, now = RunRecord(container.run), peak_of(reading)
    kept.saw(container.attempt, container.node, now)
    last = peak_of(read_from_health(container.health_output))
    return highest((now, last, kept.peak(container.attempt, container.node)))


def redaction(backend: Backend, containers: Sequence[ContainerInfo]) -> Redactor:
    """Return what takes the secrets of a run out of a text: those that its target still has, and those of its plan."""
    plan = RunRecord(containers[0].run).plan()
    values = [] if plan is None else list(values_here(plan).items())
    return Redactor(values + [each for container in containers for each in backend.secrets(container)])
