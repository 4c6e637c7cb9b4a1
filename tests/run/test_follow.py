"""A stream that is read beside looks at its container."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from trainlaunch.run.docker.client import Endpoint, Engine
from trainlaunch.run.docker.streams import ContainerGlance, FollowedStream


def test_what_a_stream_raises_is_raised_where_it_is_read() -> None:
    """After what had come; a stream that breaks in an unknown way has not ended."""

    def stream() -> Iterator[int]:
        yield 1
        raise ValueError("odd")

    followed = iter(FollowedStream(stream(), lambda: ContainerGlance(ended=False)))
    assert next(followed) == 1
    with pytest.raises(ValueError, match="odd"):
        next(followed)


class _Connection:
    """A connection to an engine, as far as its end is concerned."""

    def close(self) -> None:
        """Nothing is open."""


class _Ending(weakref.WeakSet[Any]):
    """Connections whose threads end just after somebody has counted them."""

    owners: list[_Connection]

    def __len__(self) -> int:
        count = super().__len__()
        self.owners.clear()
        return count


def test_a_reader_may_end_while_its_engine_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is gone with its thread, between a look for open ones and the closing of it."""
    engine, connections = Engine(Endpoint("unix:///nowhere.sock", "")), _Ending()
    connections.owners = [_Connection()]
    connections.update(connections.owners)
    monkeypatch.setattr(engine, "_opened", connections)
    engine.close()
