"""One job in several containers: their output as one stream, whose end is the job's, and calls for all at once."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from trainlaunch.errors import LaunchError
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import Backend, Chunk, ContainerInfo, Session
from trainlaunch.run.base.run_query import Run, is_mine

MAX_AT_ONCE = 8
T = TypeVar("T")
R = TypeVar("R")


def at_once(call: Callable[[T], R], items: Sequence[T], *, most: int = MAX_AT_ONCE) -> list[R]:
    """Return what `call` gives for each of some items, in their order. Raises what a call raised, when all are over."""
    if len(items) < 2:
        return [call(each) for each in items]
    with ThreadPoolExecutor(min(most, len(items))) as pool:
        return list(pool.map(call, items))


_WAITING_CHUNKS = 64  # a reader that is slower than the job holds it up, as one container's stream does
_MAX_LINE = 64 * 1024


def containers_of(
    backend: Backend, plan: LaunchPlan, container: str, *, run: str, attempt: int
) -> tuple[ContainerInfo, ...]:
    """Return the containers of an attempt by node; none where it was removed."""
    if plan.nodes == 1:
        one = backend.inspect(container)
        return () if one is None else (one,)
    return by_node(each for each in backend.runs(plan.job.name, run) if each.attempt == attempt)


def by_node(containers: Iterable[ContainerInfo]) -> tuple[ContainerInfo, ...]:
    """Return containers in the order of their nodes."""
    return tuple(sorted(containers, key=lambda each: each.node or 0))


def newest_of(runs: Sequence[ContainerInfo]) -> tuple[ContainerInfo, ...]:
    """Return all containers of the newest run, by node; `runs` are those of one job, newest first."""
    newest = runs[0]
    if newest.node is None:
        return (newest,)
    same = (newest.run, newest.attempt, newest.project)
    return by_node(each for each in runs if (each.run, each.attempt, each.project) == same)


def containers_of_run(runs: Sequence[ContainerInfo], run: str) -> tuple[ContainerInfo, ...]:
    """Return all containers of the last attempt of a run, by node; none where it is gone."""
    same = [each for each in runs if each.run == run]
    last = max((each.attempt for each in same), default=0)
    return by_node(each for each in same if each.attempt == last)


def deciding(containers: Sequence[ContainerInfo]) -> ContainerInfo:
    """Return the container whose end is the job's: the first to fail, else one that runs, else the first node."""
    failed = [each for each in containers if each.ended and each.exit_code != 0]
    if failed:
        return min(failed, key=lambda each: each.finished)
    return next((each for each in containers if not each.ended), containers[0])


def runs_among(containers: Iterable[ContainerInfo], target: str) -> list[Run]:
    """Return the runs that containers of one target belong to, newest first; `containers` are newest first."""
    by_run: dict[str, list[ContainerInfo]] = {}
    for each in containers:
        by_run.setdefault(f"{each.job} {each.run or each.project or each.id}", []).append(each)
    return [run_of(target, tuple(each)) for each in by_run.values()]


def run_of(target: str, containers: tuple[ContainerInfo, ...]) -> Run:
    """Return the run that holds the containers of all its attempts and nodes, newest first.

    One that was started by hand has its project's or container's name for an id.
    """
    first, end = containers[0], deciding(newest_of(containers))
    own_id = first.run or first.project or first.name
    given = (name for each in containers for name in (each.name, each.project, _without_node(each)))
    return Run(
        target=target,
        job=first.job,
        id=own_id,
        names=frozenset(filter(None, (own_id, *given))),
        owner=first.owner,
        is_mine=is_mine(first.owner),
        running=any(each.status == "running" for each in containers),
        created=first.created,
        state=end.status if end.exit_code is None else f"{end.status} {end.exit_code}",
        held=containers,
        measures=first.measures,
    )


def _without_node(container: ContainerInfo) -> str:
    """Return the name that a node's container has from its run; empty where the run has one container."""
    return "" if container.node is None else container.name.removesuffix(f"-{container.node}")


def merged(streams: Sequence[Iterator[Chunk]]) -> Iterator[Chunk]:
    """Yield the chunks of all streams as they come, each with its node's number, until the last stream ends."""
    waiting: queue.Queue[Chunk | None] = queue.Queue(_WAITING_CHUNKS)

    def read(node: int, stream: Iterator[Chunk]) -> None:
        try:
            for chunk in stream:
                waiting.put(replace(chunk, node=node))
        finally:
            waiting.put(None)

    for node, stream in enumerate(streams):
        threading.Thread(target=read, args=(node, stream), daemon=True).start()
    left = len(streams)
    while left:
        chunk = waiting.get()
        if chunk is None:
            left -= 1
        else:
            yield chunk


class Prefixed:
    """Writes the number of the node in front of each line; the bytes of a job's only container pass untouched."""

    def __init__(self) -> None:
        self._begun: dict[tuple[int, bool], bytes] = {}

    def take(self, chunk: Chunk) -> bytes:
        """Return the lines that are whole now."""
        if chunk.node is None:
            return chunk.data
        key = (chunk.node, chunk.stderr)
        data = self._begun.pop(key, b"") + chunk.data
        whole = _end_of_lines(data)
        lines, rest = data[:whole].splitlines(keepends=True), data[whole:]
        if len(rest) > _MAX_LINE:
            lines, rest = [*lines, rest + b"\n"], b""
        if rest:
            self._begun[key] = rest
        return b"".join(prefix(chunk.node) + line for line in lines)

    def rest(self) -> Iterator[Chunk]:
        """Yield the last lines, which never got an end."""
        for (node, stderr), data in self._begun.items():
            yield Chunk(stderr, prefix(node) + data + b"\n", node)
        self._begun.clear()


def _end_of_lines(data: bytes) -> int:
    """Return where the last whole line ends. A carriage return that comes last may be half of a line's end."""
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, max(0, len(data) - 1))) + 1


def prefix(node: int) -> bytes:
    """Return what stands in front of a node's lines."""
    return b"[%d] " % node


def ends_of(waits: Sequence[Callable[[], int | None]]) -> Iterator[int | None]:
    """Yield the exit code of each container as it ends; None: it or its engine is gone. Raises what a wait raised."""
    ends: queue.SimpleQueue[int | LaunchError | None] = queue.SimpleQueue()

    def put(wait: Callable[[], int | None]) -> None:
        try:
            ends.put(wait())
        except LaunchError as cause:
            ends.put(cause)

    for wait in waits:
        threading.Thread(target=put, args=(wait,), daemon=True).start()
    for _ in waits:
        end = ends.get()
        if isinstance(end, LaunchError):
            raise end
        yield end


class SessionGroup:
    """The session of several containers. Where one fails the others would wait for it: `stop` ends them."""

    def __init__(self, sessions: Sequence[Session], stop: Callable[[], None]) -> None:
        self._sessions = sessions
        self._stop = stop

    def chunks(self) -> Iterator[Chunk]:
        """Yield the output of all."""
        return merged([each.chunks() for each in self._sessions])

    def exit_code(self) -> int | None:
        """Block until all have ended and return the code of the first that failed, else 0."""
        code: int | None = 0
        for end in ends_of([each.exit_code for each in self._sessions]):
            if code == 0 and end != 0:
                code = end
                self._stop()
        return code

    def close(self) -> None:
        """Let go of all."""
        for each in self._sessions:
            each.close()
