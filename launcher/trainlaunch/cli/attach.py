"""`trainlaunch attach`: take a run up again, from its first line to its end."""

from __future__ import annotations

import argparse
import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from trainlaunch.cli.run_argument import add_run_argument, newest_run
from trainlaunch.cli.run_end import follow_to_end, say_end
from trainlaunch.cli.runs import hints, shown
from trainlaunch.cli.streams import Streams
from trainlaunch.cli.terminal import Screen
from trainlaunch.errors import LaunchError
from trainlaunch.exit_codes import EXIT_INTERRUPTED
from trainlaunch.run.multi_node import containers_of_run
from trainlaunch.run.signals import HANGUP, Event, Events, Presses, trapped_signals

if TYPE_CHECKING:
    from trainlaunch.run.backend import Backend, Chunk, Started

EXAMPLES = ("trainlaunch attach mnist", "trainlaunch attach mnist --stop-on-interrupt")
EXIT_CODES = (
    "the job's own; 125 where none exists (no such run, engine or cluster, never started, removed meanwhile), 130 when "
    "Ctrl-C detached"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_run_argument(parser)
    parser.add_argument(
        "--stop-on-interrupt", action="store_true", help="let Ctrl-C stop the job; it detaches otherwise"
    )


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Leave a keeper with the run where none is, then show it to its end; Ctrl-C leaves the run alone."""
    screen = Screen(streams)
    with newest_run(args, streams) as (backend, found):
        containers = found.newest
        if not all(each.ended for each in containers):
            take_over(containers[0], screen)
        events: Events[Event] = Events()
        with trapped_signals(events):
            viewer = Viewer(backend, containers, screen, events, stops=args.stop_on_interrupt)
            code = viewer.show()
            if code is None:
                screen.say("the job goes on")
                hints(lambda verb: f"trainlaunch {verb} {containers[0].job}", screen.line)
                return EXIT_INTERRUPTED
            say_end(backend, viewer.containers, streams, screen.line)
    return code


def take_over(container: Started, screen: Screen) -> None:
    """Say who keeps a run, or leave a keeper with it; say what it goes without where that can't be."""
    from trainlaunch.cli.keeper import leave_keeper
    from trainlaunch.run.keeping import keeper_of
    from trainlaunch.run.kept import Kept
    from trainlaunch.run.local.files import UnusableState
    from trainlaunch.run.secrets import secret_findings
    from trainlaunch.run.wording import not_kept

    kept = Kept(container.run)
    for said in kept.said():
        for line in str(said).splitlines():
            screen.line(shown(line))
    keeper = keeper_of(container.run)
    if keeper is not None:
        screen.say(f"{keeper} keeps the run")
        return
    try:
        plan = kept.own_plan()
    except UnusableState as why:
        screen.say(f"{not_kept(container.max_attempts, None)}: {why}")
        return
    lacking = secret_findings(plan) if container.attempt < container.max_attempts else ()
    problem = "; ".join(each.message for each in lacking) or leave_keeper(plan, container.run)
    if lacking:
        problem += "; export it, then attach again"
    if problem:
        screen.say(f"{not_kept(plan.job.max_attempts, plan.job.active_deadline)}: {problem}")
        return
    screen.say(f"{keeper_of(container.run) or 'a process of this host'} keeps the run from now on")


class Viewer:
    """Shows a run that somebody else keeps; `containers` are those of its last attempt."""

    def __init__(
        self, backend: Backend, containers: tuple[Started, ...], screen: Screen, events: Events[Event], *, stops: bool
    ) -> None:
        self.containers = containers
        self._backend = backend
        self._screen = screen
        self._events = events
        self._stops = stops
        self._stopping = False
        self._presses = Presses()
        self._failure: LaunchError | None = None

    def show(self) -> int | None:
        """Print all attempts from here on; return the exit code of the last, None where an interrupt left it."""
        self._aside(self._follow)
        while True:
            event = self._events.get()
            if event.kind == "exit":
                return event.code
            if event.kind == "trouble":
                self._screen.say(event.value)
            elif self._failure is not None:
                raise self._failure
            elif event.kind == HANGUP or not self._stops:
                return None
            else:
                self._interrupted(event)

    def _follow(self) -> None:
        try:
            code, self.containers = follow_to_end(self._backend, self.containers, self._print, self._screen.say)
        except LaunchError as cause:
            self._failure = cause
            self._events.put(Event("failed"))
        else:
            self._events.put(Event("exit", code=code))

    def _print(self, chunk: Chunk) -> None:
        (self._screen.err if chunk.stderr else self._screen.out)(chunk.data)

    def _interrupted(self, event: Event) -> None:
        """Stop the attempt that runs now; a second Ctrl-C kills it."""
        second, one = self._presses.is_second(event), self.containers[0]
        now = containers_of_run(self._backend.runs(one.job, one.run), one.run) if one.run else self.containers
        running = [each for each in now if each.status == "running"]
        if not self._stopping:
            self._stopping = True
            self._screen.say(f"{event.value}: stopping the job; Ctrl-C again kills it")
            for each in running:
                self._aside(functools.partial(self._try, self._backend.stop, each.id))
        elif second:
            self._screen.say("killing it")
            for each in running:
                self._aside(functools.partial(self._try, self._backend.kill, each.id))

    def _try(self, action: Callable[[str], None], container: str) -> None:
        try:
            action(container)
        except LaunchError as cause:
            self._events.put(Event("trouble", str(cause)))

    def _aside(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, daemon=True).start()
