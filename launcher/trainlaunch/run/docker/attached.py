"""A session with a container on streams that were opened before its start."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.backend import Chunk, Position
from trainlaunch.run.base.stream import chunks_of
from trainlaunch.run.docker.follow import Followed

if TYPE_CHECKING:
    from trainlaunch.run.docker.streams import ContainerStreams


class AttachedSession:
    """A session on the streams of a container's output and end, which were opened before the start."""

    def __init__(self, streams: ContainerStreams, container: str, opened: tuple[Any, Any], position: Position) -> None:
        self._streams = streams
        self._container = container
        self._attached, self._waiting = opened
        self._position = position

    def chunks(self) -> Iterator[Chunk]:
        """Yield the output; a lost engine ends it like an end of the job, and exit_code then says None."""
        attached = Followed(chunks_of(self._attached), lambda: self._streams.log_seen(self._container))
        yield from self._position.take(attached)
        if attached.given_up:
            with contextlib.suppress(TargetUnavailable):
                yield from self._streams.logs(self._container, follow=False, position=self._position)

    def exit_code(self) -> int | None:
        """Return the code that the engine's wait answers."""
        with contextlib.suppress(TargetUnavailable, ValueError):
            for answer in Followed(self._answered(), lambda: self._streams.end_seen(self._container)):
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
