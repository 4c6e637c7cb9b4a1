"""The engine's multiplexed output: 8-byte headers (stream number, length), each followed by the job's bytes."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from typing import Any

from trainlaunch.run.base.backend import Chunk

HEADER = struct.Struct(">BxxxL")
STDERR = 2


def frames(read: Callable[[int], bytes]) -> Iterator[Chunk]:
    """Yield what `read(n)` gives, which returns n bytes, or fewer at the end only."""
    while len(header := read(HEADER.size)) == HEADER.size:
        stream, length = HEADER.unpack(header)
        data = read(length) if length else b""
        if data:
            yield Chunk(stderr=stream == STDERR, data=data)
        if len(data) < length:
            return


def chunks_of(response: Any, *, whole: bool = False) -> Iterator[Chunk]:
    """Yield the chunks of a streamed response, then close it.

    A lost engine ends the stream as the job's end does; where it must be `whole`, OSError or urllib3's error is raised.
    """
    import urllib3

    lost = () if whole else (OSError, urllib3.exceptions.HTTPError)
    with contextlib.closing(response), contextlib.suppress(*lost):
        yield from frames(response.raw.read)
