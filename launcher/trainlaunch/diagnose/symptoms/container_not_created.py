from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import Case
from trainlaunch.diagnose.base.diagnosis import Diagnosis, EvidenceLine, seen
from trainlaunch.diagnose.base.evidence import RunEvent
from trainlaunch.diagnose.base.log_patterns import LogPattern

_STORIES = (
    (
        "GPU is lost",
        "a GPU of the node has failed",
        "run on another node, and have this one looked at (`kubectl cordon NODE`, then `dmesg | grep -i xid` on it)",
    ),
    (
        r"Allocate failed due to (?:(?!Allocate ).)*(?:rpc|plugin)",
        "a device plugin of the node refused the pod's devices",
        "look at that plugin's pod on the node, and at what the words after `desc =` want",
    ),
    (
        "runAsNonRoot|non-numeric user|will run as root",
        "the image runs as root, or as a user without a number",
        'set user to a number, as in user: "1000"',
    ),
    ("/bin/sh", "the image has no /bin/sh, which the preflight needs", "use an image with a shell; busybox is enough"),
    (
        "Multi-Attach",
        "a volume that one node may use at a time is still attached to another",
        "wait until the earlier pod is gone, or use a claim with access mode ReadWriteMany",
    ),
    (
        "(?i)persistentvolumeclaim",
        "the claim that a volume names is not in the job's namespace",
        "look with `kubectl get pvc`, and correct the source of the mount of type pvc",
    ),
    (
        "(?i)volume",
        "the node can't mount a volume of the pod",
        "look whether the claim, Secret or ConfigMap it names exists",
    ),
)


def refusal(reason: str, words: str) -> tuple[str, str]:
    """Return why there is no container, as a sentence, and what to type."""
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
    if devices := re.search(r"devices unavailable for ([\w./-]+)\. Requested: (\d+), Available: (\d+)", words):
        return (
            f"the node had {devices[3]} of {devices[1]} free when the pod arrived, which asks for {devices[2]}",
            "start it again; where the node has that many, look at the device plugin's pod there",
        )
    told = next((each[1:] for each in _STORIES if re.search(each[0], words)), None)
    if told is None and (reason.startswith("OutOf") or reason == "UnexpectedAdmissionError" or "Allocate" in words):
        return "the node had no room for the pod when it arrived", "start it again, or set restart.max_attempts to 2"
    return told or (
        "the node can't create the container",
        "change what the node names; it tries again by itself until then",
    )


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
    words = event.words if event is not None else " ".join(each.text for each in case.hits(*_TEXTS))
    sentence, fix = refusal(reason, words)
    shown = EvidenceLine("events", 0, f"{reason}: {words}".rstrip(": ")) if event is not None else hit
    return Diagnosis(CODE, NAME, sentence, seen(shown), fix)
