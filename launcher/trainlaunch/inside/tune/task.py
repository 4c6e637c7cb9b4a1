"""What is timed: settings of a DataLoader, the task that the host hands over, and which setting comes next or is taken.

The search is the same where one process times all and where each times one.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

GAIN = 1.03  # what counts as faster: less is noise
CLOSE = 0.93  # of the best rate: timed once more
ALIKE = 0.98  # of the best rate: fewer workers are taken
RETIMED = 3
MOST_THREADS = 4  # numbers of threads beside the best workers


class Setting(NamedTuple):
    """Arguments of a DataLoader, and torch's `threads` beside it; None leaves the script's own pinning or threads."""

    num_workers: int
    prefetch_factor: int = 2
    pin_memory: bool | None = None
    threads: int | None = None


class Space(NamedTuple):
    """What may be tried: numbers of workers in rising order, more prefetching, and the other pinning.

    `prefetch` are factors, each with the most workers that it may have. `enough` workers keep all CPUs of a rank busy:
    up to there more are tried whatever the fewer gave. `threads` are torch's by the number of workers as the plan sets
    them, empty where it sets none; None: the job sets its own, which nobody changes.
    """

    workers: tuple[int, ...]
    prefetch: tuple[tuple[int, int], ...]
    pinning: bool
    enough: int
    threads: tuple[tuple[int, int], ...] | None = None


class Task(NamedTuple):
    """One run of the script.

    Without `setting` the loader is found, timed as the script has it, and then the space is searched under its loop
    where that is safe; of `seconds` since the process began it leaves what two more runs take. With one, `loader` gets
    it and nothing else is timed. `each` is how many seconds a setting is timed. `own_cgroup`: the counters of
    the cgroup are this job's alone.
    """

    each: float
    seconds: float
    space: Space
    setting: Setting | None = None
    loader: str | None = None
    own_cgroup: bool = False


def task_of(values: dict[str, Any]) -> Task:
    """Return the task that the host wrote as JSON."""
    setting, space = values.get("setting"), values["space"]
    return Task(
        each=values["each"],
        seconds=values["seconds"],
        space=Space(
            tuple(space["workers"]),
            tuple((factor, most) for factor, most in space["prefetch"]),
            space["pinning"],
            space["enough"],
            None if space["threads"] is None else tuple((workers, count) for workers, count in space["threads"]),
        ),
        setting=Setting(*setting) if setting else None,
        loader=values.get("loader"),
        own_cgroup=values.get("own_cgroup", False),
    )


class Timed(NamedTuple):
    """A setting and its rate in batches per second, 0 where it failed."""

    setting: Setting
    rate: float


def next_setting(space: Space, timed: Sequence[Timed], left: int) -> Setting | None:
    """Return what to time after `timed`, whose first is the script's own setting; None once all is known.

    `left` is how many more settings there is time for.
    """
    first = timed[0].setting
    if left <= 0 or (len(timed) > 1 and timed[-1].setting == first):
        return None
    alone = _single_thread(space, timed)
    if alone is not None:
        return alone
    reserved = 1 + min(RETIMED, (left + len(timed)) // 5)  # settings' time that is kept for the last stages
    if left > reserved and len({each.setting for each in timed}) == len(timed):
        for stage in (_more_workers, _between, _more_prefetch, _other_threads, _threads_alone, _other_pinning):
            found = stage(space, timed)
            if found is not None:
                return found
    again = _again(timed) if left > 1 else None
    return again or (first if len(timed) > 1 else None)


def chosen(timed: Sequence[Timed]) -> Timed:
    """Return the setting to take with its median rate: of those alike to the best the one with fewest workers."""
    rates = medians(timed)
    best = max(rates.values())
    alike = [setting for setting, rate in rates.items() if rate >= best * ALIKE]
    fewest = min(alike, key=lambda each: (each.num_workers, each.prefetch_factor, rates[each] * -1))
    return Timed(fewest, rates[fewest])


def medians(timed: Sequence[Timed]) -> dict[Setting, float]:
    """Return the median rate of each setting, in the order in which they were first timed."""
    rates: dict[Setting, list[float]] = {}
    for setting, rate in timed:
        rates.setdefault(setting, []).append(rate)
    return {setting: median(each) for setting, each in rates.items()}


def _single_thread(space: Space, timed: Sequence[Timed]) -> Setting | None:
    """Return no workers with one thread: a process that neither waits for another nor for threads of its own."""
    first = timed[0].setting
    alone = first._replace(num_workers=0, threads=1)
    known = first.threads is None or 0 not in space.workers or any(each.setting == alone for each in timed)
    return None if known else alone


def _with_workers(space: Space, first: Setting, workers: int) -> Setting:
    """Return the script's own setting with other workers, and with the threads that the plan has beside them."""
    planned = dict(space.threads or ()).get(workers, first.threads)
    return first._replace(num_workers=workers, threads=None if first.threads is None else planned)


def _best_by_workers(timed: Sequence[Timed]) -> dict[int, Setting]:
    """Return the fastest setting of each number of workers, of those with the first's prefetching and pinning."""
    first, found = timed[0].setting, {}  # type: Setting, dict[int, Setting]
    rates = medians(timed)
    for setting in sorted(rates, key=lambda each: rates[each]):
        if (setting.prefetch_factor, setting.pin_memory) == (first.prefetch_factor, first.pin_memory):
            found[setting.num_workers] = setting
    return found


def _rates(timed: Sequence[Timed]) -> dict[int, float]:
    """Return their rates by workers."""
    rates = medians(timed)
    return {workers: rates[setting] for workers, setting in _best_by_workers(timed).items()}


def _more_workers(space: Space, timed: Sequence[Timed]) -> Setting | None:
    first = timed[0].setting
    rates = _rates(timed)
    for workers in space.workers:
        if workers in rates:
            continue
        lower = [each for each in sorted(rates) if each < workers]
        if len(lower) > 2 and lower[-1] > space.enough:
            before = max(rates[each] for each in lower[:-2])
            if max(rates[each] for each in lower[-2:]) < before * GAIN:
                return None
        return _with_workers(space, first, workers)
    return None


def _between(space: Space, timed: Sequence[Timed]) -> Setting | None:
    """Return a number of workers halfway to a neighbour of the best one."""
    first = timed[0].setting
    rates = _rates(timed)
    stepped = {*space.workers, first.num_workers}
    if set(rates) - stepped and len(set(rates) - stepped) >= 2:
        return None
    best = max((each for each in rates if each in stepped), key=lambda each: rates[each])
    tried = sorted(each for each in rates if each in stepped)
    at = tried.index(best)
    for low, high in ((at - 1, at), (at, at + 1)):
        if low >= 0 and high < len(tried) and tried[high] - tried[low] > 1:
            middle = (tried[low] + tried[high]) // 2
            if middle not in rates:
                return _with_workers(space, first, middle)
    return None


def _best_workers(timed: Sequence[Timed]) -> Setting:
    rates = _rates(timed)
    return _best_by_workers(timed)[max(rates, key=lambda each: rates[each])]


def _more_prefetch(space: Space, timed: Sequence[Timed]) -> Setting | None:
    """Return the best number of workers with more prefetching, as long as that brought something."""
    rates, best = medians(timed), _best_workers(timed)
    if not best.num_workers:
        return None
    before = rates[best]
    for prefetch, most in space.prefetch:
        if prefetch <= best.prefetch_factor or best.num_workers > most:
            continue
        setting = best._replace(prefetch_factor=prefetch)
        if setting not in rates:
            return setting
        if rates[setting] < before * GAIN:
            return None
        before = rates[setting]
    return None


def _other_threads(space: Space, timed: Sequence[Timed]) -> Setting | None:
    """Return the best setting with one thread, or with half or twice as many, as long as that is faster."""
    rates = medians(timed)
    best = max(rates, key=lambda each: rates[each])
    threads = best.threads
    if threads is None or sum(each._replace(threads=threads) == best for each in rates) > MOST_THREADS:
        return None
    most = max(space.enough, timed[0].setting.threads or 1)
    others = (best._replace(threads=each) for each in (1, threads * 2, threads // 2) if 1 <= each <= most)
    return next((each for each in others if each not in rates), None)


def _threads_alone(space: Space, timed: Sequence[Timed]) -> Setting | None:
    """Return the script's own setting with the best one's threads, so that it shows what these bring alone."""
    first, rates = timed[0].setting, medians(timed)
    alone = first._replace(threads=max(rates, key=lambda each: rates[each]).threads)
    return None if alone in rates else alone


def _other_pinning(space: Space, timed: Sequence[Timed]) -> Setting | None:
    if not space.pinning:
        return None
    pinned = timed[0].setting.pin_memory
    best = chosen([each for each in timed if each.setting.pin_memory == pinned]).setting
    other = best._replace(pin_memory=not pinned)
    tried = any(each.setting.pin_memory != pinned for each in timed)
    return None if tried else other


def _again(timed: Sequence[Timed]) -> Setting | None:
    """Return one of the best that was timed only once."""
    first, rates = timed[0].setting, medians(timed)
    best = max(rates.values())
    close = sorted((each for each in rates if rates[each] >= best * CLOSE), key=lambda each: -rates[each])
    counts = {each: sum(one.setting == each for one in timed) for each in close}
    return next((each for each in close[:RETIMED] if counts[each] == 1 and each != first), None)
