"""What a followed run prints, and what its pods hold: logs on one stream, and looks by a command inside."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot
from trainlaunch.diagnose.base.log_facts import LogFacts
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.backend import Chunk, ContainerInfo, Say, ShmReading
from trainlaunch.run.base.console import Console
from trainlaunch.run.base.followed_log import Log
from trainlaunch.run.base.live_snapshot import command, read_snapshot
from trainlaunch.run.base.log_position import WHOLE, LogPart
from trainlaunch.run.base.run_query import no_such_attempt
from trainlaunch.run.base.shm_reading import highest, measured_line, read_from_health
from trainlaunch.run.base.wait_reading import AskedPage, DataWait, of_nodes
from trainlaunch.run.base.watch import PlannedShm, ShmWatch
from trainlaunch.run.kubernetes.api_errors import FORBIDDEN, ExecRefused
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.logs import PodLog
from trainlaunch.run.kubernetes.pod_watch import PodWatch
from trainlaunch.run.kubernetes.pods import Pod, attempts_of
from trainlaunch.run.kubernetes.runs import ClusterRun, pod_now, pods_of_run, runs_several

LAST_WRITE_SECONDS = 2.0  # for a write that has begun; one that nobody reads is left


class Output:
    """Reads each pod's log in a thread of its own, from the moment that its container runs.

    Of pods that run at the beginning a part is read, and all of those that come later.
    """

    def __init__(
        self,
        cluster: Cluster,
        watch: PodWatch,
        console: Console,
        thing: Mapping[str, Any],
        planned: PlannedShm | None,
        part: LogPart = WHOLE,
    ) -> None:
        self._cluster = cluster
        self._watch = watch
        self._console = console
        self._planned = planned
        self._part = part
        self.several = runs_several(cluster, thing)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads: dict[str, threading.Thread] = {}
        self._exec_refused = False
        self._wrote_at = self._cluster.clock.now()
        self.failure: Exception | None = None
        self.logs: dict[str, Log] = {}
        self.watches: dict[str, ShmWatch] = {}

    def take(self, pods: tuple[Pod, ...]) -> None:
        """Begin to read what has begun to run."""
        for pod in pods:
            if pod.uid not in self._threads and (pod.state == "running" or pod.ran):
                self.logs[pod.uid] = Log(self._console.detect_hang, self._console.say)
                thread = threading.Thread(target=self._read, args=(pod, self._part), daemon=True)
                self._threads[pod.uid] = thread
                thread.start()
                self._sample(pod)
        if pods:
            self._part = LogPart(timestamps=self._part.timestamps)

    @property
    def drained(self) -> bool:
        """Whether the logs of all pods are read to their ends."""
        return not any(thread.is_alive() for thread in self._threads.values())

    @property
    def quiet(self) -> float:
        """Seconds since anything was written: a long log takes its time."""
        return self._cluster.clock.now() - self._wrote_at

    def close(self) -> None:
        """Read no more, and write no more: a thread that still wrote when Python ends would abort it."""
        self._stop.set()
        if self._lock.acquire(timeout=LAST_WRITE_SECONDS):
            self._lock.release()
        for each in self.watches.values():
            each.end()

    def tail(self, pod: Pod) -> str:
        """Return the last part of a pod's log as far as it was read, and its last word where the log lacks that."""
        return with_last_word(pod, self.logs[pod.uid].text if pod.uid in self.logs else "")

    def facts(self, pod: Pod) -> LogFacts | None:
        """Return what all of a pod's log says as far as it was read; None where nothing was."""
        return self.logs[pod.uid].facts if pod.uid in self.logs else None

    def peak(self, pod: Pod) -> int | None:
        """Return the most that was seen in a pod's /dev/shm."""
        watch = self.watches.get(pod.uid)
        return None if watch is None else watch.peak

    def data_wait(self) -> tuple[DataWait | None, float]:
        """Return what the pods of the last attempt were seen to wait for data, and the seconds that they ran.

        Their last seconds are never seen.
        """
        pods = [pod for uid in self.watches if (pod := self._watch.pod(uid)) is not None and pod.finished]
        last = max((pod.started for pod in pods), default=0.0)
        pods = [pod for pod in pods if pod.finished > last]
        waited = of_nodes(self.watches[pod.uid].waits.seen for pod in pods)
        if waited is None:
            return None, 0.0
        return waited._replace(whole=False), max(pod.finished for pod in pods) - min(pod.started for pod in pods)

    def remarks(self, *, succeeded: bool) -> list[str]:
        """Return what the readings of /dev/shm say about an unsized job, or of workers that did not run."""
        said = [watch.fewer_workers() for watch in self.watches.values() if succeeded]
        pods = [pod for uid in self.watches if (pod := self._watch.pod(uid)) is not None]
        peak = highest(watch.seen for watch in self.watches.values())
        if pods:
            said.append(measured_line(pods[0].planned, peak, size=pods[0].shm_size, exit_code=int(not succeeded)))
        return list(dict.fromkeys(each for each in said if each))

    def _read(self, pod: Pod, part: LogPart) -> None:
        reader = PodLog(
            self._cluster, pod, lambda data: self._write(pod, data), lambda: self._now(pod), self._console.say, part
        )
        try:
            reader.read(follow=True, stop=self._stop)
        except Exception as bug:  # it must end the follower, not only this thread
            self.failure = bug

    def _now(self, pod: Pod) -> Pod | None:
        return None if self._watch.is_gone(pod.uid) else self._watch.pod(pod.uid)

    def _write(self, pod: Pod, data: bytes) -> None:
        # A cluster's log has one stream; the watch for hangs reads tracebacks, which are stderr's.
        self.logs[pod.uid].take(Chunk(stderr=True, data=data))
        self._wrote_at = self._cluster.clock.now()
        with self._lock:
            if not self._stop.is_set():
                self._console.out(prefixed(data, pod) if self.several else data)

    def _sample(self, pod: Pod) -> None:
        if self._planned is None or pod.state != "running":
            return
        watch = ShmWatch(
            PodShm(self._cluster, self._no_exec, self._now), self._planned, self.logs[pod.uid], self._console.say
        )
        self.watches[pod.uid] = watch
        watch.start(pod)

    def _no_exec(self, why: str) -> None:
        if not self._exec_refused and not self._stop.is_set():
            self._exec_refused = True
            self._console.say(f"/dev/shm is not watched: {why}")


def with_last_word(pod: Pod, log: str) -> str:
    """Return the last part of a pod's log, and its last word where the log lacks that."""
    last = pod.termination_message.strip()
    return log if not last or last in log else f"{log}\n{last}\n".lstrip("\n")


def prefixed(data: bytes, pod: Pod) -> bytes:
    """Return lines with the node index of their pod in front, or its name where it has none."""
    prefix = f"[{pod.name if pod.node_index is None else pod.node_index}] ".encode()
    lines = data.split(b"\n")
    last = lines.pop()
    text = b"".join(prefix + line + b"\n" for line in lines)
    return text + (prefix + last + b"\n" if last else b"")


def print_logs(
    cluster: Cluster,
    run: ClusterRun,
    out: Callable[[bytes], None],
    say: Say,
    *,
    part: LogPart = WHOLE,
    attempt: int | None = None,
) -> None:
    """Write a part of what the pods of a run, or of one attempt of it, have printed, one pod after the other.

    Raises TargetUnavailable where the cluster has no pod of that attempt.
    """
    several = runs_several(cluster, run.thing)
    pods = [pod for pod in pods_of_run(cluster, run) if pod.ran]
    if attempt is not None:
        attempts = attempts_of(pods)
        if attempt not in attempts.values():
            raise TargetUnavailable([no_such_attempt(str(run.main), attempt, attempts.values())])
        pods = [pod for pod in pods if attempts[pod.uid] == attempt]
    for pod in pods:

        def write(data: bytes, pod: Pod = pod) -> None:
            out(prefixed(data, pod) if several else data)

        def now(pod: Pod = pod) -> Pod | None:
            return pod_now(cluster, pod)

        PodLog(cluster, pod, write, now, say, part).read(follow=False, stop=threading.Event())
    if not pods:
        say(f"no pod of {run.main} has printed anything: {run.result.state}")


SAMPLE_SECONDS = 20.0
FAILURES_UNTIL_SAID = 3


def read_health(cluster: Cluster, pod: Pod) -> str:
    """Return what a pod's health command prints now, empty where it has none. Raises ExecRefused."""
    if not pod.health_command or pod.state != "running":
        return ""
    return cluster.execute(pod.name, pod.container, pod.health_command)


def look_inside(cluster: Cluster, pod: Pod, say: Callable[[str], None]) -> ContainerSnapshot | None:
    """Look at a pod's processes by a command inside; None where that is not possible, which is said."""
    try:
        return read_snapshot(cluster.execute(pod.name, pod.container, command()))
    except ExecRefused as cause:
        say(f"pod {pod.name} can't be looked into: {cause}")
        return None


def wait_page(cluster: Cluster, pod: Pod) -> AskedPage | None:
    """Return what reads how long a running pod waited for data; None of one that notes nothing."""

    def execute(words: list[str]) -> str:
        try:
            return cluster.execute(pod.name, pod.container, words)
        except ExecRefused:  # whoever reads /dev/shm says it
            return ""

    return AskedPage(execute) if pod.observed and pod.state == "running" else None


class PodShm:
    """Readings of one pod for the watch of /dev/shm: a process in the pod each time, so seldom."""

    def __init__(self, cluster: Cluster, refused: Callable[[str], None], now: Callable[[Pod], Pod | None]) -> None:
        self._cluster = cluster
        self._refused = refused
        self._now = now
        self._failures = 0
        self.sample_seconds = cluster.clock.real(SAMPLE_SECONDS)

    def read_shm(self, container: Pod) -> ShmReading | None:
        """Read it; where that is forbidden say so, and raise TargetUnavailable so that nobody asks again.

        A container that ends refuses commands for a moment before its status says so, which is nothing to say.
        """
        now = self._now(container)
        if now is None or now.state != "running" or now.deleting:
            return None
        try:
            reading = read_from_health(read_health(self._cluster, now))
        except ExecRefused as cause:
            self._failures += 1
            if cause.forbidden or self._failures == FAILURES_UNTIL_SAID:
                self._refused(str(cause))
            if cause.forbidden:
                raise TargetUnavailable([Diagnostic(FORBIDDEN, str(cause), "")]) from cause
            return None
        self._failures = 0
        return reading

    def wait_page(self, container: Pod) -> AskedPage | None:
        """Return what reads its waits for data by a command inside, where they are noted."""
        now = self._now(container)
        return None if now is None else wait_page(self._cluster, now)

    def checked(self, container: str) -> ContainerInfo | None:
        """Return nothing: a pod's health comes from its own events."""
        return None
