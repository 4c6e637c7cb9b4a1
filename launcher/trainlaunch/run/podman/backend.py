"""Podman as the docker target: it speaks Docker's API, with differences that are evened out or refused here.

Measured with Podman 4.3: a stop leaves no event, a followed log loses lines when the job ends, GPU requests are
dropped in silence, health checks need systemd, an out-of-memory kill can go unnoticed.
"""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.exit_codes import EXIT_SIGKILL
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import Chunk, ContainerInfo, Position, Say, Session
from trainlaunch.run.base.host_gpus import NO_GPU
from trainlaunch.run.base.log_position import BytePosition, TimePosition
from trainlaunch.run.base.shm_reading import OwnChecks, is_stalled
from trainlaunch.run.base.watch import UNHEALTHY
from trainlaunch.run.docker.backend import DockerBackend
from trainlaunch.run.docker.client import EngineRefused
from trainlaunch.run.docker.containers import Entry, Told
from trainlaunch.run.docker.exec_command import run_health_command
from trainlaunch.run.podman.log import followed, killed_for_memory

NOT_EXPRESSIBLE = "TL401"
UNCHECKED = "unchecked"
NO_TIMER = "no health check has run: Podman leaves them to timers of systemd, and none came"
LOOK_SECONDS = 0.1
WAITERS_LOOK_SECONDS = 0.5  # Podman's own wait looks four times a second
FIREWALL_TRIES, FIREWALL_SECONDS = 5, 1.0
SIGKILL = 9
NANO = 1_000_000_000
SLACK = 5.0  # seconds within which what is due has happened


class PodmanBackend(DockerBackend):
    """Runs jobs on Podman's service. Containers outlive it: each has a process of its own that keeps it."""

    place = "this Podman"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._checks = OwnChecks()

    def prepare(self, plan: LaunchPlan, say: Say) -> None:
        """Refuse what Podman would leave out or misread; then as on Docker."""
        _refuse(plan)
        with in_podmans_words():
            super().prepare(plan, say)

    def check(self, plan: LaunchPlan, say: Say) -> None:
        """Refuse and check likewise."""
        _refuse(plan)
        with in_podmans_words():
            super().check(plan, say)

    def create(self, plan: LaunchPlan, run: str, attempt: int) -> str:
        """Create as on Docker."""
        with in_podmans_words():
            return super().create(plan, run, attempt)

    def begin(self, container: str) -> Session:
        """Begin as on Docker."""
        with in_podmans_words():
            return super().begin(container)

    def _started(self, container: str) -> tuple[Any, Any]:
        """Start it as on Docker; Podman prepares it, and may refuse, at the attach already."""
        for _ in range(FIREWALL_TRIES - 1):
            try:
                return super()._started(container)
            except EngineRefused as refused:
                if not _of_firewall(refused):
                    raise
            time.sleep(FIREWALL_SECONDS)
        return super()._started(container)

    def stop(self, container: str) -> None:
        """Send both signals ourselves: Podman notes a kill as an event, and a stop only sometimes."""
        config = (self._inspect(container) or {}).get("Config", {})
        with self._tolerating_gone(f"stop container {container[:12]}", 409) as client:
            client.kill(container, config.get("StopSignal") or "SIGTERM")
        deadline = time.monotonic() + (config.get("StopTimeout") or 0)
        while (now := self.inspect(container)) is not None and not now.ended:
            if time.monotonic() >= deadline:
                self.kill(container)
                self.wait(container)
                break
            time.sleep(LOOK_SECONDS)
        time.sleep(WAITERS_LOOK_SECONDS)  # else who waits in another process finds it removed, and has no exit code

    def checked(self, container: str) -> ContainerInfo | None:
        """Describe it; where no timer makes the checks, run the health command when the next one is due."""
        now = self.inspect(container)
        if now is None or now.health != UNCHECKED:
            return now
        found = self._inspect(container) or {}
        check = (found.get("Config") or {}).get("Healthcheck") or {}
        if not self._checks.due(container, check.get("Interval", 0) / NANO):
            return None
        said = run_health_command(self.engine, container, found).strip()
        failed = said.startswith(UNHEALTHY) and time.time() - now.started >= check.get("StartPeriod", 0) / NANO
        ill = self._checks.unhealthy(container, failed=failed, retries=check.get("Retries") or 1)
        return replace(now, health="unhealthy", health_output=said) if ill or is_stalled(said) else None

    def signals(self, container: ContainerInfo) -> tuple[int, ...]:
        """Return what its events of the last moments tell; they have no numbers, so the exit code has to say more."""
        if not container.finished:
            return ()
        config = (self._inspect(container.id) or {}).get("Config", {})
        since = max(container.started, container.finished - (config.get("StopTimeout") or 0) - SLACK)
        try:
            sent = sum(1 for each in self._stop_events(container.id, since))
        except EngineRefused:
            return ()  # containers.conf can turn its events off
        asked = [_number_of(str(config.get("StopSignal") or 15))] * sent
        if sent and container.exit_code == EXIT_SIGKILL:
            asked[-1] = SIGKILL
        return tuple(asked)

    def _stop_events(self, container: str, since: float) -> Iterator[Mapping[str, Any]]:
        """Yield its events `kill` and `stop`; with `until`, as the SDK asks, Podman answers with none at all."""
        kinds = json.dumps({"container": [container], "event": ["kill", "stop"]})
        with self.engine.attempting("read events") as client:
            url = f"{client.base_url}/v{client.api_version}/events"
            asked = {"since": int(since), "stream": "false", "filters": kinds}
            answer = client.get(url, params=asked, timeout=client.timeout)
        if answer.status_code != 200:
            raise EngineRefused("read events", answer.text, answer.status_code)
        for line in answer.text.splitlines():
            event = json.loads(line)
            if event["timeNano"] / NANO >= since:
                yield event

    def logs(self, container: str, *, follow: bool, position: Position | None = None) -> Iterator[Chunk]:
        """Yield its log; what Podman loses of a followed one at the end is read again."""
        place = BytePosition() if position is None else position

        def read(follow: bool) -> Iterator[Chunk]:
            return self._log(container, follow=follow, **place.query())

        if isinstance(place, TimePosition) and place.tail is not None:
            # Podman's own cuts lines in other places, and adds a line's end to the last one.
            yield from place.take_last(self._log(container, follow=False, timestamps=1))
        elif not follow:
            yield from place.take(read(False))
        if not follow:
            return
        yield from followed(
            read,
            place,
            goes_on=lambda: (now := self.inspect(container)) is not None and now.status == "running",
            wait=lambda: self.wait(container),
        )

    def _told(self, entry: Entry, among: Sequence[Entry]) -> dict[str, Any] | None:
        """Let those of one second be described one by one: Podman doesn't sort its list, which has whole seconds."""
        same = sum(each["Created"] == entry["Created"] for each in among)
        return super()._told(entry, among) if same == 1 else None

    def _described_each(self, listed: Sequence[Entry], told: Told = lambda _: None) -> tuple[ContainerInfo, ...]:
        """Sort them."""
        return tuple(sorted(super()._described_each(listed, told), key=lambda each: each.created, reverse=True))

    def _described(self, found: Mapping[str, Any]) -> ContainerInfo:
        started = replace(super()._described(found), engine="podman")
        if _is_unchecked(found, started):
            return replace(started, health=UNCHECKED, health_output=NO_TIMER)
        unnoticed = started.ended and started.memory and not started.oom_killed
        return replace(started, oom_killed=True) if unnoticed and killed_for_memory(started.id) else started


def _refuse(plan: LaunchPlan) -> None:
    nvidia = plan.gpus and plan.job.resources.gpu_vendor == "nvidia"  # AMD's are plain device nodes
    refused = [*([_no_gpus(plan)] if nvidia else ()), *_misread_mounts(plan)]
    if refused:
        raise TargetUnavailable(refused)


def _of_firewall(refused: EngineRefused) -> bool:
    """Whether its network's rules could not be written, as while Docker, which has the same table, writes its own."""
    return "netavark" in refused.explanation and "iptables" in refused.explanation


def _is_unchecked(found: Mapping[str, Any], started: ContainerInfo) -> bool:
    """Whether the first health check of a running container is overdue."""
    check = found["Config"].get("Healthcheck") or {}
    due = (check.get("Interval", 0) + check.get("Timeout", 0)) / NANO
    checked = (found["State"].get("Health") or {}).get("Log")
    return bool(started.health) and not checked and time.time() > started.started + due + SLACK


def _number_of(name: str) -> int:
    """Return a signal's number; Podman says `15` where Docker says `SIGTERM`."""
    return int(name) if name.isdigit() else signal.Signals[name]


@contextlib.contextmanager
def in_podmans_words() -> Iterator[None]:
    """Name the command to type `podman`, where the shared messages say `docker`."""
    try:
        yield
    except TargetUnavailable as refused:
        raise TargetUnavailable(
            each._replace(message=_podman(each.message), why=_podman(each.why), fix=_podman(each.fix))
            for each in refused.diagnostics
        ) from refused


def _podman(text: str) -> str:
    text = text.replace("`docker ", "`podman ")
    return f"podman: {text.removeprefix('docker: ')}" if text.startswith("docker: ") else text


def _no_gpus(plan: LaunchPlan) -> Diagnostic:
    asked = plan.gpus.words
    return Diagnostic(
        code=NO_GPU,
        message=f"resources.gpus is {asked} and Podman leaves GPUs out of containers made through its Docker API",
        why="it takes the request and drops it in silence; the job would start without a GPU",
        fix="use a Docker engine, or `--target local`, or add `--set resources.gpus=0`",
        span=plan.job.span("resources.gpus"),
        field="resources.gpus",
    )


def _misread_mounts(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error for each path that Podman's Docker API would take apart: it writes mounts as CSV, unquoted."""
    for index, mount in enumerate(plan.job.mounts):
        for key, path in (("source", mount.source or ""), ("target", mount.target)):
            if set(path) & {",", '"'}:
                yield Diagnostic(
                    code=NOT_EXPRESSIBLE,
                    message=f"mounts[{index}].{key} {path} has a comma or a quotation mark",
                    why="Podman's Docker API splits it there and would mount something else, or nothing",
                    fix="give it a name without them, as by `ln -s`; or pipe `trainlaunch render` into `sh`",
                    span=plan.job.span(f"mounts.{index}.{key}") or plan.job.span(f"mounts.{index}"),
                    field=f"mounts.{index}.{key}",
                )
