from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, EvidenceLine, seen
from trainlaunch.diagnose.base.evidence import RunEvent
from trainlaunch.diagnose.base.kubelet_words import NEVER_STARTED, NO_PROGRAM, refusal
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL626"
NAME = "container-not-created"
_REASONS = (
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "ContainerCannotRun",
    "StartError",
    "UnexpectedAdmissionError",
    "FailedMount",
    "FailedAttachVolume",
    "FailedCreatePodSandBox",
)
_POD = LogPattern("rror", r"\b(?:CreateContainer(?:Config)?Error|RunContainerError)\b")
_MOUNT = LogPattern("nable to attach or mount volumes")
_SETUP = LogPattern("MountVolume", r"MountVolume\.\w+ failed for volume")
_ATTACH = LogPattern("rror", r"Multi-Attach error for volume")
_NAMED = LogPattern("ot found", r'(?i)(?:secret|configmap|persistentvolumeclaim|serviceaccount) "[^"]+" not found')
_ALLOCATE = LogPattern("llocate failed due to", r"(?:^|\W)Allocate failed due to .*, which is unexpected")
_TEXTS = (_POD, _MOUNT, _SETUP, _ATTACH, _NAMED, _ALLOCATE)


def diagnose(case: Case) -> Diagnosis | None:
    """Match the kubelet's reasons, in the pod's status or in a log of `kubectl describe`."""
    evidence = case.evidence
    event = case.event(*_REASONS)
    hit = case.first(*_TEXTS)
    if event is None and evidence.reason.startswith("OutOf"):
        event = RunEvent(evidence.reason, evidence.words)
    if event is None and hit is None:
        return None
    reason = event.reason if event is not None else ""
    if reason in NEVER_STARTED and event is not None and NO_PROGRAM.search(event.words):
        return None  # which TL614 tells
    words = event.words if event is not None else " ".join(each.text for each in case.hits(*_TEXTS))
    sentence, fix = refusal(reason, words)
    shown = EvidenceLine("events", 0, f"{reason}: {words}".rstrip(": ")) if event is not None else hit
    return Diagnosis(CODE, NAME, sentence, seen(shown), fix)
