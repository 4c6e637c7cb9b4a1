"""Workers that read other samples than one process does, all yield the same ones, or yield none."""

from __future__ import annotations

import os
import random
import stat
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from trainlaunch.inside.probe.base.dataset_objects import reachable_objects
from trainlaunch.inside.probe.base.digest import digest, states
from trainlaunch.inside.probe.base.isolation import run_in_fork
from trainlaunch.inside.probe.base.loader_stats import LoaderStats
from trainlaunch.inside.probe.base.own_loaders import MAX_WORKERS, stream, trial_loader
from trainlaunch.inside.probe.base.sampling import indices

SECONDS, WORKERS, SAMPLES, BATCH, MAX_RAISED = 40.0, 4, 64, 16, 20
ALONE, READING, BRIEFLY = 1.0, 3.0, 0.5  # seconds of reading; briefly where no file is open that workers could share
MIN_SAMPLES, MAX_REPEATS = 4, 0.1
OF_PART, CHANGES = 32, 0.3  # samples of which one part is compared; how many differ there from the one before
AGAIN = 8  # samples that are as the first ones were, from which on they are a second time


class _Alone(NamedTuple):
    """(index, hash) of samples as one process reads them; whether they are random, and whether some raise."""

    samples: list[tuple[Any, str]]
    random: bool  # a generator moved, or a sample differed: chance may make the others equal
    raised: bool


def notice_positions(seen: LoaderStats) -> dict[int, tuple[str, int]]:
    """Return the files that are open for reading before the first iterator, and where each is read next."""
    return _positions()


def worker_dependent_samples(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield one finding where a worker read a sample wrong that it also read right, or where it alone raises.

    A dataset that draws by worker gives the same sample each time or never the same, and is none.
    """
    if seen.iterable or seen.order is None or (not seen.num_workers and _opened_since(seen)):
        return
    alone = _Alone(*run_in_fork(lambda: _alone(seen), SECONDS))
    found = run_in_fork(lambda: _together(seen, alone), SECONDS) if alone.samples else None
    if found and (found["wrong"] or found["raised"] or (found["files"] and not _has_lock(seen))):
        yield {**found, "workers": WORKERS, "num_workers": seen.num_workers}


def _alone(seen: LoaderStats) -> _Alone:
    """Read samples in this process, each twice."""
    several, before = getattr(seen.dataset, "__getitems__", None), states(seen.dataset)
    found, raised, differs, deadline = [], False, False, time.monotonic() + ALONE
    for index in indices(seen, SAMPLES):
        try:
            once, twice = (digest(several([index])[0] if several else seen.dataset[index]) for _ in range(2))
        except Exception:  # what is raised here isn't for a worker's sake
            raised = True
            continue
        differs = differs or once != twice
        found.append((index, once))
        if time.monotonic() > deadline:
            break
    after = states(seen.dataset)
    return _Alone(found, differs or any(after.get(path) != state for path, state in before.items()), raised)


def _together(seen: LoaderStats, alone: _Alone) -> dict[str, Any]:
    """Read the samples over and over in several workers at once, and return what of that was wrong."""
    right = alone.samples
    chosen, batch = random.Random(0), min(BATCH, len(right)) if seen.batch_sampler is not None else 1  # noqa: S311
    orders = [chosen.sample(range(len(right)), batch) for _ in range(400)] * 50
    before = _positions()
    batches = [[right[each][0] for each in order] for order in orders]
    loading = iter(trial_loader(seen, WORKERS, _Hashes(seen.batch_sampler is not None), batches=batches))
    samples: list[tuple[int, int, str]] = []  # (worker, number of the sample, hash)
    raised: list[str] = []
    deadline = time.monotonic() + (READING if before else BRIEFLY)
    for turn, order in enumerate(orders):
        try:
            hashes = next(loading)
            samples.extend((turn % WORKERS, number, each) for number, each in zip(order, hashes))
        except StopIteration:
            break
        except Exception as problem:  # what the script's own code raised in a worker
            raised.append(_last_line(problem))
        if time.monotonic() > deadline or len(raised) > MAX_RAISED:
            break
    wrong, after = [] if alone.random else _wrong(samples, [value for _, value in right]), _positions()
    moved = [name for each, (name, at) in before.items() if each in after and _moved((name, at), after[each])]
    index = right[wrong[0]][0] if wrong else None
    return {
        "wrong": len(wrong),
        "read": len(samples),
        "index": index,
        "raised": raised[: not alone.raised],
        "files": moved[:3],
    }


class _Hashes:
    """A collate_fn that returns the hash of each sample."""

    def __init__(self, batched: bool) -> None:
        self.batched = batched

    def __call__(self, data: Any) -> list[str]:
        return [digest(each) for each in data] if self.batched else [digest(data)]


def _wrong(samples: list[tuple[int, int, str]], right: list[str]) -> list[int]:
    """Return the numbers of samples that a worker read wrong, and right at another time."""
    well = {(worker, number) for worker, number, found in samples if found == right[number]}
    return [number for worker, number, found in samples if found != right[number] and (worker, number) in well]


def _positions() -> dict[int, tuple[str, int]]:
    """Return name and position of each regular file that is open for reading, by its descriptor."""
    found = {}
    for each in os.listdir("/proc/self/fd"):
        try:
            status = os.stat(f"/proc/self/fd/{each}")
            with open(f"/proc/self/fdinfo/{each}") as lines:
                facts = dict(line.split(":", 1) for line in lines if ":" in line)
            flags, name = int(facts["flags"], 8), os.readlink(f"/proc/self/fd/{each}")
        except (OSError, KeyError, ValueError):  # it was closed meanwhile
            continue
        reads = flags & os.O_ACCMODE != os.O_WRONLY and not flags & os.O_APPEND
        if reads and stat.S_ISREG(status.st_mode) and int(each) > 2:
            found[int(each)] = (name, int(facts["pos"]))
    return found


def _moved(before: tuple[str, int], after: tuple[str, int]) -> bool:
    return before[0] == after[0] and before[1] != after[1]


def _opened_since(seen: LoaderStats) -> bool:
    """Whether a file was opened while this process read samples: a worker would open its own."""
    before = seen.noticed.get("positions")
    return before is None or any(before.get(each, ("",))[0] != name for each, (name, _) in _positions().items())


def _has_lock(seen: LoaderStats) -> bool:
    """Whether the dataset has a lock that processes share: workers may take turns."""
    return any(type(each.value).__module__ == "multiprocessing.synchronize" for each in reachable_objects(seen.dataset))


def _last_line(problem: BaseException) -> str:
    lines = str(problem).strip().splitlines()  # torch raises it again with the worker's traceback as text
    return lines[-1].strip() if lines else type(problem).__name__


def unsharded_iterable(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield one finding where two workers give the same sequence, or all that there is in another order."""
    if not seen.iterable:
        return
    found = stream(seen)
    given = [each for each in found.workers if each]
    if len(given) < 2 or min(map(len, given)) < MIN_SAMPLES:
        return
    first, second = given[:2]
    count = min(len(first), len(second))
    if _in_order(first[:count], second[:count]) or (found.ended and _in_any_order(first, second)):
        yield {"samples": count, "ended": found.ended, "num_workers": seen.num_workers, "part": None}
        return
    alike = [number for number, pair in enumerate(_columns(found.parts)) if _is_one_order(*pair)]
    if alike and not set(first) & set(second):  # what else they have is augmented at random
        yield {"samples": count, "ended": found.ended, "num_workers": seen.num_workers, "part": alike[0]}


def _columns(samples: list[list[list[str]]]) -> list[tuple[list[str], list[str]]]:
    """Return each part of the samples as two workers gave it."""
    given = [[list(each) for each in zip(*worker)] for worker in samples if worker]
    return list(zip(given[0], given[1])) if len(given) == 2 else []


def _is_one_order(first: list[str], second: list[str]) -> bool:
    """Whether one part of many samples has one order that no two shares have by chance: names of files, labels.

    Labels that are sorted or that alternate are equal in shares as well, so are numbers that count them, and labels of
    shards that have one order each: what begins again tells nothing, also where its second time was cut short.
    """
    count = min(len(first), len(second))
    first, second = first[:count], second[:count]
    if count < OF_PART or first != second or sum(a != b for a, b in zip(first[1:], first)) < CHANGES * count:
        return False
    if any(first[period:] == first[:-period] for period in range(1, count - max(AGAIN, count // 4) + 1)):
        return False
    numbers = [float(each[1:]) for each in first if each.startswith("#")]
    steps = {round(after - before, 9) for after, before in zip(numbers[1:], numbers)}
    return len(numbers) < count or len(steps) > 1


def _in_order(first: list[str], second: list[str]) -> bool:
    """Whether both are one sequence; one of a few values that alternate tells nothing."""
    return first == second and len(set(first)) >= max(MIN_SAMPLES, len(first) // 4)


def _in_any_order(first: list[str], second: list[str]) -> bool:
    """Whether both hold the same samples, and hardly one twice."""
    return set(first) == set(second) and len(set(first)) >= (1 - MAX_REPEATS) * max(len(first), len(second))


def idle_workers(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield one finding where some workers give samples and others none."""
    if not seen.iterable or not 2 <= seen.num_workers <= MAX_WORKERS:
        return
    found = stream(seen)
    idle = [worker for worker, samples in enumerate(found.workers) if not samples]
    busy = len(found.workers) - len(idle)
    if idle and busy and max(map(len, found.workers)) > 1:
        yield {"idle": idle, "busy": busy, "num_workers": seen.num_workers, "shards": _shards(seen.dataset)}


def _shards(dataset: Any) -> Any:
    """Return the number of shards that the dataset itself tells, None where it doesn't."""
    for name in ("num_shards", "n_shards"):
        value = getattr(dataset, name, None)
        if isinstance(value, int):
            return value
    return None
