"""The node has the pod and can't start its container: something that it refers to is missing, or the image can't run.

**What you see**: `CreateContainerConfigError`, `CreateContainerError`, `StartError`, `OutOfcpu` or
`UnexpectedAdmissionError`, and no line of a log.
**Why**: a Secret or ConfigMap that the job names is not in the namespace, or lacks the key; the image wants to run as
root and the cluster forbids it; the image has no /bin/sh; or the node has no room after all. The first two are tried
again for ever, without an end that a Job would count.
**Way out**: make what is missing (the container then starts by itself), or correct the job file.
**References**: kubernetes.io/docs/tasks/debug/debug-application/debug-pods.
"""

from __future__ import annotations

import re

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis, Seen, seen
from launcher.diagnose.evidence import Event
from launcher.diagnose.texts import Text

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
_POD = Text("rror", r"\b(?:CreateContainer(?:Config)?Error|RunContainerError)\b")
_MOUNT = Text("nable to attach or mount volumes")
_SETUP = Text("rror", r"MountVolume\.SetUp failed for volume")


def diagnose(case: Case) -> Diagnosis | None:
    """Match the kubelet's reasons, in the pod's status or in a log of `kubectl describe`."""
    evidence = case.evidence
    event = case.event(*_REASONS)
    hit = case.first(_POD, _MOUNT, _SETUP)
    if event is None and evidence.reason.startswith("OutOf"):
        event = Event(evidence.reason, evidence.words)
    if event is None and hit is None:
        return None
    reason = event.reason if event is not None else ""
    words = event.words if event is not None else " ".join(each.text for each in case.hits(_POD, _MOUNT, _SETUP))
    sentence, fix = _told(reason, words)
    shown = Seen("events", 0, f"{reason}: {words}".rstrip(": ")) if event is not None else hit
    return Diagnosis(CODE, NAME, sentence, seen(shown), fix)


def _told(reason: str, words: str) -> tuple[str, str]:
    missing = re.search(r'(secret|configmap) "([^"]+)" not found', words, re.I)
    if missing is not None:
        make = f"create {kind} generic" if (kind := missing[1].lower()) == "secret" else "create configmap"
        return (
            f"the job refers to the {kind} {missing[2]}, which its namespace does not have",
            f"run `kubectl {make} {missing[2]} …` in the job's namespace, or correct its name in the job file",
        )
    key = re.search(r"couldn't find key (\S+) in (\w+) (\S+)", words)
    if key is not None:
        return (
            f"{key[2]} {key[3]} has no key {key[1]}",
            f"add the key {key[1]} to it, or correct what follows the slash in secrets",
        )
    if mounted := re.search(r"references non-existent (secret|config) key: ([-._a-zA-Z0-9]+)", words):
        kind = "Secret" if mounted[1] == "secret" else "ConfigMap"
        return f"a {kind} that the job mounts has no key {mounted[2]}", "add that key to it, or correct the job file"
    if "runAsNonRoot" in words or "non-numeric user" in words or "will run as root" in words:
        return "the image runs as root, or as a user without a number", 'set user to a number, as in user: "1000"'
    if "/bin/sh" in words:
        return "the image has no /bin/sh, which the preflight needs", "use an image with a shell; busybox is enough"
    if reason.startswith("OutOf") or reason == "UnexpectedAdmissionError":
        return "the node had no room for the pod when it arrived", "start it again, or set restart.max_attempts to 2"
    if "olume" in words:
        return "the node can't mount a volume of the pod", "look whether the claim, Secret or ConfigMap it names exists"
    return "the node can't create the container", "change what the node names; it tries again by itself until then"
