"""What `doctor` prints of containers that run: their resources, each process and where it stands, what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from trainlaunch.cli.causes import as_json
from trainlaunch.cli.look import look
from trainlaunch.cli.report import document
from trainlaunch.cli.runs import framed_diagnosis, shown
from trainlaunch.cli.streams import Streams
from trainlaunch.units import counted, human_size

if TYPE_CHECKING:
    from trainlaunch.diagnose.diagnosis import Diagnosis
    from trainlaunch.diagnose.evidence import Evidence
    from trainlaunch.diagnose.live.facts import Look, Process
    from trainlaunch.plan.plan_label import Planned

MOST_KINDS = 4


class Running(NamedTuple):
    """One container that runs: a sentence about it, whether its health check fails, and what is known of it."""

    state: str
    unhealthy: bool
    evidence: Evidence


def tell_live(running: Sequence[Running], streams: Streams, *, output: str) -> int:
    """Print what containers do and what is wrong; returns 0 where nothing is, else 1."""
    from trainlaunch.diagnose import explain_live

    found = [explain_live(each.evidence) for each in running]
    diagnoses = [each for one in found for each in one]
    if output == "json":
        live = [_document(each.evidence) for each in running]
        states = [each.state for each in running]
        streams.result(document({"diagnoses": [as_json(each) for each in diagnoses], "state": states, "live": live}))
    else:
        _print(running, diagnoses, streams)
    return 1 if diagnoses or any(each.unhealthy for each in running) else 0


def _print(running: Sequence[Running], diagnoses: Sequence[Diagnosis], streams: Streams) -> None:
    for each in running:
        streams.row(shown(each.state))
        for name, words in _lines(each.evidence):
            streams.row(f"  {name:11} {shown(words)}", 14)
    for one in diagnoses:
        streams.result(f"{framed_diagnosis(one, look(streams.out))}\n")
        for command in one.commands:
            streams.result(f"   = run: {command}\n")


def _lines(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Yield what a look found, a name and words each."""
    look = evidence.look
    if look is None:
        yield "processes", "nobody could look at them: neither this host's /proc nor a command inside shows them"
        return
    yield from _resources(look, evidence.planned)
    for main in look.mains:
        yield _title(main), _doing(main)
        for worker in look.workers_of(main):
            yield f"  worker {look.number(worker)}", _doing(worker)
    if look.stacks and look.mains:
        yield "stacks", f"not read ({look.stacks})"


def _resources(look: Look, planned: Planned) -> Iterator[tuple[str, str]]:
    if look.shm is not None:
        size = human_size(look.shm.size) if look.shm.size else "no limit"
        kinds = ", ".join(_held(kind, size, pids) for kind, size, pids in look.shm.held[:MOST_KINDS])
        yield "/dev/shm", f"{human_size(look.shm.used)} of {size}" + (f": {kinds}" if kinds else "")
        if (fill := queue_fill(look, planned)) is not None:
            yield "queue", f"about {fill[0]:.1f} of {fill[1]} batches (an estimate: what /dev/shm holds ÷ one batch)"
    if look.memory is not None:
        memory = look.memory
        parts = (("processes", memory.anon), ("/dev/shm", memory.shmem), ("cached files", memory.file))
        words = ", ".join(f"{name} {human_size(size)}" for name, size in parts if size is not None)
        limit = f" of {human_size(memory.limit)}" if memory.limit else ""
        yield "memory", f"{human_size(memory.used or 0)}{limit}: {words}"
    used = sum(each.cpu or 0 for each in look.processes)
    quota = f" of {look.cpus:g}" if look.cpus else ""
    slowed = f", throttled in {look.throttled[0]} of {look.throttled[1]} periods" if look.throttled else ""
    yield "CPUs", f"{used:.1f}{quota}{slowed}"
    for gpu in look.gpus:
        yield f"GPU {gpu.number}", f"{gpu.busy:.0f} % busy, {human_size(gpu.used)} of {human_size(gpu.total)}"


def _held(kind: str, size: int, pids: tuple[int, ...]) -> str:
    who = f" ({counted(len(pids), 'process').removesuffix('s')})" if len(pids) > MOST_KINDS else ""
    some = f" (pid {', '.join(map(str, pids))})" if 0 < len(pids) <= MOST_KINDS else ""
    return f"{kind} {human_size(size)}{who or some}"


def queue_fill(look: Look, planned: Planned) -> tuple[float, int] | None:
    """Return how many batches torch's files in /dev/shm make, and how many are queued at most; an estimate.

    None where the plan knows no size of a batch.
    """
    if look.shm is None or planned.unsized or not planned.need or not planned.queued_batches:
        return None
    batch = planned.need / (planned.queued_batches + 2)  # the loop holds two
    held = sum(each.size for each in look.shm.held if each.kind == "torch")
    return held / batch, planned.queued_batches


def _title(process: Process) -> str:
    return f"pid {process.pid}" if process.rank is None else f"rank {process.rank}"


def _doing(process: Process) -> str:
    from trainlaunch.diagnose.live.waiting import duration, is_idle, place, slept

    if process.dead:
        return "has ended, and nobody has asked for its exit code"
    cpu = "CPU unknown" if process.cpu is None else f"{100 * process.cpu:.0f} % CPU"
    files = f", {process.open_files} of {process.most_files} files open" if process.most_files else ""
    if process.is_worker and is_idle(process):
        return f"{cpu}{files}, waits for work"
    if process.waits_for_batch:
        return f"{cpu}{files}, waits for a batch {place(process)}"
    if process.collective:
        return f"{cpu}{files}, waits in {process.collective} {place(process)}{duration(process)}"
    where = f", {place(process)}" if process.stack or (process.kernel and slept(process) >= 1) else ""
    return f"{cpu}{files}{where}{duration(process)}"


def _document(evidence: Evidence) -> dict[str, Any] | None:
    """Return a look as plain values: bytes, seconds, CPUs; None where nobody could look."""
    look = evidence.look
    if look is None:
        return None
    fill = queue_fill(look, evidence.planned)
    return {
        "seconds": look.seconds,
        "shm": None if look.shm is None else {**look.shm._asdict(), "held": [each._asdict() for each in look.shm.held]},
        "queue_estimate": None if fill is None else {"batches": fill[0], "most": fill[1]},
        "memory": None if look.memory is None else look.memory._asdict(),
        "cpus": {"used": sum(each.cpu or 0 for each in look.processes), "quota": look.quota, "allowed": look.cpus},
        "throttled": None if look.throttled is None else {"periods": look.throttled[1], "throttled": look.throttled[0]},
        "gpus": [each._asdict() for each in look.gpus],
        "processes": [_process(look, each) for each in look.processes],
        "stacks": look.stacks or "by py-spy",
    }


def _process(look: Look, process: Process) -> dict[str, Any]:
    from trainlaunch.diagnose.live.waiting import place

    known = ("pid", "parent", "name", "state", "cpu", "asleep", "kernel", "open_files", "most_files", "rank")
    stack = [{"file": each.file, "line": each.line, "name": each.name} for each in process.stack]
    worker = look.number(process) if process.is_worker else None
    return {**{key: getattr(process, key) for key in known}, "worker": worker, "at": place(process), "stack": stack}
