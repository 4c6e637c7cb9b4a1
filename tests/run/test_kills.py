"""What the engine's events tell of the signals that a container was sent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from trainlaunch.run.docker.client import Engine
from trainlaunch.run.docker.streams import signals_sent

from tests.run.scripted import BLANK

KILLED = [
    {"Action": "kill", "Actor": {"Attributes": {"signal": "15"}}},
    {"Action": "kill", "Actor": {"Attributes": {"signal": "9"}}},
]
ENDED = [{"Action": "die", "Actor": {"Attributes": {"exitCode": "137"}}}]


class Events:
    """An engine that has noted some events; `closes` is whether its answer has come to its end by now."""

    def __init__(self, noted: list[dict[str, Any]], *, closes: bool) -> None:
        self._noted = noted
        self._closes = closes

    @contextlib.contextmanager
    def attempting(self, what: str) -> Iterator[Any]:
        """Give a client, which is this."""
        yield self

    def events(self, **query: Any) -> Iterator[dict[str, Any]]:
        """Answer with them."""
        yield from self._noted
        assert self._closes, "the engine would be waited for"


@pytest.mark.parametrize(
    ("noted", "closes", "signals"),
    [(ENDED, False, ()), (KILLED + ENDED, False, (15, 9)), (KILLED, True, (15, 9)), ([], True, ())],
    ids=["its own end", "killed", "an end that is forgotten", "all is forgotten"],
)
def test_nothing_after_the_end_is_waited_for(
    noted: list[dict[str, Any]], closes: bool, signals: tuple[int, ...]
) -> None:
    """The end is the last event that matters."""
    engine = cast(Engine, Events(noted, closes=closes))
    container = replace(BLANK, started=1.0, finished=2.0)
    assert signals_sent(engine, container) == signals
