"""The signals that an engine has sent to a container, by its events."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

from trainlaunch.exit_codes import EXIT_SIGKILL, EXIT_SIGTERM
from trainlaunch.run.backend import Started
from trainlaunch.run.docker.client import Engine
from trainlaunch.run.docker.follow import Followed, Seen

# What an engine that shuts down sends to its containers, by how they ended; its events are forgotten with it.
SHUTDOWN: dict[int | None, tuple[int, ...]] = {EXIT_SIGTERM: (15,), EXIT_SIGKILL: (15, 9)}

KILL, END = "kill", "die"  # the engine's events
END_LAG = 0.2  # seconds by which the engine may note an end after it


def signals_sent(engine: Engine, container: Started) -> tuple[int, ...]:
    """Return the signals of the engine's kill events, in order; it remembers the last 256 events of all kinds.

    It notes a kill before the end that it causes, and an end before it describes the container as ended: what follows
    the end need not be waited for. Where the end is forgotten the engine closes its answer END_LAG after it.
    """
    if not container.finished:
        return ()
    kills = Followed(_kills(engine, container), lambda: _all_there(engine))
    attributes = [each.get("Actor", {}).get("Attributes", {}) for each in kills]
    return tuple(int(each["signal"]) for each in attributes if str(each.get("signal", "")).isdigit())


def _all_there(engine: Engine) -> Seen:
    """Learn how long the engine takes for an answer: the events were noted before the end was seen."""
    with engine.attempting("ping") as client:
        client.ping()
    return Seen(ended=True)


def _kills(engine: Engine, container: Started) -> Iterator[dict[str, Any]]:
    kinds = {"container": container.id, "event": [KILL, END]}
    since, until = f"{container.started:.6f}", f"{container.finished + END_LAG:.6f}"
    with engine.attempting("read events") as client:
        events = client.events(since=since, until=until, filters=kinds, decode=True)
        with contextlib.closing(events):
            yield from itertools.takewhile(lambda event: event.get("Action") != END, events)
