"""Follows a log of Podman's without losing its end, and reads the kernel's own for what Podman didn't note.

When a job ends, Podman drops some of the lines that it has not sent yet to who follows the log. So what comes is held
until Podman says that the job still runs, which proves it whole; what came later is read again from the log itself.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from trainlaunch.errors import LaunchError
from trainlaunch.run.base.backend import Chunk, Position

HELD_BYTES = 4 << 20
HELD_SECONDS = 0.3
END_SECONDS = 2.0  # the stream closes a moment before the end is noted; else it is taken up again
QUEUED = 1_000
KMSG = Path("/dev/kmsg")
RECORD_BYTES = 8192  # no record of the kernel is longer


def followed(
    read: Callable[[bool], Iterator[Chunk]],
    position: Position,
    *,
    goes_on: Callable[[], bool],
    wait: Callable[[], object],
) -> Iterator[Chunk]:
    """Yield the log from a position to its end: `read(True)` follows it, `read(False)` gives what there is."""
    while goes_on():
        yield from position.take(_proven(read, goes_on))
        until = time.monotonic() + END_SECONDS
        while goes_on() and time.monotonic() < until:
            time.sleep(HELD_SECONDS)
    wait()
    yield from position.take(read(False))


def _proven(read: Callable[[bool], Iterator[Chunk]], goes_on: Callable[[], bool]) -> Iterator[Chunk]:
    """Yield chunks of which it is known that the job ran when they had come."""
    for batch in _batches(read):
        if not goes_on():
            return
        yield from batch


def _batches(read: Callable[[bool], Iterator[Chunk]]) -> Iterator[list[Chunk]]:
    """Yield what came, at the latest HELD_SECONDS afterwards."""
    coming: queue.Queue[Chunk | None] = queue.Queue(QUEUED)
    threading.Thread(target=_pump, args=(read, coming), daemon=True).start()
    chunk = coming.get()
    while chunk is not None:
        batch, size, until = [chunk], len(chunk.data), time.monotonic() + HELD_SECONDS
        while size < HELD_BYTES:
            try:
                chunk = coming.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                break
            if chunk is None:
                return  # the job has ended, or Podman has: nothing proves this batch any more
            batch.append(chunk)
            size += len(chunk.data)
        yield batch
        chunk = coming.get()


def _pump(read: Callable[[bool], Iterator[Chunk]], coming: queue.Queue[Chunk | None]) -> None:
    try:
        for chunk in read(True):
            coming.put(chunk)
    except LaunchError:
        pass  # the second reading says it
    finally:
        coming.put(None)


def killed_for_memory(container: str, kmsg: Path = KMSG) -> bool:
    """Whether the kernel killed a process at the memory limit of the cgroup that carries this container's id.

    False also where the log can't be read: it is root's, and of this host since its start.
    """
    limit = container.encode()
    try:
        log = os.open(kmsg, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        while record := _record(log):
            # Both words: `oom_memcg` names the cgroup whose limit was met, a host without memory left names none.
            if b"CONSTRAINT_MEMCG" in record and limit in record.partition(b"oom_memcg=")[2]:
                return True
    finally:
        os.close(log)
    return False


def _record(log: int) -> bytes:
    """Return the next record, nothing at the end."""
    while True:
        try:
            return os.read(log, RECORD_BYTES)
        except BrokenPipeError:
            continue  # the kernel wrote over it meanwhile: the next read goes on with what there is
        except OSError:
            return b""
