"""What the script's loaders do, measured from inside: batches, what is held of them, and what is wrong with them."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from trainlaunch.inside.process import off

if TYPE_CHECKING:
    from trainlaunch.inside.probe.base.loader_stats import Fetched, LoaderStats
    from trainlaunch.inside.probe.ending import Ending
    from trainlaunch.inside.probe.loops import Loops


class Probe:
    """The hooks in torch's classes. One that raises ends the measuring, said in one line, and the script goes on."""

    def __init__(self) -> None:
        from trainlaunch.inside.probe.at_end import ScriptFile

        self.off = False
        self._follows = False
        self._script_file = ScriptFile()
        self._make()

    def _make(self, parent: Loops | None = None) -> None:
        from trainlaunch.inside.probe.ending import Ending, read_settings
        from trainlaunch.inside.probe.loops import Loops

        self.settings = read_settings()
        self.loops: Loops = Loops(parent)
        self.ending: Ending = Ending(self.loops, self.settings)

    def guarded(self, call: Any, *args: Any) -> Any:
        """Return what a hook returns, None where it raises or measuring is off."""
        if self.off:
            return None
        try:
            return call(*args)
        except Exception as problem:
            self.off = True
            off("probe", problem)
            return None

    def begins(self, iterator: Any, loader: Any) -> None:
        """An iterator is built."""
        from trainlaunch.inside.probe.base.training_hooks import follow_training

        if self._is_script() and not self.loops.paused:
            if not self._follows:
                follow_training(self.trains)
                self._follows = True
            self.ending.begins()
            self.loops.begins(iterator, loader)

    def built(self, loader: Any) -> None:
        """The script builds a loader."""
        if self._is_script():
            self._script_file.keep()
            self.loops.built(loader)

    def _is_script(self) -> bool:
        """Return whether this process is no worker and no copy; begin anew in one that the script has forked."""
        from torch.utils.data import get_worker_info

        from trainlaunch.inside.probe.base import isolation

        if get_worker_info() is not None or isolation.in_copy:
            return False
        if self.loops.pid != os.getpid():
            self._make(self.loops)
        return True

    def fetched(self, fetched: Fetched) -> None:
        """Take what was measured of a batch."""
        self.loops.fetched(fetched)

    def trains(self) -> None:
        """The script made a backward or a step."""
        self.guarded(self.loops.trains)

    def ends(self) -> None:
        """The script ends by itself."""
        self._script_file.restore()
        self.guarded(self.ending.ends)

    def wrap(self, module: Any) -> None:
        """Follow the loaders and iterators of torch's module from now on."""
        build, begin, following = (
            module.DataLoader.__init__,
            module._BaseDataLoaderIter.__init__,
            module._BaseDataLoaderIter.__next__,
        )

        @functools.wraps(build)
        def built(loader: Any, *args: Any, **kw: Any) -> None:
            build(loader, *args, **kw)
            self.guarded(self.built, loader)

        @functools.wraps(begin)
        def begun(iterator: Any, loader: Any, *args: Any, **kw: Any) -> None:
            self.guarded(self.begins, iterator, loader)
            begin(iterator, loader, *args, **kw)

        @functools.wraps(following)
        def asked(iterator: Any) -> Any:
            return following(iterator) if self.off else self._next(iterator, following)

        module.DataLoader.__init__ = built
        module._BaseDataLoaderIter.__init__ = begun
        module._BaseDataLoaderIter.__next__ = asked

    def _next(self, iterator: Any, following: Any) -> Any:
        found = self.guarded(self.loops.enters, iterator)
        if found is not None:
            self.guarded(self.ending.comes, found.seen)
            if self.settings.through and found.count >= self.settings.batches:
                self.guarded(_shut, iterator)
                self.guarded(self.loops.leaves)
                self.guarded(self.loops.ends, found, True)
                raise StopIteration
        begun = time.perf_counter()
        try:
            batch = following(iterator)
        except StopIteration:
            if found is not None:
                self.guarded(self.loops.ends, found)
                self.guarded(_ends, found.seen)
            raise
        except BaseException as problem:
            if found is not None:
                found.seen.problem = problem
                self.guarded(_timed_out, found.seen, problem)
            raise
        finally:
            self.guarded(self.loops.leaves)
        if found is not None:
            self.guarded(self.loops.returns, found, batch, time.perf_counter() - begun)
            self.guarded(self.ending.came)
        return batch


def _ends(seen: LoaderStats) -> None:
    """Look at what is kept of the batches of a loop."""
    from trainlaunch.inside.probe.checks.memory_growth import note_kept_batches

    note_kept_batches(seen)


def _timed_out(seen: LoaderStats, problem: BaseException) -> None:
    """Ask workers that torch gave up where they stand."""
    from trainlaunch.inside.probe.checks.worker_failures import timed_out

    timed_out(seen, problem)


def _shut(iterator: Any) -> None:
    """End workers as a loop's last batch does, where they don't wait for the next epoch."""
    if getattr(iterator, "_workers", None) and not iterator._persistent_workers:
        iterator._shutdown_workers()


def install() -> None:
    """Follow what this process does with DataLoaders; as a worker, measure its batches."""
    from trainlaunch.inside.probe import at_end
    from trainlaunch.inside.probe.base.worker_results import Measuring
    from trainlaunch.inside.probe.checks.worker_failures import listen
    from trainlaunch.inside.probe.ending import end_late

    with contextlib.suppress(OSError):  # the script's process has ended
        listen()
    probe = Probe()
    module = sys.modules["torch.utils.data.dataloader"]
    probe.wrap(module)
    fetch = sys.modules["torch.utils.data._utils.fetch"]
    measuring = Measuring(probe.fetched)
    measuring.wrap(fetch._MapDatasetFetcher)
    measuring.wrap(fetch._IterableDatasetFetcher)
    at_end.call(probe.ends)
    end_late(probe.settings.deadline)
