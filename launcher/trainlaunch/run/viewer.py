"""Shows a run on this machine that somebody else keeps, to the end of its last attempt."""

from __future__ import annotations

import functools
import threading

from trainlaunch.errors import LaunchError
from trainlaunch.exit_codes import EXIT_INTERRUPTED
from trainlaunch.run.base.backend import Backend, Chunk, ContainerInfo
from trainlaunch.run.base.console import HANGUP, Console, Event, Events, Presses, attempt_aside, trapped_signals
from trainlaunch.run.base.multi_node import containers_of_run
from trainlaunch.run.base.store import Followed, Following, Tell
from trainlaunch.run.following import end_evidence, follow_to_end, to_paste


def follow(
    backend: Backend, containers: tuple[ContainerInfo, ...], console: Console, how: Following, tell: Tell
) -> int:
    """Follow containers of an attempt and of those after it. Raises TargetUnavailable."""
    if how.take_up is not None:
        return _attached(backend, containers, console, how, tell)
    show = None if how.part is None else functools.partial(_print, console)
    running = [each for each in containers if each.status == "running"]
    if show is None and running:
        names = ", ".join(each.name for each in running)
        console.say(f"waiting for job {running[0].job} ({running[0].noun} {names}) to end")
    code, containers = follow_to_end(backend, containers, show, console.say, how.part)
    tell(_followed(backend, containers, code))
    return code


def _attached(
    backend: Backend, containers: tuple[ContainerInfo, ...], console: Console, how: Following, tell: Tell
) -> int:
    if how.take_up is not None and not all(each.ended for each in containers):
        how.take_up(containers[0])
    events: Events[Event] = Events()
    with trapped_signals(events):
        viewer = Viewer(backend, containers, console, events, stops=how.stop_on_interrupt)
        code = viewer.show()
        if code is None:
            tell(Followed(EXIT_INTERRUPTED, goes_on="the job goes on"))
            return EXIT_INTERRUPTED
        tell(_followed(backend, viewer.containers, code))
    return code


def _followed(backend: Backend, containers: tuple[ContainerInfo, ...], code: int) -> Followed:
    evidence = end_evidence(backend, containers)
    paste = "" if evidence is None else to_paste(backend, containers, evidence)
    return Followed(code, evidence, remarks=(paste,) if paste else ())


def _print(console: Console, chunk: Chunk) -> None:
    (console.err if chunk.stderr else console.out)(chunk.data)


class Viewer:
    """Shows a run that somebody else keeps; `containers` are those of its last attempt."""

    def __init__(
        self,
        backend: Backend,
        containers: tuple[ContainerInfo, ...],
        console: Console,
        events: Events[Event],
        *,
        stops: bool,
    ) -> None:
        self.containers = containers
        self._backend = backend
        self._console = console
        self._events = events
        self._stops = stops
        self._stopping = False
        self._presses = Presses()
        self._failure: LaunchError | None = None

    def show(self) -> int | None:
        """Print all attempts from here on; return the exit code of the last, None where an interrupt left it."""
        threading.Thread(target=self._follow, daemon=True).start()
        while True:
            event = self._events.get()
            if event.kind == "exit":
                return event.code
            if event.kind == "trouble":
                self._console.say(event.value)
            elif self._failure is not None:
                raise self._failure
            elif event.kind == HANGUP or not self._stops:
                return None
            else:
                self._interrupted(event)

    def _follow(self) -> None:
        try:
            code, self.containers = follow_to_end(
                self._backend, self.containers, functools.partial(_print, self._console), self._console.say
            )
        except LaunchError as cause:
            self._failure = cause
            self._events.put(Event("failed"))
        else:
            self._events.put(Event("exit", code=code))

    def _interrupted(self, event: Event) -> None:
        """Stop the attempt that runs now; a second Ctrl-C kills it."""
        second, one = self._presses.is_second(event), self.containers[0]
        now = containers_of_run(self._backend.runs(one.job, one.run), one.run) if one.run else self.containers
        running = [each for each in now if each.status == "running"]
        if not self._stopping:
            self._stopping = True
            self._console.say(f"{event.value}: stopping the job; Ctrl-C again kills it")
            for each in running:
                attempt_aside(self._events, functools.partial(self._backend.stop, each.id))
        elif second:
            self._console.say("killing it")
            for each in running:
                attempt_aside(self._events, functools.partial(self._backend.kill, each.id))
