"""What annotations and labels make a runtime or a scheduler give, as demands that a policy is asked about.

Read by NVIDIA's runtime and container engines (CDI), containerd's device injector (NRI), CRI-O, KAI and Kueue.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainlaunch.formats.gpus import gives_gpu_nodes
from trainlaunch.formats.quantities import bytes_of
from trainlaunch.job.reserved import KUEUE_PRIORITY_LABEL
from trainlaunch.policy.demands import GPUS, HOST_PATH, LIFTED, PRIORITY, PRIVILEGE, SHM_SIZE, Demand, device_path

CDI = "cdi.k8s.io"  # the domain of its annotations; a vendor's is below it
# Those of NRI and KAI.
GPU_ANNOTATION = re.compile(r"(?:cdi-)?devices\.(?:noderesource\.dev|nri\.io)(?:/.*)?|gpu-(?:fraction|memory)(?:-.*)?")
# CRI-O's, whose values are nodes of the host with commas between them.
NODES_ANNOTATION = re.compile(r"(?:io\.kubernetes\.cri-o\.Devices|devices\.crio\.io)(?:/.*)?")
_KINDS: Mapping[str, re.Pattern[str]] = {
    GPUS: GPU_ANNOTATION,
    HOST_PATH: re.compile(r"(?:mounts|devices)\.(?:noderesource\.dev|nri\.io)(?:/.*)?"),
    LIFTED: re.compile(
        r"cpu-quota\.crio\.io(?:/.*)?|(?:unified-cgroup|cgroup2-mount-hierarchy-rw)\.crio\.io(?:/.*)?"
        r"|io\.kubernetes\.cri-o\.(?:UnifiedCgroup|cgroup2-mount-hierarchy-rw)(?:[./].*)?"
    ),
    SHM_SIZE: re.compile(r"(?:io\.kubernetes\.cri-o\.ShmSize|shm-size\.crio\.io)(?:/.*)?"),
    PRIVILEGE: re.compile(r"container\.apparmor\.security\.beta\.kubernetes\.io/.*|seccomp-profile\.crio\.io(?:/.*)?"),
}
_CONFINES = ("runtime/default", "localhost/")


def annotation_demands(key: str, value: str) -> Iterator[Demand]:
    """Yield what an annotation takes, of a pod, of the object that makes pods, or of a container."""
    said = f"{key}: {' '.join(value.split())}"
    for kind, pattern in _KINDS.items():
        if (pattern.fullmatch(key) or (kind == GPUS and _is_cdi(key))) and not (
            kind == PRIVILEGE and value.startswith(_CONFINES)
        ):
            taken = {SHM_SIZE: bytes_of(value) or None, PRIVILEGE: "privileged"}.get(kind, key)
            yield Demand(kind, "annotation", taken, said)
    for node in filter(None, value.split(",")) if NODES_ANNOTATION.fullmatch(key) else ():
        yield from (each._replace(said=said) for each in device_path("annotation", node.partition(":")[0]))
        if gives_gpu_nodes(node):
            yield Demand(GPUS, "annotation", key, said)


def _is_cdi(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    return bool(slash) and f".{domain}".endswith(f".{CDI}")


def label_demands(key: str, value: str) -> Iterator[Demand]:
    """Yield what a label takes, of a pod or of the object that makes pods."""
    if key == KUEUE_PRIORITY_LABEL:
        yield Demand(PRIORITY, "label", value, f"{key}: {value}")
