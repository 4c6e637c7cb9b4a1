"""How a run that somebody else keeps goes on and ends: its next attempt, and the causes that every verb gives alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from launcher.cli.runs import code_of_all, say_diagnoses
from launcher.cli.streams import Streams

if TYPE_CHECKING:
    from launcher.diagnose.evidence import Evidence
    from launcher.run.backend import Backend, Chunk, Started
    from launcher.run.kept import Kept

LOOK_SECONDS = 0.3


def next_attempt(backend: Backend, container: Started) -> tuple[Started, ...]:
    """Return the containers of the attempt after one that has ended, by node; none where no more comes.

    Where a process keeps the run on this host, its word is waited for.
    """
    from launcher.run.keeping import keeper_of
    from launcher.run.multi_node import containers_of_run

    while container.run:
        keeper = keeper_of(container.run)  # asked first: what it starts before it is over is seen after it
        newest = containers_of_run(backend.runs(container.job), container.run)
        if newest and newest[0].attempt > container.attempt:
            return newest
        if keeper is None or keeper.over or not newest:
            return ()
        time.sleep(LOOK_SECONDS)
    return ()


def follow_to_end(
    backend: Backend, containers: tuple[Started, ...], show: Callable[[Chunk], None] | None, say: Callable[[str], None]
) -> tuple[int, tuple[Started, ...]]:
    """Wait for the end of a run, attempts that its keeper adds included; return its exit code and last containers.

    Where `show` is given it gets the output of each attempt from its first byte. Raises TargetUnavailable.
    """
    from launcher.run.wording import another_attempt

    while True:
        containers = _when_started(backend, containers)
        for chunk in printed(backend, containers, follow=True) if show is not None else ():
            if show is not None:
                show(chunk)
        code = code_of_all(backend, containers, say)
        more = next_attempt(backend, containers[0])
        if not more:
            return code, containers
        say(another_attempt(containers[0].attempt, containers[0].max_attempts, code))
        containers = more


def _when_started(backend: Backend, containers: tuple[Started, ...]) -> tuple[Started, ...]:
    """Return containers when they run: their keeper makes all of them before it starts one."""
    from launcher.run.keeping import keeper_of

    while any(each.status == "created" and not each.error for each in containers):
        keeper = keeper_of(containers[0].run)
        containers = tuple(filter(None, (backend.inspect(each.id) for each in containers))) or containers
        if keeper is None or keeper.over:
            break
        time.sleep(LOOK_SECONDS)
    return containers


def printed(backend: Backend, containers: tuple[Started, ...], *, follow: bool) -> Iterator[Chunk]:
    """Yield what to print; without `follow` one node after the other."""
    logs = [backend.logs(each.id, follow=follow) for each in containers]
    if len(logs) == 1:
        yield from logs[0]
        return
    from launcher.run.multi_node import Prefixed, merged

    numbered = (replace(chunk, node=node) for node, log in enumerate(logs) for chunk in log)
    prefixed = Prefixed()
    for chunk in merged(logs) if follow else numbered:
        yield replace(chunk, data=prefixed.take(chunk))
    yield from prefixed.rest()


def end_evidence(backend: Backend, containers: tuple[Started, ...]) -> Evidence | None:
    """Return what is known about a run's end, secrets taken out as far as their values are here; None before it."""
    from launcher.run.evidence import evidence_of_run
    from launcher.run.kept import Kept

    now = tuple(filter(None, (backend.inspect(each.id) for each in containers)))
    kept = Kept(containers[0].run)
    evidence = evidence_of_run(backend, now, kept.ended(containers[0].attempt))
    if evidence is None:
        return None
    redacted = redaction(kept)
    return replace(evidence, log=redacted(evidence.log), redact=redacted)


def say_end(backend: Backend, containers: tuple[Started, ...], streams: Streams, line: Callable[[str], None]) -> None:
    """Say the causes of a run's end, as `up` does."""
    evidence = end_evidence(backend, containers)
    if evidence is not None:
        say_diagnoses(evidence, streams, line)


def redaction(kept: Kept) -> Callable[[str], str]:
    """Return what takes the values of a run's secrets out of a text, as far as they are here."""
    from launcher.errors import TargetUnavailable
    from launcher.run.secrets import NOTHING_REDACTED, Redactor

    plan = kept.plan()
    try:
        return NOTHING_REDACTED if plan is None else Redactor(plan)
    except TargetUnavailable:
        return NOTHING_REDACTED
