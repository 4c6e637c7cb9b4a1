"""What `doctor` prints: causes with their evidence and commands; of what runs, its resources, processes and waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trainlaunch.cli.output.report import document
from trainlaunch.cli.output.run_output import bare_evidence, framed_diagnosis
from trainlaunch.cli.output.streams import Streams, TextStyle, style_of
from trainlaunch.sanitize import shown
from trainlaunch.units import counted, human_size

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.case import Diagnosis, EvidenceLine
    from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot, Process
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.plan.plan_label import Planned
    from trainlaunch.run.base.store import Live

MAX_KINDS = 4


def tell(evidence: Evidence, streams: Streams, *, output: str) -> int:
    """Print what is known of an end; returns 0 where a cause is named or the job ended well, else 1."""
    from trainlaunch.diagnose import all_causes, end_of

    causes = all_causes(evidence)
    named = any(each.symptom != "unknown" for each in causes)
    fine = named or evidence.exit_code == 0
    end = end_of(evidence)
    if output == "json":
        streams.result(document({"diagnoses": [as_json(each) for each in causes], "end": end or None}))
        return 0 if fine else 1
    if end:
        streams.row(f"end: {shown(end)}", 5)
    style = style_of(streams.out)
    for each in causes:
        if each.symptom != "unknown":
            streams.result(f"{_told(each, style)}\n")
    if not named:
        well = ": exit code 0 is that of a job that ended well" if evidence.exit_code == 0 else ""
        streams.row(f"no known cause{well}{bare_evidence(evidence)}")
    return 0 if fine else 1


def as_json(diagnosis: Diagnosis) -> dict[str, object]:
    """Return a diagnosis as documents have it."""
    return {
        "code": diagnosis.code,
        "symptom": diagnosis.symptom,
        "confidence": diagnosis.confidence,
        "evidence": [_seen(each) for each in diagnosis.evidence],
        "cause": shown(diagnosis.sentence),
        "fix": shown(diagnosis.fix),
        "commands": list(diagnosis.commands),
        "echo_of": diagnosis.echo_of or None,
    }


def _seen(seen: EvidenceLine) -> dict[str, object]:
    return {"source": seen.source, "line": seen.line, "text": shown(seen.text)}


def _told(diagnosis: Diagnosis, style: TextStyle) -> str:
    if diagnosis.echo_of:
        words = diagnosis.saw.partition(": ")[2]
        saw = "" if words and words in diagnosis.sentence else f" ({shown(diagnosis.saw)})"
        return f"an echo of {diagnosis.echo_of}: {shown(diagnosis.sentence)}{saw}"
    text = framed_diagnosis(diagnosis, style)
    places = ", ".join(f"line {each.line}" for each in diagnosis.evidence if each.line)
    more = f"\n   = at: {places} of the log" if places else ""
    return text + more + "".join(f"\n   = run: {each}" for each in diagnosis.commands)


def tell_live(running: Sequence[Live], streams: Streams, *, output: str) -> int:
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


def _print(running: Sequence[Live], diagnoses: Sequence[Diagnosis], streams: Streams) -> None:
    for each in running:
        streams.row(shown(each.state))
        for name, words in _lines(each.evidence):
            streams.row(f"  {name:11} {shown(words)}", 14)
    for one in diagnoses:
        streams.result(f"{framed_diagnosis(one, style_of(streams.out))}\n")
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


def _resources(look: ContainerSnapshot, planned: Planned) -> Iterator[tuple[str, str]]:
    if look.shm is not None:
        size = human_size(look.shm.size) if look.shm.size else "no limit"
        kinds = ", ".join(_held(kind, size, pids) for kind, size, pids in look.shm.held[:MAX_KINDS])
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
    who = f" ({counted(len(pids), 'process')})" if len(pids) > MAX_KINDS else ""
    some = f" (pid {', '.join(map(str, pids))})" if 0 < len(pids) <= MAX_KINDS else ""
    return f"{kind} {human_size(size)}{who or some}"


def queue_fill(look: ContainerSnapshot, planned: Planned) -> tuple[float, int] | None:
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
    from trainlaunch.diagnose.base.container_snapshot import duration, is_idle, place, slept

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


def _process(look: ContainerSnapshot, process: Process) -> dict[str, Any]:
    from trainlaunch.diagnose.base.container_snapshot import place

    known = ("pid", "parent", "name", "state", "cpu", "asleep", "kernel", "open_files", "most_files", "rank")
    stack = [{"file": each.file, "line": each.line, "name": each.name} for each in process.stack]
    worker = look.number(process) if process.is_worker else None
    return {**{key: getattr(process, key) for key in known}, "worker": worker, "at": place(process), "stack": stack}
