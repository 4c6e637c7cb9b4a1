"""Times settings of the loader that trains: one after the other under its loop, or one that the host names."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from trainlaunch.inside.marked import emit
from trainlaunch.inside.tune.meter import busy_reader, usable_cpus
from trainlaunch.inside.tune.safety import (
    apply_setting,
    end_copy_of_main,
    ranks,
    reason_against,
    shutdown_workers,
    torch_threads,
    worker_pids,
)
from trainlaunch.inside.tune.task import Setting, Task, Timed, next_setting
from trainlaunch.inside.tune.watched_loops import Loop, length_of, watch_optimizers
from trainlaunch.inside.tune.window import Begun, Window

MARK = "_trainlaunch_loop"  # of an iterator: its Loop, and the loader, which may have no other name in the script
MANY = 1000  # more settings than any search takes
MIN_SETTINGS = 8  # settings that there is time for, whatever the script's start took
MAX_SEARCH_SECONDS = 70.0  # seconds in which a loader may be found after a late first batch
MIN_BATCHES_OF_SCRIPT = 3  # batches, where the script itself ends sooner than its timing


class Tuner:
    """Told by the hooks; `_outer` is the iterator that the script's loop has, `_inner` the one that gives batches."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._steps = 0
        self._watches = False  # optimizers
        self._target: Loop | None = None
        self._loader: Any = None
        self._outer: Any = None
        self._inner: Any = None
        self._window: Window | None = None
        self._busy: Callable[[], int | None] | None = None
        self._timed: list[Timed] = []
        self._short = False  # whether there was no time for a setting
        self._in_place = False  # whether other iterators may take the place of the script's own
        self._building = False  # whether it is this that builds an iterator now, and not the script
        self._begun = self._until = 0.0
        self._threads_at_start = torch_threads()
        self._gives_up = 0.0  # when no loader is looked for any more; 0 before the first batch
        self._begin_process()
        atexit.register(self._script_ended)

    def _begin_process(self) -> None:
        self._loops: WeakKeyDictionary[Any, Loop] = WeakKeyDictionary()
        self._pid = os.getpid()

    def _is_elsewhere(self) -> bool:
        """Return whether this is a copy of a process that times; one that is forked before may be what trains."""
        if os.getpid() != self._pid and self._target is None:
            self._begin_process()
        return os.getpid() != self._pid

    def stepped(self) -> None:
        """An optimizer has stepped."""
        self._steps += 1

    def before_build(self, loader: Any) -> None:
        """Give the loader that the host names its setting."""
        if self._is_elsewhere():
            return
        loop = self._loop(loader)
        if self._task.setting is not None and loop.key == self._task.loader:
            apply_setting(loader, self._task.setting, loop.timeout)
            _set_threads(self._task.setting)

    def built(self, iterator: Any, loader: Any) -> None:
        """Remember whose iterator it is; the one that trains begins an epoch."""
        if self._is_elsewhere():
            return
        loop = self._loop(loader)
        loop.begins()
        setattr(iterator, MARK, (loop, loader, time.monotonic()))
        if loop is self._target and ranks()[0] == 0:
            if self._window is not None:
                self._window.end_pass(exhausted=False)
                self._window.begin_pass(loader.num_workers + 1, Begun.OURS if self._building else Begun.SCRIPTS)
            self._loader, self._outer, self._inner = loader, iterator, iterator

    def next(self, iterator: Any, fetch: Callable[[Any], Any]) -> Any:
        """Return the next batch, from the iterator itself or the one that took its place."""
        loop, loader, begun = getattr(iterator, MARK, (None, None, 0.0))
        if loop is None or self._is_elsewhere():
            return fetch(iterator)
        if self._target is None:
            loop.asked(self._steps)
            if ranks()[0] == 0:
                self._choose_or_give_up(loop, loader, iterator, begun)
        if loop is not self._target or iterator is not self._outer:
            return fetch(iterator)
        return self._timed_batch(fetch)

    def _choose_or_give_up(self, loop: Loop, loader: Any, iterator: Any, begun: float) -> None:
        now = time.monotonic()
        self._gives_up = self._gives_up or now + max(MAX_SEARCH_SECONDS, self._task.seconds - _age())
        if self._is_the_one(loop):
            self._choose(loop, loader, iterator, begun)
        elif now > self._gives_up:
            self._end("nothing", loaders=self._seen())

    def _loop(self, loader: Any) -> Loop:
        if not self._watches:
            self._watches = True
            watch_optimizers(self)
        if loader not in self._loops:
            made, target = Loop(loader, self._own_threads()), self._target
            same = target is not None and target.key == made.key  # a script may build it anew for each epoch
            self._loops[loader] = target if same and target else made
        return self._loops[loader]

    def _is_the_one(self, loop: Loop) -> bool:
        if self._task.setting is not None:
            return loop.key == self._task.loader
        return loop.trains(self._steps)

    def _choose(self, loop: Loop, loader: Any, iterator: Any, begun: float) -> None:
        end_copy_of_main()
        self._loader = loader
        self._target, self._outer, self._inner = loop, iterator, iterator
        self._in_place = self._task.setting is None and not reason_against(self._loader)
        age, each = _age(), self._task.each
        self._until = max(age + MIN_SETTINGS * (each + 1), self._task.seconds - 2 * (age + 2 * each))
        self._busy = busy_reader()
        emit("tune-loader", loop.facts(self._loader, usable_cpus()))
        setting = self._task.setting or loop.own
        self._begin(setting)
        assert self._window is not None  # noqa: S101 - for the type checker
        if loop.batches > 1:
            self._window.begin_pass(setting.num_workers * setting.prefetch_factor + 1, Begun.MIDDLE)
        else:
            self._window.begin_pass(setting.num_workers + 1, Begun.FIRST, begun)

    def _begin(self, setting: Setting) -> None:
        emit("tune-start", {"setting": list(setting)})
        self._begun = time.monotonic()
        own = self._task.own_cgroup
        self._window = Window(setting, own_cgroup=own, workers=lambda: worker_pids(self._inner))

    def _timed_batch(self, fetch: Callable[[Any], Any]) -> Any:
        window = self._window
        if window is not None and window.over(self._task.each):
            self._report(window)
            self._follow()
        while True:
            assert self._window is not None  # noqa: S101 - for the type checker
            self._window.asks()
            before = time.monotonic()
            try:
                batch = fetch(self._inner)
            except StopIteration:
                self._window.end_pass(exhausted=True)
                if not self._in_place:
                    raise
                self._build_or_fail()
            except Exception as problem:
                if self._inner is self._outer:
                    raise
                self._failed(problem)
            else:
                self._window.batch(time.monotonic() - before, self._busy)
                return batch

    def _report(self, window: Window, **more: Any) -> None:
        loader = self._loader
        facts = window.facts(length_of(loader), persistent=bool(loader.persistent_workers))
        self._timed.append(Timed(window.setting, facts["rate"]))
        emit("tune-setting", {"setting": list(window.setting), **facts, **more})

    def _failed(self, problem: Exception) -> None:
        """A setting that raises is none to take; the script never hears of it."""
        assert self._window is not None  # noqa: S101 - for the type checker
        text = f"{type(problem).__name__}: {problem}"
        error = text[:500] + text[500:][-1500:]  # its ends say most
        emit(
            "tune-setting",
            {"setting": list(self._window.setting), "rate": 0.0, "error": error},
        )
        self._timed.append(Timed(self._window.setting, 0.0))
        self._follow()

    def _follow(self) -> None:
        """Go on with the next setting, or end the script."""
        if not self._in_place:
            self._end("seconds")
        since = time.monotonic() - self._begun
        left = int((self._until - _age()) / max(since, self._task.each))
        setting = next_setting(self._task.space, self._timed, left)
        self._short = self._short or next_setting(self._task.space, self._timed, MANY) != setting
        if setting is None:
            self._end("time" if self._short else "done")
            return
        shutdown_workers(self._loader, self._inner)
        self._begin(setting)
        assert self._target is not None  # noqa: S101 - for the type checker
        apply_setting(self._loader, setting, self._target.timeout)
        _set_threads(setting)
        self._build_or_fail()

    def _build_or_fail(self) -> None:
        self._building = True
        try:
            self._build()
        except Exception as problem:
            self._failed(problem)
        finally:
            self._building = False

    def _build(self) -> None:
        """Let a new iterator give the batches of the script's own."""
        outer, loader, before = self._outer, self._loader, self._inner
        if loader.persistent_workers and before is not outer and _stays(before):
            before._reset(loader)
            return
        shutdown_workers(loader, before)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # more workers than CPUs are tried on purpose
                self._inner = loader._get_iterator()
        finally:
            self._outer = outer  # also where building failed halfway

    def _own_threads(self) -> int | None:
        """Return torch's threads as the variables or the CPUs set them; None where the job or the script does."""
        now = torch_threads()
        return now if self._task.space.threads is not None and now == self._threads_at_start else None

    def _script_ended(self) -> None:
        if os.getpid() != self._pid or ranks()[0] or not self._loops:
            return  # also of what a command runs beside the script, and of helpers that only import torch
        window = self._window
        if window is not None and window.timed_batches >= MIN_BATCHES_OF_SCRIPT:
            self._report(window, script_ended=True)
        emit("tune-end", {"reason": "script", "loaders": self._seen()})

    def _seen(self) -> list[dict[str, Any]]:
        return [{"at": each.place, "batches": each.batches} for each in self._loops.values()]

    def _end(self, reason: str, **more: Any) -> None:
        """End the process here: with several ranks the launcher ends all, since this one alone would break the rest."""
        emit("tune-end", {"reason": reason, **more})
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        while ranks()[1] > 1:
            time.sleep(1)
        if self._inner is not None:  # a worker that is killed while it makes a batch leaves a file of it
            shutdown_workers(self._loader, self._inner)
        os._exit(0)


def _set_threads(setting: Setting) -> None:
    import torch

    if setting.threads is not None:
        torch.set_num_threads(setting.threads)


def _stays(iterator: Any) -> bool:
    """Return whether an iterator has workers that wait for its next epoch."""
    return bool(getattr(iterator, "_workers", ())) and not getattr(iterator, "_shutdown", False)


def _age() -> float:
    """Return the seconds since this process began."""
    with open("/proc/self/stat", encoding="ascii", errors="replace") as stat:
        begun = int(stat.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    with open("/proc/uptime", encoding="ascii") as uptime:
        return float(uptime.read().split()[0]) - begun
