"""A session with a container on streams that were opened before its start."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from launcher.errors import TargetUnavailable
from launcher.run.backend import Chunk, Position
from launcher.run.docker.client import Engine
from launcher.run.stream import chunks_of


class AttachedSession:
    """A session on streams that were opened before the start."""

    def __init__(self, engine: Engine, attached: Any, waiting: Any, position: Position) -> None:
        self._engine = engine
        self._attached = attached
        self._waiting = waiting
        self._position = position

    def chunks(self) -> Iterator[Chunk]:
        """Yield the output; a lost engine ends it like an end of the job, and exit_code then says None."""
        return self._position.take(chunks_of(self._attached))

    def exit_code(self) -> int | None:
        """Return the code that the engine's wait answers."""
        try:
            with self._engine.attempting("wait for the end"), contextlib.closing(self._waiting):
                answer = json.loads(self._waiting.content or b"{}")
        except (TargetUnavailable, ValueError):
            return None
        code = answer.get("StatusCode")
        return code if isinstance(code, int) else None

    def close(self) -> None:
        """Close both streams."""
        self._attached.close()
        self._waiting.close()
