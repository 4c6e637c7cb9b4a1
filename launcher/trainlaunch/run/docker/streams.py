"""The log and the end of a container, as an engine sends them while it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from trainlaunch.run.base.backend import Chunk, Position, Started
from trainlaunch.run.base.log_position import BytePosition
from trainlaunch.run.base.stream import chunks_of
from trainlaunch.run.docker.client import GONE, Engine, EngineRefused
from trainlaunch.run.docker.follow import Followed, Seen

OK = 200


class ContainerStreams:
    """Reads logs and waits for ends. No connection that falls silent outlasts the container for long."""

    engine: Engine

    def inspect(self, container: str) -> Started | None:
        """Describe a container by id or name."""
        raise NotImplementedError

    def logs(self, container: str, *, follow: bool, position: Position | None = None) -> Iterator[Chunk]:
        """Yield the engine's log; a followed one ends too early where the job ended faster than it was read."""
        place = BytePosition() if position is None else position
        if follow:
            yield from place.take(self._log(container, follow=True, **place.query()))
        yield from place.take(self._log(container, follow=False, **place.query()))

    def wait(self, container: str) -> int | None:
        """Block until it is not running."""
        while True:
            for code in Followed(self._waited(container), lambda: self.end_seen(container)):
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
        return iter(Followed(chunks, lambda: self.log_seen(container))) if follow else chunks

    def _opened_log(self, container: str, *, follow: bool, **query: str | int) -> Iterator[Chunk]:
        with self.engine.attempting(f"read the log of container {container[:12]}") as client:
            response = self._stream(client.get, container, "logs", stdout=1, stderr=1, follow=int(follow), **query)
            yield from chunks_of(response, whole=not follow)

    def end_seen(self, container: str) -> Seen:
        """Look at a container's state."""
        now = self.inspect(container)
        return Seen(now is None or now.ended)

    def log_seen(self, container: str) -> Seen:
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
