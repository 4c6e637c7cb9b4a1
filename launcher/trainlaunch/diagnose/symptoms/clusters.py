"""What a cluster decided: pods that were evicted, preempted, too late, or never made."""

from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import CERTAIN, LIKELY, Case, EvidenceLine, Story, Symptom, Told, of_stories, seen
from trainlaunch.diagnose.base.evidence import Evidence, RunEvent
from trainlaunch.diagnose.base.kubelet_words import NEVER_STARTED, NO_PROGRAM, refusal
from trainlaunch.diagnose.base.log_facts import Hit
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import fewer, larger_shm, more_memory

_LOW = LogPattern("The node was low", r"[Nn]ode was low on resource: [\w.-]+")
_VOLUME = LogPattern("exceed", r'Usage of EmptyDir volume "[^"]+" exceeds (?:the limit|total limit)')
_LOCAL = LogPattern("exceed", r"(?i)ephemeral local storage usage exceeds|exceed(?:s|ed) .*ephemeral.storage")
_WORD = LogPattern("Evicted", r"[Rr]eason:\s+Evicted\s*$|Warning\s+Evicted\s")
_LIKE_SHM = re.compile(r"shm", re.I)


def _evicted(case: Case) -> Told | None:
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
        return Told(
            "the node ran out of memory and evicted the pod, which used more than its request",
            seen(shown),
            f"set resources.memory, which is the request as well, /dev/shm included; {more_memory(case.evidence)}",
        )
    return Told(
        "the node evicted the pod",
        seen(shown),
        "start it again; restart.max_attempts does it by itself",
    )


def _over(case: Case, name: str, words: str, shown: EvidenceLine | Hit | None) -> Told:
    evidence = case.evidence
    known = bool(evidence.shm_volume)
    if name == evidence.shm_volume or (not known and _LIKE_SHM.search(name)):
        sure = CERTAIN if known or name == "shm" else LIKELY
        return Told(
            "the node evicted the pod: /dev/shm took more than its size",
            seen(shown),
            _beyond(words, evidence),
            sure,
        )
    if name in evidence.memory_volumes:
        return Told(
            f"the node evicted the pod: its volume {name}, which is kept in memory, took more than its sizeLimit",
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


def _of_disk(shown: EvidenceLine | Hit | None) -> Told:
    return Told(
        "the node evicted the pod for its disk: what is written outside of PVCs, logs included",
        seen(shown),
        "set resources.ephemeral_storage to what the job writes (checkpoints, caches, logs), or "
        "write to a mount of type pvc",
    )


_JOB = LogPattern("specified deadline", r"active (?:on the node )?longer than (?:the )?specified deadline")
_REASON = LogPattern("xceed", r"\breason: DeadlineExceeded\b")
_DEADLINE_EXCEEDED_SLURM = LogPattern("rror", r"CANCELLED AT \S+ DUE TO TIME LIMIT")


# Match the controllers' words, and Slurm's.
_deadline_exceeded = of_stories(
    "TL622",
    "deadline-exceeded",
    (
        Story(
            (_JOB, _REASON, _DEADLINE_EXCEEDED_SLURM),
            "the cluster ended the job because the time that it may take was over",
            "raise active_deadline: it counts all attempts, and the time in which pods wait for a node",
            reasons=("DeadlineExceeded",),
        ),
    ),
)


_PREEMPTED_REASONS = (
    "PreemptionByScheduler",
    "PreemptionByKubeScheduler",
    "Preempting",
    "Preempted",
    "WorkloadEvictedDueToPreempted",
    "EvictedDueToPreempted",
)
_PREEMPTED_SLURM = LogPattern("rror", r"CANCELLED AT \S+ DUE TO PREEMPTION")
_PREEMPTED_EVENT = LogPattern(
    "Preempt", r"\bPreempted by (?:pod |a pod |[\w-]+/)|PreemptionBy(?:Kube)?Scheduler|EvictedDueToPreempted"
)
_SPOT = LogPattern("Instance ", r"Instance (?:was|is being|has been) preempted")


# Match the scheduler's and the kubelet's words, Slurm's, and a cloud's.
_preempted = of_stories(
    "TL624",
    "preempted",
    (
        Story(
            (_PREEMPTED_SLURM, _PREEMPTED_EVENT, _SPOT),
            "the job was preempted: one of higher priority took its place",
            "start it again from its last checkpoint, with a higher kubernetes.priority_class where you may use one",
            reasons=_PREEMPTED_REASONS,
        ),
    ),
)


_NODE_LOST_SLURM = LogPattern("rror", r"DUE TO NODE FAILURE|CANCELLED AT \S+ DUE TO NODE FAIL")
_NODE_LOST_EVENT = LogPattern(
    "NodeNot", r"\bNodeNotReady\b.*\bnot ready\b|Node .* status is now: NodeNotReady|\bNodeLost\b"
)
_TAINT = LogPattern("TaintManager", r"\b(?:DeletionByTaintManager|TaintManagerEviction)\b")


_TAINTED = "the node got a taint that the pod does not tolerate, as one that stops answering does"
_AGAIN = (
    "start it again from its last checkpoint; restart.max_attempts does it by itself, and of several nodes "
    "kubernetes.kind jobset starts all again"
)
# Match the reasons that are about the node, and Slurm's.
_node_lost = of_stories(
    "TL623",
    "node-lost",
    tuple(
        Story(texts, f"the run was taken away: {why}", _AGAIN, reasons=reasons)
        for reasons, texts, why in (
            (("NodeLost",), (), "the node stopped answering"),
            (("DeletionByTaintManager", "TaintManagerEviction"), (), _TAINTED),
            (("DeletionByPodGC",), (), "the node is gone"),
            (("EvictionByEvictionAPI",), (), "the node was drained, as for an upgrade"),
            (("TerminationByKubelet",), (), "the node shut down, or needed the room"),
            (("NodeShutdown", "Terminated", "Shutdown"), (), "the node shut down"),
            (("DisruptionTarget",), (), "the node of a pod was drained or lost, or the pod was preempted"),
            ((), (_NODE_LOST_SLURM, _NODE_LOST_EVENT, _TAINT), "the node failed"),
        )
    ),
)


_IMAGE_NOT_PULLED_REASONS = (
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "RegistryUnavailable",
)
_IMAGE_NOT_PULLED_POD = LogPattern("Image", r"\b(?:ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull)\b")
_ENGINE = LogPattern(
    "rror",
    r"Error response from daemon: .*(?:pull access denied|manifest unknown|no such image"
    r"|no matching manifest|Head \"?https|Get \"?https|toomanyrequests)"
    r"|Error response from daemon: .*(?:manifest for|repository) .* not found",
)
_PULL = LogPattern("Failed to pull image", r"Failed to pull image ")
_PLATFORM = LogPattern("o matching manifest", r"no matching manifest for \S+ in the manifest list")
_DENIED = LogPattern("enied", r"pull access denied for|requested access to the resource is denied")
_LATER = "try again later"
_LOGIN = r"denied|unauthorized|authentication|authorization failed|\b40[13]\b"


def _image_not_pulled(case: Case) -> Told | None:
    """Match the reasons for which a container waits for its image, and the engines' refusals to pull."""
    event = case.event(*_IMAGE_NOT_PULLED_REASONS)
    hit = case.first(_IMAGE_NOT_PULLED_POD, _ENGINE, _PULL, _PLATFORM, _DENIED)
    if event is None and hit is None:
        return None
    if event is not None:
        reason, words = event.reason, event.words
        shown = seen(EvidenceLine("events", 0, f"{reason}: {words}".rstrip(": ")))
    else:
        words = " ".join(each.text for each in case.hits(_IMAGE_NOT_PULLED_POD, _ENGINE, _PULL, _PLATFORM, _DENIED))
        reason = next((each for each in _IMAGE_NOT_PULLED_REASONS[2:] if each in words), "")
        shown = seen(hit)
    sentence, fix = _told(reason, words)
    return Told(sentence, shown, fix, LIKELY if fix.startswith(_LATER) else CERTAIN)


def _told(reason: str, words: str) -> tuple[str, str]:
    """Return what happened, what to type."""
    if reason == "InvalidImageName":
        return "the image's name can't be one", "correct image in the job file"
    if reason == "ErrImageNeverPull":
        return "the image is not on the node, and pull_policy is never", (
            "set pull_policy to missing, or load the image on the node"
        )
    if re.search(r"not found|manifest unknown|no such image", words, re.I) and not re.search(_LOGIN, words, re.I):
        return "the registry has no image of that name and tag", (
            "correct image, or push it: what was built here is not in a registry"
        )
    if re.search(_LOGIN, words, re.I):
        return "the registry does not give the image: it is private, or does not exist", (
            "log in (`docker login`; on a cluster name the Secret in kubernetes.image_pull_secrets), and check the "
            "spelling of image"
        )
    if "no match for platform" in words or "no matching manifest" in words:
        return "the image has no variant for the node's CPU", (
            "build it for the node too: `docker buildx build --platform linux/amd64`"
        )
    if "toomanyrequests" in words:
        return "the registry limits how often it is asked", "log in to it, or use a mirror; try again later"
    sentence = "the node can't reach the registry, or not at this time"
    return sentence, f"{_LATER}; where it stays, ask whether the node may reach that registry at all"


_CONTAINER_NOT_CREATED_REASONS = (
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
_CONTAINER_NOT_CREATED_POD = LogPattern("rror", r"\b(?:CreateContainer(?:Config)?Error|RunContainerError)\b")
_MOUNT = LogPattern("nable to attach or mount volumes")
_SETUP = LogPattern("MountVolume", r"MountVolume\.\w+ failed for volume")
_ATTACH = LogPattern("rror", r"Multi-Attach error for volume")
_NAMED = LogPattern("ot found", r'(?i)(?:secret|configmap|persistentvolumeclaim|serviceaccount) "[^"]+" not found')
_ALLOCATE = LogPattern("Allocate failed due to", r"(?:^|\W)Allocate failed due to .*, which is unexpected")
_TEXTS = (_CONTAINER_NOT_CREATED_POD, _MOUNT, _SETUP, _ATTACH, _NAMED, _ALLOCATE)


def _container_not_created(case: Case) -> Told | None:
    """Match the kubelet's reasons, in the pod's status or in a log of `kubectl describe`."""
    evidence = case.evidence
    event = case.event(*_CONTAINER_NOT_CREATED_REASONS)
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
    return Told(sentence, seen(shown), fix)


SYMPTOMS = (
    Symptom("TL621", "evicted", _evicted),
    _deadline_exceeded,
    _preempted,
    _node_lost,
    Symptom("TL625", "image-not-pulled", _image_not_pulled),
    Symptom("TL626", "container-not-created", _container_not_created),
)
