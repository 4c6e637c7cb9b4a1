"""Explains the end of a run from its evidence: what happened, what shows it, what to type.

Adding a symptom: one module in `symptoms/`, one place in SYMPTOMS, one test.
"""

from __future__ import annotations

from types import ModuleType

from launcher.diagnose.diagnosis import Diagnosis
from launcher.diagnose.evidence import Evidence
from launcher.diagnose.symptoms import (
    command_not_started,
    container_not_created,
    deadline_exceeded,
    engine_refused,
    feeder_thread_lost_batch,
    image_not_pulled,
    killed_from_outside,
    node_lost,
    oom_killed,
    open_files_exhausted,
    own_exit_code,
    pod_evicted,
    pod_preempted,
    preflight_stopped,
    segmentation_fault,
    shm_bus_error,
    shm_full,
    shm_full_semaphore,
    stopped_on_request,
    temp_dir_unusable,
    worker_killed,
)

# In each group the first that matches speaks, so the most specific stands first.
SYMPTOMS: tuple[tuple[ModuleType, ...], ...] = (
    (pod_evicted, deadline_exceeded, pod_preempted, node_lost, image_not_pulled, container_not_created),
    (preflight_stopped, engine_refused, stopped_on_request),
    (feeder_thread_lost_batch, shm_full_semaphore, shm_full, shm_bus_error),
    (open_files_exhausted, temp_dir_unusable),
    (worker_killed, oom_killed, killed_from_outside),
    (segmentation_fault,),
    (command_not_started, own_exit_code),
)
MOST_SENTENCES = 2


def explain_end(evidence: Evidence) -> tuple[Diagnosis, ...]:
    """Return one or two causes, most specific first; none where nothing names one.

    A run that ended with 0 is only asked for OOMKilled: its log may quote anything.
    """
    groups = ((oom_killed,),) if evidence.exit_code == 0 else SYMPTOMS
    found = [_first(group, evidence) for group in groups]
    return tuple(each for each in found if each is not None)[:MOST_SENTENCES]


def explain_hang(evidence: Evidence) -> Diagnosis | None:
    """Return the cause where the log of a job that still runs shows that it waits for ever."""
    return feeder_thread_lost_batch.diagnose(evidence) or _temp_dir_in_feeder(evidence)


def _temp_dir_in_feeder(evidence: Evidence) -> Diagnosis | None:
    return temp_dir_unusable.diagnose(evidence) if "_feed" in evidence.log else None


def _first(group: tuple[ModuleType, ...], evidence: Evidence) -> Diagnosis | None:
    for symptom in group:
        diagnosis: Diagnosis | None = symptom.diagnose(evidence)
        if diagnosis is not None:
            return diagnosis
    return None
