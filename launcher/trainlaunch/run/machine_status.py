"""How a run on this host stands: in JSON, in the lines that `status` prints, and to `doctor` while it goes on."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from trainlaunch.run.base.backend import Backend, ContainerInfo, Peak, ShmReading
from trainlaunch.run.base.console import not_kept
from trainlaunch.run.base.multi_node import deciding, newest_of
from trainlaunch.run.base.run_evidence import NEVER_SPOKE, evidence_of, read_whole_log, with_plan, without_secrets
from trainlaunch.run.base.run_query import Run
from trainlaunch.run.base.shm_reading import highest, is_stalled, measured_line
from trainlaunch.run.base.store import (
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    ContainerStatus,
    Live,
    RunReport,
    RunStatus,
    ShmStatus,
    WorkerStatus,
)
from trainlaunch.run.base.wait_reading import DataWait, waited_words
from trainlaunch.run.following import end_evidence, is_silent, peak_of_container, redaction
from trainlaunch.run.run_lock import Keeper, keeper_of
from trainlaunch.run.run_record import RunRecord
from trainlaunch.sanitize import shown
from trainlaunch.units import age, counted, format_duration, human_size, needed_size

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot

MOST_MESSAGES = 5


class _Seen(NamedTuple):
    """A container, its /dev/shm now (None: it can't be read), the highest peak that anyone saw, its waits for data.

    `has_job`: a job file started it, which could give it a size.
    """

    container: ContainerInfo
    reading: ShmReading | None
    peak: Peak | None
    waits: DataWait | None = None
    has_job: bool = True

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return (self.container.finished or time.time()) - self.container.started


def status_of(run: Run, seen: Mapping[str, _Seen] | None = None) -> RunStatus:
    """Return a run's values; `seen` has what was read of its containers, by id."""
    newest = newest_of(run.held)
    end = deciding(newest)
    finished = [each.finished for each in newest]
    seen = seen or {}
    containers = sorted(run.held, key=lambda each: (-each.attempt, each.node or 0))
    return RunStatus(
        job=run.job,
        run=run.id,
        name=end.name if len(newest) == 1 else end.project or run.id,
        target=run.target,
        context=None,
        namespace=None,
        kind=None,
        owner=run.owner or None,
        state=_state_of(end),
        reason=None,
        message=end.error or None,
        exit_code=end.exit_code,
        attempt=end.attempt,
        max_attempts=end.max_attempts,
        created=run.created,
        started=min((each.started for each in newest if each.started), default=None),
        finished=max(finished) if all(finished) else None,
        containers=tuple(_container(each, seen.get(each.id)) for each in containers),
    )


def _state_of(container: ContainerInfo) -> str:
    if container.status == "running":
        return RUNNING
    if container.ended:
        return SUCCEEDED if container.exit_code == 0 else FAILED
    return PENDING


def _container(container: ContainerInfo, seen: _Seen | None) -> ContainerStatus:
    reading, peak = (None, None) if seen is None else (seen.reading, seen.peak)
    return ContainerStatus(
        name=container.name,
        id=container.id,
        node=container.node,
        attempt=container.attempt,
        machine=None,
        state=_state_of(container),
        reason=None,
        message=container.error or None,
        exit_code=container.exit_code,
        oom_killed=container.oom_killed if container.ended else None,
        restarts=None,
        health=container.health or None,
        health_output=container.health_output or None,
        created=container.created,
        started=container.started or None,
        finished=container.finished or None,
        shm=ShmStatus(
            used=reading.used if reading else None,
            peak=peak.held if peak else None,
            size=reading.size if reading else (container.own_shm if container.private_shm else None),
            need=None if container.planned.unsized else container.planned.need,
        ),
        workers=WorkerStatus(reading.workers if reading else None, container.planned.processes),
        data_wait=seen.waits.document(seen.seconds) if seen is not None and seen.waits is not None else None,
    )


def report(backend: Backend, run: Run) -> RunReport:
    """Look at the containers of a run's newest attempt, and at who keeps it. Raises TargetUnavailable."""
    from trainlaunch.diagnose import causes_json, explain_end

    containers = newest_of(run.held)
    kept, keeper = RunRecord(containers[0].run), keeper_of(containers[0].run)
    has_job = kept.has_job()
    seen = [_look(backend, each, has_job=has_job) for each in containers]
    silent = is_silent(backend, containers)
    evidence = end_evidence(backend, containers)
    causes = () if evidence is None else explain_end(evidence)
    suggestion = _suggestion(seen)
    status = status_of(run, {each.container.id: each for each in seen})._replace(
        waits=(),
        never_ran=silent,
        keeper=None if keeper is None else keeper._asdict(),
        messages=tuple(each._asdict() for each in kept.said()),
        causes=tuple(causes_json(causes)),
        suggestion=suggestion or None,
    )
    return RunReport(
        status,
        lines=(*_container_lines(seen), *([f"preflight  {NEVER_SPOKE}"] * silent)),
        further=tuple(_kept_lines(containers, kept, keeper)),
        causes=causes,
        evidence=evidence,
        bad=silent or any(each.health == "unhealthy" or each.exit_code or each.error for each in containers),
    )


def _look(backend: Backend, container: ContainerInfo, *, has_job: bool) -> _Seen:
    reading = backend.read_shm(container) if container.status == "running" else None
    return _Seen(container, reading, peak_of_container(container, reading), _data_wait(backend, container), has_job)


def _data_wait(backend: Backend, container: ContainerInfo) -> DataWait | None:
    """Return what a container waited for data: until now, or what was kept of one that has ended."""
    if container.status != "running":
        return RunRecord(container.run).data_wait(container.attempt, container.node)
    page = backend.wait_page(container)
    if page is None:
        return None
    with contextlib.closing(page):
        return page.read()


def _suggestion(seen: Sequence[_Seen]) -> str:
    """Return what an unsized run of a job file is to be given, by the highest peak of all its nodes."""
    first = seen[0].container
    if not seen[0].has_job:
        return ""
    code = max(each.container.exit_code or 0 for each in seen) if all(each.container.ended for each in seen) else None
    peak = highest(each.peak for each in seen)
    return measured_line(first.planned, peak, size=first.own_shm, exit_code=code)


def _kept_lines(containers: Sequence[ContainerInfo], kept: RunRecord, keeper: Keeper | None) -> Iterator[str]:
    """Yield who supervises a run, or what it goes without, and what was said of it meanwhile."""
    first, plan = containers[0], kept.plan()
    deadline = None if plan is None else plan.job.active_deadline
    if keeper is not None:
        attempts = f", restart.max_attempts {first.max_attempts}" if first.max_attempts > 1 else ""
        limits = "" if deadline is None else f", active_deadline {format_duration(deadline)}"
        yield f"supervisor {keeper}{attempts}{limits}"
    elif first.run and (first.max_attempts > 1 or deadline is not None) and not all(each.ended for each in containers):
        off = f"{not_kept(first.max_attempts, deadline)}; `trainlaunch attach {first.job}` starts one"
        yield f"supervisor none on this host, so {off}"
    for message in kept.said()[-MOST_MESSAGES:]:
        yield from (f"said       {shown(line)}" for line in str(message).splitlines())


def _container_lines(seen: Sequence[_Seen]) -> Iterator[str]:
    for each in seen:
        prefix = "" if len(seen) == 1 else f"[{each.container.node}] "
        yield from (f"{prefix}{line}" for line in _lines(each))


def _lines(seen: _Seen) -> list[str]:
    container, reading = seen.container, seen.reading
    attempts = f", attempt {container.attempt} of {container.max_attempts}" if container.max_attempts > 1 else ""
    lines = [
        f"job        {container.job} ({container.noun} {container.name}{attempts})",
        f"state      {_state(container)}",
        f"/dev/shm   {_shm(seen)}",
    ]
    if reading is not None and reading.workers is not None:
        planned = container.planned.processes
        lines.append(f"workers    {reading.workers} running, {'unknown' if planned is None else planned} planned")
    if seen.waits is not None and (words := waited_words(seen.waits, seen.seconds)):
        lines.append(f"data       {words}")
    return lines


def _state(container: ContainerInfo) -> str:
    health = f", {container.health}" if container.health else ""
    if container.status == "running":
        reason = container.health_output.removeprefix("unhealthy: ")
        told = container.health in {"unhealthy", "unchecked"} or is_stalled(container.health_output)
        said = f": {reason}" if told and reason else ""
        return f"running for {age(time.time() - container.started)}{health}{said}"
    if container.exit_code is None:
        if container.status == "exited":
            return f"ended: {container.error}"
        return f"never ran: {container.error}" if container.error else "created, not started yet"
    killed = ", OOMKilled" if container.oom_killed else ""
    ran = age(container.finished - container.started)
    return f"ended with exit code {container.exit_code} after {ran}{killed}"


def _shm(seen: _Seen) -> str:
    container, reading, peak = seen[:3]
    local = not container.where.private_shm
    parts = [f"used {human_size(reading.used)}{' by all of the host' * local}"] if reading else []
    parts += [f"peak {human_size(peak.held)}{' of this run' * local}"] if peak is not None else []
    if reading is not None:
        parts.append(f"size {human_size(reading.size)}" if reading.size else "size unlimited")
    elif container.private_shm:
        parts.append(f"size {human_size(container.shm_size)}")
    if container.planned.unsized:
        parts += ["unsized"] * seen.has_job
    elif container.planned.need is not None:
        parts.append(f"one-epoch peak {needed_size(container.planned.need)}")
    return ", ".join(parts) or "not read"


def look_into(backend: Backend, container: ContainerInfo) -> Live:
    """Look at one container that runs, which takes two seconds. Raises TargetUnavailable."""
    log, facts = read_whole_log(backend, container)
    evidence = replace(evidence_of(container, log=log), scanned=facts, job=container.job)
    if (plan := RunRecord(container.run).plan()) is not None:
        evidence = with_plan(evidence, plan)
    evidence = without_secrets(evidence, redaction(backend, [container]))
    evidence = replace(evidence, look=backend.look(container))
    shm = evidence.look.shm if evidence.look is not None else None
    if shm is not None and shm.size and evidence.private_shm:
        evidence = replace(evidence, shm_size=shm.size)
    return Live(_sentence(container, evidence.look), container.health == "unhealthy", evidence)


def _sentence(container: ContainerInfo, seen: ContainerSnapshot | None) -> str:
    does = "runs" if container.status == "running" else "was created and has not started"
    parts = [f"{container.noun} {container.name} {does}"]
    if container.health:
        parts.append(container.health + (f" ({container.health_output.strip()})" if container.health_output else ""))
    if seen is not None:
        parts.append(counted(len(seen.workers), "DataLoader worker"))
    return ", ".join(parts)
