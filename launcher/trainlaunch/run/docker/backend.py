"""The docker target: one container an attempt, its state in the engine's labels."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlaunch.errors import TargetUnavailable
from trainlaunch.job.reserved import LABEL_PREFIX
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.target_names import node_names
from trainlaunch.run.base.backend import ContainerInfo, Position, Say, Session, ShmReading
from trainlaunch.run.base.caller_terminal import TypedKeys
from trainlaunch.run.base.engine_terminal import EngineTerminal
from trainlaunch.run.base.log_position import BytePosition
from trainlaunch.run.base.multi_node import at_once
from trainlaunch.run.base.run_query import may_move
from trainlaunch.run.base.sessions import LoggedSession, ReconnectingSession
from trainlaunch.run.base.shm_reading import read_from_health, read_from_proc
from trainlaunch.run.docker.attachment import join_caller, keep_caller
from trainlaunch.run.docker.checks import host_findings, name_taken, shares_this_host, start_refused, volume_findings
from trainlaunch.run.docker.client import (
    CONFLICT,
    GONE,
    Engine,
    EngineRefused,
    find_endpoint,
)
from trainlaunch.run.docker.containers import (
    COMPOSE_PROJECT,
    Entry,
    Told,
    alien_label,
    create_body,
    described_by,
    entries,
    made_before,
    secrets_of,
    started_from,
)
from trainlaunch.run.docker.exec_command import execute, run_health_command
from trainlaunch.run.docker.image import ensure_image
from trainlaunch.run.docker.streams import SHUTDOWN, AttachedSession, ContainerStreams, signals_sent

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot

NAME_TRIES = 3  # for a name that other starts of the job move away and take meanwhile
JOB, RUN = LABEL_PREFIX + "job", LABEL_PREFIX + "run"
TTL_LABEL = LABEL_PREFIX + "ttl-after-finished"


class DockerBackend(ContainerStreams):
    """Runs jobs on the Docker engine that the `docker` command would use."""

    place = "this engine"

    def __init__(self, engine: Engine | None = None, *, proc: Path = Path("/proc"), say: Say = lambda _: None) -> None:
        super().__init__()
        self.engine = engine or Engine(find_endpoint())
        self._proc = proc
        self._readable_proc = True
        self._say: Say = say
        self._hears_aliens = say
        self._was_away = False
        self._serves = False

    def serve(self, terminal: TypedKeys | None) -> None:
        """Give the next container the caller's own user, and in front the caller's terminal or stdin."""
        self._serves = True
        self._terminal = terminal if isinstance(terminal, EngineTerminal) else None

    def prepare(self, plan: LaunchPlan, say: Say) -> None:
        """Check the host, then the name, then get the image."""
        self._check_host(plan, say)
        self._holders(plan)
        ensure_image(self.engine, plan, say)

    def check(self, plan: LaunchPlan, say: Say) -> None:
        """Check the host and get the image, for a container that has another name than the job's."""
        self._check_host(plan, say)
        ensure_image(self.engine, plan, say)

    def _check_host(self, plan: LaunchPlan, say: Say) -> None:
        self._say = say
        info = self.engine.info
        local = shares_this_host(info, self.engine.endpoint.socket_path)
        findings = (*host_findings(plan, info, local=local), *volume_findings(plan, self.engine))
        if findings:
            raise TargetUnavailable(findings)

    def create(self, plan: LaunchPlan, run: str, attempt: int) -> str:
        """Take the job's name, from an ended earlier container of it too; the engine lets one of two racers win."""
        body = create_body(plan, run=run, attempt=attempt)
        if self._serves:
            join_caller(body, self._terminal)
            keep_caller(body, self.engine.info, os.getgroups() if os.getuid() else (), podman=self.engine.is_podman)
        for _ in range(NAME_TRIES):
            created = self._created(plan, body)
            if created is not None:  # mostly nothing holds the name, and nobody need ask
                return created
            self._make_way(plan)
        raise TargetUnavailable([name_taken(plan, self.inspect(plan.name))])

    def _created(self, plan: LaunchPlan, body: dict[str, Any]) -> str | None:
        """Return the id of a new container; None where something holds its name."""
        try:
            with self.engine.attempting(f"create container {plan.name}") as client:
                return str(client.create_container_from_config(body, plan.name)["Id"])
        except EngineRefused as refused:
            if refused.status == CONFLICT:
                return None
            raise

    def close(self) -> None:
        """Close all connections."""
        self.engine.close()

    def _holders(self, plan: LaunchPlan) -> tuple[ContainerInfo, ...]:
        """Return the ended runs of this job that have the plan's names; raises TL506 where anything else has one."""
        found = tuple(filter(None, map(self.inspect, node_names(plan.name, plan.nodes))))
        for holder in found:
            if not may_move(holder, plan):
                raise TargetUnavailable([name_taken(plan, holder)])
        return found

    def _make_way(self, plan: LaunchPlan) -> tuple[ContainerInfo, ...]:
        """Rename those runs and return them as they were."""
        holders = self._holders(plan)
        for holder in holders:
            self._move_away(holder, plan)
        return holders

    def _move_away(self, holder: ContainerInfo, plan: LaunchPlan) -> None:
        suffix = holder.run or holder.id[:12]
        new_name = f"{holder.name}-{suffix}" if holder.attempt == 1 else f"{holder.name}-{suffix}-{holder.attempt}"
        try:
            with self.engine.attempting(f"rename container {holder.name} to {new_name}") as client:
                client.rename(holder.id, new_name)
        except EngineRefused as refused:
            # Another `up` has just moved or removed it: whoever creates the name first wins.
            now = self.inspect(holder.id)
            if now is not None and now.name == holder.name:
                raise TargetUnavailable([name_taken(plan, now)]) from refused

    def begin(self, container: str) -> Session:
        """Attach and wait before the start, so that neither the first byte nor a quick end is missed."""
        try:
            attached, waiting = self._started(container)
        except EngineRefused as refused:
            self.remove(container)
            raise start_refused(refused) from refused
        position = BytePosition()
        session = AttachedSession(self, container, (attached, waiting), position)
        return ReconnectingSession(session, self, container, position, notice=self._notice)

    def resume(self, container: str) -> Session:
        """Read the log from its first byte and wait, over restarts of the engine as after a start."""
        return DockerBackend.follow(self, container, BytePosition())

    def follow(self, container: str, position: Position) -> Session:
        """Read the log from a position and wait, over restarts of the engine as after a start."""
        session = LoggedSession(self, container, position)
        return ReconnectingSession(session, self, container, position, notice=self._notice)

    def _notice(self, absence: str) -> None:
        self._was_away = True
        self._say(absence)

    def stop(self, container: str) -> None:
        """Stop within the container's own grace period, which the engine knows from its creation."""
        grace = (self._inspect(container) or {}).get("Config", {}).get("StopTimeout")
        with self._tolerating_gone(f"stop container {container[:12]}") as client:
            client.stop(container, timeout=grace)

    def interrupt(self, container: str) -> None:
        """Send SIGINT."""
        with self._tolerating_gone(f"interrupt container {container[:12]}", CONFLICT) as client:
            client.kill(container, "SIGINT")

    def kill(self, container: str) -> None:
        """Send SIGKILL; a container that has ended already is left alone."""
        with self._tolerating_gone(f"kill container {container[:12]}", CONFLICT) as client:
            client.kill(container, "SIGKILL")

    def inspect(self, container: str) -> ContainerInfo | None:
        """Describe a container by id or name."""
        return None if (found := self._inspect(container)) is None else self._described(found)

    checked = inspect  # the engine makes the checks

    def _described(self, found: Mapping[str, Any]) -> ContainerInfo:
        return started_from(found)

    def _inspect(self, container: str) -> dict[str, Any] | None:
        try:
            with self.engine.attempting(f"inspect container {container[:63]}") as client:
                found: dict[str, Any] = client.inspect_container(container)
                return found
        except EngineRefused as refused:
            if refused.status == GONE:
                return None
            raise

    def signals(self, container: ContainerInfo) -> tuple[int, ...]:
        """Return the signals of the engine's kill events, or those that it sends when it shuts down."""
        found = signals_sent(self.engine, container)
        if not found and self._was_away and container.finished and not container.oom_killed:
            return SHUTDOWN.get(container.exit_code, ())
        return found

    def secrets(self, container: ContainerInfo) -> tuple[tuple[str, str], ...]:
        """Return what the engine's own description of a container tells of them."""
        return tuple(secrets_of(self._inspect(container.id) or {}))

    def expiring(self) -> tuple[ContainerInfo, ...]:
        """Describe those alone that were made so long ago: the engine describes containers one by one."""
        return self._described_each(made_before(self._entries({TTL_LABEL: None}), TTL_LABEL, time.time()))

    def runs(self, job: str | None = None, run: str | None = None) -> tuple[ContainerInfo, ...]:
        """Return the containers with our job label, newest first, those of rendered `docker run` texts included."""
        return self._described_each(self._entries({JOB: job, **({} if run is None else {RUN: run})}))

    def listed(self, job: str | None = None) -> tuple[ContainerInfo, ...]:
        """Describe them by one list, and by a call each those of which that doesn't tell enough."""
        own = self._entries({JOB: job})
        return self._described_each(own, lambda each: self._told(each, own))

    def _told(self, entry: Entry, _among: Sequence[Entry]) -> dict[str, Any] | None:
        return described_by(entry)

    def _is_of_this_target(self, project: str) -> bool:
        return not project

    def _entries(self, labels: Mapping[str, str | None]) -> list[Entry]:
        """Return the engine's list of containers of this target with labels, each of that value or any."""
        found = entries(self.engine, labels)
        return [each for each in found if self._is_of_this_target((each.get("Labels") or {}).get(COMPOSE_PROJECT, ""))]

    def _described_each(self, listed: Sequence[Entry], told: Told = lambda _: None) -> tuple[ContainerInfo, ...]:
        """Return what is said of listed containers by `told`, else by the engine, in their order: newest first."""
        found = at_once(lambda each: told(each) or self._inspect(each["Id"]), listed)
        return tuple(filter(None, map(self._fitting, found)))

    def _fitting(self, found: dict[str, Any] | None) -> ContainerInfo | None:
        """Read a description; None where there is none, or it is none of ours by its labels, which is said."""
        if found is None:
            return None
        try:
            why = alien_label(found)
            if not why:
                return self._described(found)
        except (KeyError, TypeError, ValueError, OverflowError) as alien:
            why = f"the engine's description of it can't be read: {alien!r}"
        name = str(found.get("Id"))[:12]
        self._hears_aliens(f"container {name} is left out: {why}; `docker rm -f {name}` removes it")
        return None

    def remove(self, container: str) -> None:
        """Remove an ended container with its anonymous volumes; one that is gone is fine."""
        with self._tolerating_gone(f"remove container {container[:12]}") as client:
            client.remove_container(container, v=True)

    def read_shm(self, container: ContainerInfo) -> ShmReading | None:
        """Read through /proc where the engine runs on this host and we may, else by the health command inside."""
        if self._readable_proc:
            reading = read_from_proc(container, self._proc)
            if reading is not None:
                return reading
            now = self.inspect(container.id)
            if now is None or now.ended:
                return None
            self._readable_proc = False
        return read_from_health(run_health_command(self.engine, container.id, self._inspect(container.id) or {}))

    def look(self, container: ContainerInfo) -> ContainerSnapshot | None:
        """Look through /proc where the engine runs on this host and we may, else by a command inside."""
        from trainlaunch.run.base.live_snapshot import look_at

        return look_at(container, self._proc, lambda command: execute(self.engine, container.id, command))

    @property
    def sample_seconds(self) -> float:
        """Seconds between two readings: reading /proc is one system call, the health command is a process."""
        return 0.2 if self._readable_proc else 5.0

    @contextlib.contextmanager
    def _tolerating_gone(self, what: str, *more: int) -> Iterator[Any]:
        try:
            with self.engine.attempting(what) as client:
                yield client
        except EngineRefused as refused:
            if refused.status not in {GONE, *more}:
                raise
