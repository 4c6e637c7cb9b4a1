"""The node put the pod out, because it or the pod used too much disk or memory.

**What you see**: pod status `Failed` with reason `Evicted`, often exit code 137, and words like `The node was low on
resource: ephemeral-storage` or `Usage of EmptyDir volume "shm" exceeds the limit`.
**Why**: the kubelet measures disk (the writable layer, logs, scratch volumes) and memory, and ends pods that pass their
limit, or that use most beyond their requests while the node runs short. It is no failure of the training itself.
**Way out**: state resources.ephemeral_storage so that the pod goes where the room is; keep checkpoints on a claim.
**References**: kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction.
"""

from __future__ import annotations

import re

from launcher.diagnose.diagnosis import Diagnosis, more_memory
from launcher.diagnose.evidence import Evidence
from launcher.diagnose.shm_advice import larger_shm

CODE = "TL621"
NAME = "pod-evicted"


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match the kubelet's own word."""
    if evidence.reason != "Evicted":
        return None
    saw = f"pod status Evicted: {evidence.words}"
    volume = re.search(r'EmptyDir volume "([^"]+)" exceeds', evidence.words)
    if volume is not None and volume[1] == "shm":
        sentence = "the node evicted the pod: /dev/shm held more than its size"
        return Diagnosis(CODE, NAME, sentence, saw, larger_shm(evidence))
    if volume is not None or re.search("ephemeral|disk", evidence.words, re.I):
        sentence = "the node evicted the pod for its disk: what is written outside of claims, logs included"
        fix = (
            "set resources.ephemeral_storage to what the job writes (checkpoints, caches, logs), or write to a "
            "mount of type pvc"
        )
        return Diagnosis(CODE, NAME, sentence, saw, fix)
    if "memory" in evidence.words:
        sentence = "the node evicted the pod because it ran out of memory itself"
        return Diagnosis(CODE, NAME, sentence, saw, f"start it again elsewhere; {more_memory(evidence)}")
    return Diagnosis(
        CODE, NAME, "the node evicted the pod", saw, "start it again; restart.max_attempts does it by itself"
    )
