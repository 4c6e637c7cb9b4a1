"""What the verbs about runs share: which job is meant, its newest container, the words about its end."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from launcher.cli.streams import Streams, coloured
from launcher.diagnostics import Diagnostic
from launcher.errors import TargetUnavailable
from launcher.units import human_size

if TYPE_CHECKING:
    from launcher.diagnose.diagnosis import Diagnosis
    from launcher.run.backend import Backend, Started
    from launcher.run.evidence import Evidence

NO_SUCH_RUN = "TL510"


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a job, by its file or its name."""
    parser.add_argument("job", metavar="JOB", help="a job file, or the name of a job")


@contextlib.contextmanager
def docker_backend() -> Iterator[Backend]:
    """Give the engine's backend, and close its connections afterwards; nothing is contacted yet."""
    from launcher.run.docker import DockerBackend

    with contextlib.closing(DockerBackend()) as backend:
        yield backend


def job_name(argument: str) -> str:
    """Return the job's name: of the file that `argument` names, else `argument` itself. Raises JobFileRejected."""
    path = Path(argument)
    if path.suffix in {".yaml", ".yml"} or "/" in argument or path.is_file():
        from launcher.job import read_job

        return read_job(path, use_lock=False).name
    return argument


def runs_of(backend: Backend, job: str) -> tuple[Started, ...]:
    """Return the containers of a job, newest first; raises TargetUnavailable (TL510) where there are none."""
    found = backend.runs(job)
    if not found:
        known = sorted({each.job for each in backend.runs()})
        raise TargetUnavailable(
            [
                Diagnostic(
                    code=NO_SUCH_RUN,
                    message=f"this engine has no run of job {job}",
                    why=f"it has runs of {', '.join(known)}" if known else "it has no runs of trainlaunch at all",
                    fix="start it with `trainlaunch up JOB`, or list what there is with `trainlaunch ps`",
                )
            ]
        )
    return found


def byte_sink(stream: TextIO) -> Callable[[bytes], None]:
    """Return a function that writes a job's bytes unchanged; once their reader is gone they are dropped."""
    raw = getattr(stream, "buffer", None)
    gone = False

    def write(data: bytes) -> None:
        nonlocal gone
        if gone:
            return
        try:
            if raw is None:
                stream.write(data.decode(errors="replace"))
            else:
                raw.write(data)
            stream.flush()
        except OSError:  # a closed pipe, or a terminal that is gone
            gone = True

    return write


def sayer(streams: Streams) -> Callable[[str], None]:
    """Return a function that says a line of ours among the job's; a terminal that is gone ends nothing."""

    def say(text: str) -> None:
        with contextlib.suppress(OSError):
            streams.say(f"trainlaunch: {text}")

    return say


def say_diagnoses(evidence: Evidence, streams: Streams) -> None:
    """Print why a run ended: one or two causes, or the bare evidence where nothing names one."""
    from launcher.diagnose import explain_end

    diagnoses = explain_end(evidence)
    for diagnosis in diagnoses:
        streams.say(framed_diagnosis(diagnosis, colour=coloured(streams.err)))
    if not diagnoses and evidence.exit_code:
        streams.say(f"trainlaunch: no known cause; {bare_evidence(evidence)}")


def framed_diagnosis(diagnosis: Diagnosis, *, colour: bool) -> str:
    """Return a diagnosis in the frame that errors have."""
    head = f"cause[{diagnosis.code}]"
    head = f"\x1b[1;31m{head}\x1b[0m" if colour else head
    sure = "" if diagnosis.confidence == "certain" else f" ({diagnosis.confidence})"
    return f"{head}: {diagnosis.sentence}{sure}\n   = saw: {diagnosis.saw}\n   = fix: {diagnosis.fix}"


def bare_evidence(evidence: Evidence) -> str:
    """Return what is known about an end, without a guess."""
    memory = human_size(evidence.memory) if evidence.memory else "none"
    peak = "unknown" if evidence.shm_peak is None else human_size(evidence.shm_peak)
    size = human_size(evidence.shm_size) if evidence.private_shm and evidence.shm_size else "unknown"
    last = next((line.strip() for line in reversed(evidence.log.splitlines()) if line.strip()), "")
    return (
        f"exit code {evidence.exit_code}, OOMKilled {str(evidence.oom_killed).lower()}, memory limit {memory}, "
        f"/dev/shm peak {peak} of {size}, last line: {last or '(nothing printed)'}"
    )
