"""What is timed: settings of a DataLoader, and the task that the host hands over."""

from __future__ import annotations

from typing import Any, NamedTuple


class Setting(NamedTuple):
    """Arguments of a DataLoader; `pin_memory` None leaves the script's own."""

    num_workers: int
    prefetch_factor: int = 2
    pin_memory: bool | None = None


class Space(NamedTuple):
    """What may be tried: numbers of workers in rising order, more prefetching, and the other pinning.

    `prefetch` are factors, each with the most workers that it may have. `enough` workers keep all CPUs of a rank busy:
    up to there more are tried whatever the fewer gave.
    """

    workers: tuple[int, ...]
    prefetch: tuple[tuple[int, int], ...]
    pinning: bool
    enough: int


class Task(NamedTuple):
    """One run of the script.

    Without `setting` the loader is found, timed as the script has it, and then the space is searched under its loop
    where that is safe; of `seconds` since the process began it leaves what two more runs take. With one, `loader` gets
    it and nothing else is timed. `each` is how many seconds a setting is timed. `threads` are torch's own by the number
    of workers, if the plan sets them; `own_cgroup`: the counters of the cgroup are this job's alone.
    """

    each: float
    seconds: float
    space: Space
    setting: Setting | None = None
    loader: str | None = None
    threads: dict[int, int] = {}  # noqa: RUF012 - nobody changes it
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
        ),
        setting=Setting(*setting) if setting else None,
        loader=values.get("loader"),
        threads={int(workers): count for workers, count in values.get("threads", {}).items()},
        own_cgroup=values.get("own_cgroup", False),
    )
