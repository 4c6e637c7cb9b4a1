from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import CERTAIN, LIKELY, Case, Diagnosis, EvidenceLine, seen
from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.diagnose.base.log_facts import Hit
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import fewer, larger_shm, more_memory

CODE = "TL621"
NAME = "evicted"
_LOW = LogPattern("was low on resource", r"[Nn]ode was low on resource: [\w.-]+")
_VOLUME = LogPattern("exceed", r'Usage of EmptyDir volume "[^"]+" exceeds (?:the limit|total limit)')
_LOCAL = LogPattern("exceed", r"(?i)ephemeral local storage usage exceeds|exceed(?:s|ed) .*ephemeral.storage")
_WORD = LogPattern("Evicted", r"(?:Reason:|reason:|Warning)\s+Evicted\b")
_LIKE_SHM = re.compile(r"shm", re.I)


def diagnose(case: Case) -> Diagnosis | None:
    """Match the kubelet's own words, in the pod's status, its events, or a log of `kubectl describe`."""
    event = case.event("Evicted")
    hit = case.first(_LOW, _VOLUME, _LOCAL) or case.first(_WORD)
    if event is None and hit is None:
        return None
    words = event.words if event is not None and event.words else hit.text if hit is not None else ""
    shown = EvidenceLine("events", 0, f"pod status Evicted: {event.words}") if event is not None else hit
    volume = re.search(r'EmptyDir volume "([^"]+)" exceeds', words)
    if volume is not None:
        return _over(case, volume[1], words, shown)
    if re.search(r"ephemeral|disk|inodes", words, re.I):
        return _of_disk(shown)
    if "memory" in words:
        return Diagnosis(
            CODE,
            NAME,
            "the node evicted the pod because it ran out of memory itself, and the pod used more than it asked for",
            seen(shown),
            f"set resources.memory, which is the request as well, /dev/shm included; {more_memory(case.evidence)}",
        )
    return Diagnosis(
        CODE, NAME, "the node evicted the pod", seen(shown), "start it again; restart.max_attempts does it by itself"
    )


def _over(case: Case, name: str, words: str, shown: EvidenceLine | Hit | None) -> Diagnosis:
    evidence = case.evidence
    known = bool(evidence.shm_volume)
    if name == evidence.shm_volume or (not known and _LIKE_SHM.search(name)):
        sure = CERTAIN if known or name == "shm" else LIKELY
        return Diagnosis(
            CODE,
            NAME,
            "the node evicted the pod: /dev/shm held more than its size",
            seen(shown),
            _beyond(words, evidence),
            sure,
        )
    if name in evidence.memory_volumes:
        return Diagnosis(
            CODE,
            NAME,
            f"the node evicted the pod: its volume {name}, which is kept in memory, held more than its sizeLimit",
            seen(shown),
            "raise that volume's sizeLimit, and resources.memory as much",
        )
    return _of_disk(shown)


def _beyond(words: str, evidence: Evidence) -> str:
    """Return what to type beside the limit that the kubelet names, where nothing else told the size."""
    limit = re.search(r'exceeds (?:the|total) limit "([\w.]+)"', words)
    if limit is None or evidence.shm_size:
        return larger_shm(evidence)
    return f"raise the sizeLimit of that volume above {limit[1]}, and the memory limit as much; or {fewer(evidence)}"


def _of_disk(shown: EvidenceLine | Hit | None) -> Diagnosis:
    return Diagnosis(
        CODE,
        NAME,
        "the node evicted the pod for its disk: what is written outside of claims, logs included",
        seen(shown),
        "set resources.ephemeral_storage to what the job writes (checkpoints, caches, logs), or "
        "write to a mount of type pvc",
    )
