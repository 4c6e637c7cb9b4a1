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

from launcher.diagnose.diagnosis import Diagnosis
from launcher.diagnose.evidence import Evidence

CODE = "TL626"
NAME = "container-not-created"
_REASONS = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "ContainerCannotRun",
        "StartError",
        "UnexpectedAdmissionError",
    }
)


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match the kubelet's reasons."""
    if evidence.reason not in _REASONS and not evidence.reason.startswith("OutOf"):
        return None
    sentence, fix = _told(evidence)
    return Diagnosis(CODE, NAME, sentence, f"{evidence.reason}: {evidence.words}".rstrip(": "), fix)


def _told(evidence: Evidence) -> tuple[str, str]:
    words = evidence.words
    missing = re.search(r'(secret|configmap) "([^"]+)" not found', words, re.I)
    if missing is not None:
        kind = missing[1].lower()
        make = "create secret generic" if kind == "secret" else "create configmap"
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
    if "runAsNonRoot" in words or "non-numeric user" in words or "will run as root" in words:
        return (
            "the image wants to run as root, or as a user without a number",
            'set user to a number, as in user: "1000"',
        )
    if "/bin/sh" in words:
        return "the image has no /bin/sh, which the preflight needs", "use an image with a shell; busybox is enough"
    if evidence.reason.startswith("OutOf") or evidence.reason == "UnexpectedAdmissionError":
        return (
            "the node had no room for the pod when it arrived there",
            "start it again, or set restart.max_attempts to 2",
        )
    return "the node can't create the container", "change what the node names; it tries again by itself until then"
