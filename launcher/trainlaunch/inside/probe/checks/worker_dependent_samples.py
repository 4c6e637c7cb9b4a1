"""Workers read other samples than one process does: they share the position of a file, or a library's state."""

from __future__ import annotations

import os
import random
import stat
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from trainlaunch.inside.probe.base.dataset_objects import held
from trainlaunch.inside.probe.base.digest import digest, states
from trainlaunch.inside.probe.base.fork_copy import apart
from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.own_loaders import trial_loader
from trainlaunch.inside.probe.base.sampling import indices

SECONDS, WORKERS, SAMPLES, BATCH, MOST_RAISED = 40.0, 4, 64, 16, 20
ALONE, READING, BRIEFLY = 1.0, 3.0, 0.5  # seconds of reading; briefly where no file is open that workers could share


class _Alone(NamedTuple):
    """(index, hash) of samples as one process reads them; whether they are random, and whether some raise."""

    samples: list[tuple[Any, str]]
    random: bool  # a generator moved, or a sample differed: chance may make the others equal
    raised: bool


def notice(seen: Seen) -> dict[int, tuple[str, int]]:
    """Return the files that are open for reading before the first iterator, and where each is read next."""
    return _positions()


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield one finding where a worker read a sample wrong that it also read right, or where it alone raises.

    A dataset that draws by worker gives the same sample each time or never the same, and is none.
    """
    if seen.iterable or seen.order is None or (not seen.num_workers and _opened_since(seen)):
        return
    alone = _Alone(*apart(lambda: _alone(seen), SECONDS))
    found = apart(lambda: _together(seen, alone), SECONDS) if alone.samples else None
    if found and (found["wrong"] or found["raised"] or (found["files"] and not _has_lock(seen))):
        yield {**found, "workers": WORKERS, "num_workers": seen.num_workers}


def _alone(seen: Seen) -> _Alone:
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


def _together(seen: Seen, alone: _Alone) -> dict[str, Any]:
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
        if time.monotonic() > deadline or len(raised) > MOST_RAISED:
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


def _opened_since(seen: Seen) -> bool:
    """Whether a file was opened while this process read samples: a worker would open its own."""
    before = seen.noticed.get("worker_dependent_samples")
    return before is None or any(before.get(each, ("",))[0] != name for each, (name, _) in _positions().items())


def _has_lock(seen: Seen) -> bool:
    """Whether the dataset has a lock that processes share: workers may take turns."""
    return any(type(each.value).__module__ == "multiprocessing.synchronize" for each in held(seen.dataset))


def _last_line(problem: BaseException) -> str:
    lines = str(problem).strip().splitlines()  # torch raises it again with the worker's traceback as text
    return lines[-1].strip() if lines else type(problem).__name__
