"""The log, the output and the end of a container as an engine sends them, and the signals that it has sent to it.

A connection may fall silent and stay open: a look at the container tells whether something is due.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from trainlaunch.errors import TargetUnavailable
from trainlaunch.exit_codes import EXIT_SIGKILL, EXIT_SIGTERM
from trainlaunch.run.base.backend import Chunk, ContainerInfo, Position
from trainlaunch.run.base.engine_terminal import EngineTerminal
from trainlaunch.run.base.log_position import BytePosition
from trainlaunch.run.base.sessions import chunks_of
from trainlaunch.run.base.wait_reading import FOLDER, AskedPage, WaitPage, open_page
from trainlaunch.run.docker.attachment import ContainerAttachment
from trainlaunch.run.docker.client import GONE, Engine, EngineRefused
from trainlaunch.run.docker.exec_command import execute

LOOK_SECONDS = 2.0  # of silence between two looks at the container, each on a connection of its own
SLOWER = 4  # what is due may take so many times as long as the look that found it, since an engine may be far away
QUEUED = 64  # a reader that is slower than the job holds it up, as the stream itself does
T = TypeVar("T")
OK = 200
# What an engine that shuts down sends to its containers, by how they ended; its events are forgotten with it.
SHUTDOWN: dict[int | None, tuple[int, ...]] = {EXIT_SIGTERM: (15,), EXIT_SIGKILL: (15, 9)}

KILL, END = "kill", "die"  # the engine's events
END_LAG = 0.2  # seconds by which the engine may note an end after it


class ContainerGlance(NamedTuple):
    """A look at a container: whether it has ended or is gone, and the time of its log's last line, empty for none."""

    ended: bool
    last: bytes = b""


class FollowedStream(Generic[T]):
    """What a stream gives, until it ends or is given up, which `given_up` then says.

    After a look that found the container ended, or more in its log than at the look before, something is due: where
    nothing comes then the stream is given up, and likewise where the engine doesn't answer a look.
    """

    def __init__(self, stream: Iterator[T], look: Callable[[], ContainerGlance]) -> None:
        self.given_up = False
        self._stream, self._look = stream, look
        self._coming: queue.Queue[tuple[T, ...] | Exception] = queue.Queue(QUEUED)

    def __iter__(self) -> Iterator[T]:
        """Yield it, read by a thread that a silent connection may hold. Raises what the stream raised."""
        threading.Thread(target=self._pump, daemon=True).start()
        last: bytes | None = None
        due, patience = False, LOOK_SECONDS
        while True:
            try:
                item = self._coming.get(timeout=patience)
            except queue.Empty:
                begun = time.monotonic()
                if due or (now := self._looked()) is None:
                    self.given_up = True
                    return
                due, last = now.ended or last not in {None, now.last}, now.last
                patience = LOOK_SECONDS + SLOWER * (time.monotonic() - begun)
                continue
            due, last, patience = False, None, LOOK_SECONDS
            if isinstance(item, Exception):
                raise item
            if not item:
                return
            yield item[0]

    def _looked(self) -> ContainerGlance | None:
        try:
            return self._look()
        except TargetUnavailable:
            return None

    def _pump(self) -> None:
        try:
            for item in self._stream:
                self._coming.put((item,))
        except Exception as cause:  # who reads raises it
            self._coming.put(cause)
        finally:
            self._coming.put(())


class ContainerStreams:
    """Reads logs and waits for ends. No connection that falls silent outlasts the container for long.

    `_readable_proc`: the engine's processes stand in `_proc`, a /proc, and we may look into them.
    """

    engine: Engine
    _proc: Path
    _readable_proc: bool

    def __init__(self) -> None:
        self._terminals: dict[str, bool] = {}  # by container, of which it never changes
        self._terminal: EngineTerminal | None = None

    def _inspect(self, container: str) -> dict[str, Any] | None:
        """Return the engine's own description; None where there is none."""
        raise NotImplementedError

    def inspect(self, container: str) -> ContainerInfo | None:
        """Describe a container by id or name."""
        raise NotImplementedError

    def _started(self, container: str) -> tuple[Any, Any]:
        """Start a container; return the streams of its output and of its end."""
        with contextlib.ExitStack() as opened:
            terminal = self._terminal
            with self.engine.attempting(f"attach to container {container[:12]}") as client:
                attached: Any = (
                    self._stream(client.post, container, "attach", stream=1, stdout=1, stderr=1)
                    if terminal is None
                    else ContainerAttachment(self.engine, container, terminal=terminal.has_terminal)
                )
                opened.callback(attached.close)
                waiting = self._stream(client.post, container, "wait", condition="next-exit")
                opened.callback(waiting.close)
            with self.engine.attempting(f"start container {container[:12]}") as client:
                client.start(container)
            opened.pop_all()
        if terminal is not None:
            terminal.join(attached)
        return attached, waiting

    def wait_page(self, container: ContainerInfo) -> WaitPage | None:
        """Open the page of waits for data through /proc, else ask a command inside."""
        if not self._readable_proc:
            return AskedPage(lambda command: execute(self.engine, container.id, command))
        home = self._proc / str(container.pid) / "root"
        return open_page(Path(f"{home}{FOLDER}"), home / "proc")

    def logs(self, container: str, *, follow: bool, position: Position | None = None) -> Iterator[Chunk]:
        """Yield the engine's log; a followed one ends too early where the job ended faster than it was read."""
        place = BytePosition() if position is None else position
        if follow:
            yield from place.take(self._log(container, follow=True, **place.query()))
        yield from place.take(self._log(container, follow=False, **place.query()))

    def wait(self, container: str) -> int | None:
        """Block until it is not running."""
        while True:
            for code in FollowedStream(self._waited(container), lambda: self.end_seen(container)):
                return code
            now = self.inspect(container)
            if now is None or now.ended:
                return None if now is None else now.exit_code

    def _waited(self, container: str) -> Iterator[int | None]:
        """Yield the engine's answer, once it comes."""
        try:
            with self.engine.attempting(f"wait for container {container[:12]}") as client:
                code: int = client.wait(container, timeout=None)["StatusCode"]
        except EngineRefused as refused:
            if refused.status != GONE:
                raise
            code = -1
        yield None if code < 0 else code  # Podman's -1: it never ran

    def _log(self, container: str, *, follow: bool, **query: str | int) -> Iterator[Chunk]:
        chunks = self._opened_log(container, follow=follow, **query)
        return iter(FollowedStream(chunks, lambda: self.log_seen(container))) if follow else chunks

    def _opened_log(self, container: str, *, follow: bool, **query: str | int) -> Iterator[Chunk]:
        with self.engine.attempting(f"read the log of container {container[:12]}") as client:
            response = self._stream(client.get, container, "logs", stdout=1, stderr=1, follow=int(follow), **query)
            yield from chunks_of(response, whole=not follow, framed=not self._has_terminal(container))

    def _has_terminal(self, container: str) -> bool:
        """Whether a container was made with a terminal, whose output is one stream without frames."""
        if container not in self._terminals:
            self._terminals[container] = bool((self._inspect(container) or {}).get("Config", {}).get("Tty"))
        return self._terminals[container]

    def end_seen(self, container: str) -> ContainerGlance:
        """Look at a container's state."""
        now = self.inspect(container)
        return ContainerGlance(now is None or now.ended)

    def log_seen(self, container: str) -> ContainerGlance:
        """Look at a container's state and at its log's last line, of which the engine alone tells the time."""
        seen = self.end_seen(container)
        if seen.ended:
            return seen
        last = b""
        with contextlib.suppress(EngineRefused):  # a log that goes elsewhere can't be read
            last = b"".join(each.data for each in self._log(container, follow=False, tail=1, timestamps=1))
        return seen._replace(last=last.partition(b" ")[0])

    def _stream(self, method: Any, container: str, what: str, **params: str | int) -> Any:
        """Return a response whose body is still to come; the SDK's own calls read it whole, or mix the two streams."""
        client = self.engine.client
        url = f"{client.base_url}/v{client.api_version}/containers/{container}/{what}"
        seconds = client.timeout if params.get("follow") == 0 else None
        response = method(url, params=params, stream=True, timeout=seconds)
        if response.status_code != OK:
            with contextlib.closing(response):
                raise EngineRefused(what, response.json().get("message", ""), response.status_code)
        return response


class AttachedSession:
    """A session on the streams of a container's output and end, which were opened before the start."""

    def __init__(self, streams: ContainerStreams, container: str, opened: tuple[Any, Any], position: Position) -> None:
        self._streams = streams
        self._container = container
        self._attached, self._waiting = opened
        self._position = position

    def chunks(self) -> Iterator[Chunk]:
        """Yield the output; a lost engine ends it like an end of the job, and exit_code then says None."""
        coming = self._attached.chunks() if hasattr(self._attached, "chunks") else chunks_of(self._attached)
        attached = FollowedStream(coming, lambda: self._streams.log_seen(self._container))
        yield from self._position.take(attached)
        if attached.given_up:
            with contextlib.suppress(TargetUnavailable):
                yield from self._streams.logs(self._container, follow=False, position=self._position)

    def exit_code(self) -> int | None:
        """Return the code that the engine's wait answers."""
        with contextlib.suppress(TargetUnavailable, ValueError):
            for answer in FollowedStream(self._answered(), lambda: self._streams.end_seen(self._container)):
                code = json.loads(answer or b"{}").get("StatusCode")
                return code if isinstance(code, int) else None
        return None

    def _answered(self) -> Iterator[bytes]:
        with self._streams.engine.attempting("wait for the end"), contextlib.closing(self._waiting):
            answer: bytes = self._waiting.content
        yield answer

    def close(self) -> None:
        """Close both streams."""
        self._attached.close()
        self._waiting.close()


def signals_sent(engine: Engine, container: ContainerInfo) -> tuple[int, ...]:
    """Return the signals of the engine's kill events, in order; it remembers the last 256 events of all kinds.

    It notes a kill before the end that it causes, and an end before it describes the container as ended: what follows
    the end need not be waited for. Where the end is forgotten the engine closes its answer END_LAG after it.
    """
    if not container.finished:
        return ()
    kills = FollowedStream(_kills(engine, container), lambda: _all_there(engine))
    attributes = [each.get("Actor", {}).get("Attributes", {}) for each in kills]
    return tuple(int(each["signal"]) for each in attributes if str(each.get("signal", "")).isdigit())


def _all_there(engine: Engine) -> ContainerGlance:
    """Learn how long the engine takes for an answer: the events were noted before the end was seen."""
    with engine.attempting("ping") as client:
        client.ping()
    return ContainerGlance(ended=True)


def _kills(engine: Engine, container: ContainerInfo) -> Iterator[dict[str, Any]]:
    kinds = {"container": container.id, "event": [KILL, END]}
    since, until = f"{container.started:.6f}", f"{container.finished + END_LAG:.6f}"
    with engine.attempting("read events") as client:
        events = client.events(since=since, until=until, filters=kinds, decode=True)
        with contextlib.closing(events):
            yield from itertools.takewhile(lambda event: event.get("Action") != END, events)
