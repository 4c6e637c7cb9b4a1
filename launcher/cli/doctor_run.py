"""`trainlaunch doctor JOB`: what a run tells of itself, dead or alive, wherever it is."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from launcher.cli.causes import as_json, tell
from launcher.cli.report import document
from launcher.cli.run_argument import newest_run
from launcher.cli.run_end import end_evidence
from launcher.cli.runs import framed_diagnosis
from launcher.cli.streams import Streams, coloured

if TYPE_CHECKING:
    from launcher.diagnose.diagnosis import Diagnosis
    from launcher.diagnose.evidence import Evidence
    from launcher.run.backend import Backend, ShmReading, Started

MOST_FULL = 0.97  # of /dev/shm, from which on the next batch may not fit


def explain_run(args: argparse.Namespace, streams: Streams) -> int:
    """Explain the newest run of a job, of several nodes the one that failed first."""
    from launcher.cli.target_options import means_a_cluster

    args.job = args.run  # as the verbs about runs name it
    if means_a_cluster(args):
        return _of_cluster(args, streams)
    with newest_run(args, streams) as (backend, found):
        containers = found.newest
        evidence = end_evidence(backend, containers)
        if evidence is not None:
            return tell(evidence, streams, output=args.output)
        running = [each for each in containers if not each.ended]
        return _live(backend, running, streams, output=args.output)


def _evidence(backend: Backend, container: Started) -> Evidence:
    """Return what a container that runs shows: its size, and its whole log."""
    from launcher.cli.run_end import redaction
    from launcher.run.evidence import evidence_of, read_whole_log
    from launcher.run.kept import Kept

    log, facts = read_whole_log(backend, container)
    evidence = evidence_of(container, log=log)
    return replace(evidence, scanned=facts, redact=redaction(Kept(container.run)), job=container.job)


def _live(backend: Backend, running: list[Started], streams: Streams, *, output: str) -> int:
    """Say what is wrong with containers that run: a log that shows a hang, a full /dev/shm, an unhealthy check."""
    from launcher.diagnose import explain_hang

    diagnoses: list[Diagnosis] = []
    words: list[str] = []
    for container in running:
        evidence = _evidence(backend, container)
        hang = explain_hang(evidence)
        reading = backend.read_shm(container)
        if hang is not None:
            diagnoses.append(hang.redacted(evidence.redact))
        elif reading is not None and _is_full(reading):
            diagnoses.append(_full(evidence, reading))
        words.append(_state(container, reading))
    unhealthy = [each for each in running if each.health == "unhealthy"]
    if output == "json":
        streams.result(document({"diagnoses": [as_json(each) for each in diagnoses], "state": words}))
    else:
        for line in words:
            streams.result(f"{line}\n")
        for each in diagnoses:
            streams.result(f"{framed_diagnosis(each, colour=coloured(streams.out))}\n")
    return 1 if diagnoses or unhealthy else 0


def _is_full(reading: ShmReading) -> bool:
    return reading.size > 0 and reading.used >= MOST_FULL * reading.size


def _full(evidence: Evidence, reading: ShmReading) -> Diagnosis:
    from launcher.diagnose.diagnosis import POSSIBLE, Diagnosis, Seen
    from launcher.diagnose.shm_advice import larger_shm, shm_commands
    from launcher.units import human_size

    seen = Seen("machine", 0, f"/dev/shm holds {human_size(reading.used)} of {human_size(reading.size)}")
    sentence = "/dev/shm is full: the next batch has no room, unless a worker frees one first"
    fix = larger_shm(replace(evidence, shm_size=reading.size))
    return Diagnosis("TL605", "shm-exhausted", sentence, (seen,), fix, POSSIBLE, shm_commands(evidence))


def _state(container: Started, reading: ShmReading | None) -> str:
    from launcher.units import counted, human_size

    parts = [f"{container.noun} {container.name} runs"]
    if container.health:
        parts.append(container.health + (f" ({container.health_output.strip()})" if container.health_output else ""))
    if reading is not None:
        size = human_size(reading.size) if reading.size else "no limit"
        parts.append(f"/dev/shm {human_size(reading.used)} of {size}")
        if reading.workers is not None:
            parts.append(counted(reading.workers, "DataLoader worker"))
    return ", ".join(parts)


def _of_cluster(args: argparse.Namespace, streams: Streams) -> int:
    """Explain the newest run on a cluster: one that goes on by its log, one that has ended by its pod as well."""
    from launcher.cli.cluster import cluster_job
    from launcher.cli.cluster_run import newest_run as newest_cluster_run
    from launcher.diagnose import explain_hang, new_scanner
    from launcher.diagnose.evidence import Evidence
    from launcher.run.kubernetes.exit_status import end_of_run, evidence_of_ended
    from launcher.run.kubernetes.output import print_logs
    from launcher.run.kubernetes.runs import pods_of_run
    from launcher.targets import KUBERNETES

    with cluster_job(args) as place:
        run = newest_cluster_run(args, place.cluster, streams.say)
        if run.result.ended:
            end = end_of_run(run.result, pods_of_run(place.cluster, run))
            return tell(evidence_of_ended(place.cluster, end, streams.say), streams, output=args.output)
        scanner = new_scanner()
        print_logs(place.cluster, run, scanner.feed, streams.say)
    hang = explain_hang(Evidence(None, scanned=scanner.facts(), target=KUBERNETES.name))
    found = [] if hang is None else [hang]
    if args.output == "json":
        streams.result(document({"diagnoses": [as_json(each) for each in found], "state": [f"{run.main} runs"]}))
    else:
        streams.result(f"{run.main} runs\n")
        for each in found:
            streams.result(f"{framed_diagnosis(each, colour=coloured(streams.out))}\n")
    return 1 if found else 0
