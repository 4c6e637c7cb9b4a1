"""The loops of bench/shm_accuracy: how a training program takes batches from its DataLoaders, and which it keeps.

`program` is a configuration's own; its key of a function's name, or what the function reads of it, chooses the loop.
"""

from __future__ import annotations

import os
import random
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader

SHM = "/dev/shm"
QUIET_SECONDS = 0.04  # /dev/shm unchanged for so long: the workers have filled their queues
LONGEST_WAIT = 20.0
Json = dict[str, Any]


def consume(loaders: list[DataLoader[Any]], specs: list[Json], program: Json) -> None:
    """Run the configuration's epochs."""
    if program.get("again"):
        again(loaders[0], specs, program)
    elif program.get("one_after_another"):
        one_after_another(loaders, specs, program)
    elif program.get("evaluate_every"):
        evaluate_inside(loaders, program)
    elif program.get("break_after"):
        broken(loaders, program)
    elif program.get("keeps_last_batch"):
        plain(loaders[0], program)
    else:
        for _ in range(program.get("epochs", 1)):
            if "accumulate" in program:
                accumulate(iter(loaders[0]), program["accumulate"], program)
            else:
                hold([iter(each) for each in loaders], specs, program)


def used() -> int:
    """Return the blocks of /dev/shm in use."""
    now = os.statvfs(SHM)
    return now.f_blocks - now.f_bfree


def wait_until_full(program: Json) -> None:
    """Return when /dev/shm has not changed for a while; at once for a fast consumer."""
    if program.get("fast"):
        return
    if program.get("gloo"):
        dist.barrier()
    deadline = time.monotonic() + LONGEST_WAIT
    last, since = used(), time.monotonic()
    while time.monotonic() < min(since + QUIET_SECONDS, deadline):
        time.sleep(0.004)
        if (now := used()) != last:
            last, since = now, time.monotonic()
    if program.get("gloo"):
        dist.barrier()


def batches(loader: DataLoader[Any], program: Json) -> Iterator[Any]:
    """Yield what the program's wrapper makes of a loader's batches; without one they are the loader's own."""
    if program.get("look_ahead"):
        return look_ahead(iter(loader))
    if program.get("shuffle"):
        return batched(shuffled(unbatched(loader), program["shuffle"]), program["batched"])
    return iter(loader)


def look_ahead(iterator: Iterator[Any]) -> Iterator[Any]:
    """Fetch one batch before the current one is handed over, as Accelerate does to know which is the last."""
    current = next(iterator)
    while True:
        try:
            following = next(iterator)
        except StopIteration:
            yield current
            return
        yield current
        current = following


def unbatched(loader: Iterable[Any]) -> Iterator[Any]:
    """Yield a batch's samples, each a view of the whole batch's storage."""
    for batch in loader:
        for number in range(len(batch)):
            yield batch[number]


def shuffled(samples: Iterator[Any], size: int) -> Iterator[Any]:
    """Shuffle in a buffer of `size` samples, as WebDataset does: it takes two for each one that it gives until full."""
    drawn = random.Random(0)  # noqa: S311 - the same draws each time
    kept: list[Any] = []
    for sample in samples:
        kept.append(sample)
        del sample
        if len(kept) < size:
            kept.extend(each for each in [next(samples, None)] if each is not None)
        else:
            yield kept.pop(drawn.randrange(len(kept)))
    while kept:
        yield kept.pop(drawn.randrange(len(kept)))


def batched(samples: Iterator[Any], size: int) -> Iterator[Any]:
    """Stack `size` samples at a time in ordinary memory."""
    group: list[Any] = []
    for sample in samples:
        group.append(sample)
        del sample
        if len(group) == size:
            yield torch.stack(group)
            group.clear()


def hold(iterators: list[Iterator[Any]], loaders: list[Json], program: Json) -> None:
    """Take from all iterators in turn; of each, `batches_held` batches are alive, the newest included."""
    held: list[deque[Any]] = [deque() for _ in iterators]
    open_iterators = set(range(len(iterators)))
    while open_iterators:
        for i in sorted(open_iterators):
            if len(held[i]) == loaders[i]["batches_held"]:
                held[i].popleft()
            try:
                held[i].append(next(iterators[i]))
            except StopIteration:
                open_iterators.remove(i)
            wait_until_full(program)


def accumulate(iterator: Iterator[Any], count: int, program: Json) -> None:
    """Take `count` batches at a time and drop the old ones after the last of them, as Hugging Face's Trainer does."""
    group: list[Any] = []
    while True:
        new: list[Any] = []
        for batch in iterator:
            new.append(batch)
            wait_until_full(program)
            if len(new) == count:
                break
        group = new
        if len(group) < count:
            return


def again(loader: DataLoader[Any], specs: list[Json], program: Json) -> None:
    """Start over before the end; the old iterator lives until the new one exists (`drop`), or to the end (`keep`)."""
    first = iter(loader)
    held: deque[Any] = deque()
    for _ in range(2 * specs[0]["num_workers"]):
        if len(held) == specs[0]["batches_held"]:
            held.popleft()
        held.append(next(first))
        wait_until_full(program)
    second = iter(loader)
    if program["again"] == "drop":
        del first
        held.clear()
    hold([second], specs, program)


def plain(loader: DataLoader[Any], program: Json) -> None:
    """Train as most scripts do: one variable holds the last batch of an epoch while the next one forks its workers."""
    for _ in range(program["epochs"]):
        for batch in batches(loader, program):
            wait_until_full(program)
            assert batch is not None


def one_after_another(loaders: list[DataLoader[Any]], specs: list[Json], program: Json) -> None:
    """Run each loop to its end before the next starts; what each of them held at its end lives until its next epoch."""
    kept: list[deque[Any]] = [deque(maxlen=each["batches_held"] - 1) for each in specs]
    for _ in range(program["epochs"]):
        for loader, held in zip(loaders, kept, strict=True):
            for batch in loader:
                held.append(batch)
                wait_until_full(program)


def evaluate_inside(loaders: list[DataLoader[Any]], program: Json) -> None:
    """Train, and every so many batches evaluate, while the loader that trains is alive and its batch in use."""
    train, val = loaders
    for _ in range(program["epochs"]):
        for step, batch in enumerate(batches(train, program)):
            wait_until_full(program)
            assert batch is not None
            if step % program["evaluate_every"] == 0:
                for other in batches(val, program):
                    wait_until_full(program)
                    assert other is not None


def broken(loaders: list[DataLoader[Any]], program: Json) -> None:
    """Leave each loop by `break`; what it took last stays in a variable of its own."""
    kept: dict[int, Any] = {}
    for _ in range(program["epochs"]):
        for number, loader in enumerate(loaders):
            for step, batch in enumerate(loader):
                kept[number] = batch
                wait_until_full(program)
                if step == program["break_after"]:
                    break
