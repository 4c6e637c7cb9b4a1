"""Pods, and objects that make pods: those that a policy lets pass, and what is said of the others."""

from __future__ import annotations

import copy
from typing import Any

DIGEST = f"registry.example.com/ml/trainer@sha256:{'5a' * 32}"


def gpu_pod() -> dict[str, Any]:
    """Return a pod that a policy like POLICY lets pass."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train", "namespace": "training", "labels": {"team": "vision"}},
        "spec": {
            "activeDeadlineSeconds": 3600,
            "automountServiceAccountToken": False,
            "serviceAccountName": "trainer",
            "containers": [
                {
                    "name": "train",
                    "image": DIGEST,
                    "resources": {"limits": {"nvidia.com/gpu": 8, "memory": "32Gi", "cpu": "8"}},
                    "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
                }
            ],
            "volumes": [
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            ],
        },
    }


def changed(path: str, value: Any, pod: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the pod with one value at a dotted path; None takes it out."""
    made = copy.deepcopy(pod or gpu_pod())
    node: Any = made
    *outer, last = [int(each) if each.isdigit() else each for each in path.split(".")]
    for each in outer:
        node = node[each] if isinstance(node, list) else node.setdefault(each, {})
    if value is None:
        node.pop(last)
    elif isinstance(node, list):
        node[int(last) :] = [value]
    else:
        node[last] = value
    return made


LIMITS = "spec.containers.0.resources.limits"
SHM = "spec.volumes.0.emptyDir"
MOUNT = "spec.containers.0.volumeMounts.0"
SIDECAR = {"name": "side", "image": DIGEST, "resources": {"limits": {"memory": "1Gi", "cpu": "1"}}}
UNLIMITED = {"name": "side", "image": DIGEST}
NGINX = f"nginx@{DIGEST.partition('@')[2]}"
NO_GPU = {"memory": "32Gi", "cpu": "1"}
OURS = changed("metadata.labels", {"trainlaunch.dev/job": "x", "team": "a"})
BARE = changed("metadata.labels", None, changed("spec.volumes", None, changed("spec.containers.0.volumeMounts", None)))
CLAIMS = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
EPHEMERAL = {
    "volumeClaimTemplate": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
}
ELSEWHERE = {"configMapKeyRef": {"name": "gpus", "key": "all"}}
PROJECTED = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
TWO_NAMES = {"nvidia.com/mig-1g.5gb": 8, "nvidia.com/gpu": 8, "memory": "32Gi", "cpu": "1"}
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "1", "controller": True}
OWNED = {"name": "x", "namespace": "training", "ownerReferences": [OWNER]}
WEB: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
}
WITHOUT_SHM = "the training container needs an emptyDir"
UNSIZED = "needs a sizeLimit above 0"
NOT_BELOW = "must be below the memory limit"

OF_SHM = {
    "not mounted": (changed("spec.containers.0.volumeMounts", []), {WITHOUT_SHM, UNSIZED, NOT_BELOW}),
    "mounted elsewhere": (changed(f"{MOUNT}.mountPath", "/shm"), {WITHOUT_SHM, UNSIZED, NOT_BELOW}),
    "mounted read-only": (changed(f"{MOUNT}.readOnly", True), {WITHOUT_SHM, UNSIZED, NOT_BELOW}),
    "mounted by subPath": (changed(f"{MOUNT}.subPath", "x"), {WITHOUT_SHM, UNSIZED, NOT_BELOW}),
    "another volume's name": (changed(f"{MOUNT}.name", "data"), {WITHOUT_SHM, UNSIZED, NOT_BELOW}),
    "mounted by subPathExpr": (changed(f"{MOUNT}.subPathExpr", "x"), {WITHOUT_SHM, UNSIZED, NOT_BELOW}),
    "hidden by another": (
        changed("spec.containers.0.volumeMounts.1", {"name": "data", "mountPath": "/dev//shm/"}),
        {WITHOUT_SHM, UNSIZED, NOT_BELOW},
    ),
    "GPUs of a sidecar that starts before": (
        changed(
            "spec.initContainers",
            [{**SIDECAR, "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "1Gi"}}}],
            changed(LIMITS, {"memory": "32Gi"}, changed("spec.containers.0.volumeMounts", [])),
        ),
        {WITHOUT_SHM, UNSIZED, NOT_BELOW},
    ),
    "on disk": (changed(f"{SHM}.medium", None), {WITHOUT_SHM, UNSIZED, NOT_BELOW}),
    "huge pages": (changed(f"{SHM}.medium", "HugePages"), {WITHOUT_SHM, UNSIZED, NOT_BELOW}),
    "a host path": (
        changed("spec.volumes.0", {"name": "shm", "hostPath": {"path": "/dev/shm"}}),
        {WITHOUT_SHM, UNSIZED, NOT_BELOW},
    ),
    "no size": (changed(f"{SHM}.sizeLimit", None), {UNSIZED, NOT_BELOW}),
    "size 0": (changed(f"{SHM}.sizeLimit", 0), {UNSIZED, NOT_BELOW}),
    "as large as the memory": (changed(f"{SHM}.sizeLimit", "32Gi"), {NOT_BELOW}),
    "larger than the memory": (changed(f"{LIMITS}.memory", "4G"), {NOT_BELOW}),
    "no memory limit": (changed(f"{LIMITS}.memory", None), {NOT_BELOW}),
    "hostIPC": (changed("spec.hostIPC", True), {"hostIPC"}),
    "a second container with a GPU": (
        changed("spec.containers.1", {**SIDECAR, "resources": {"limits": {"nvidia.com/gpu": 1}}}),
        {WITHOUT_SHM, UNSIZED, NOT_BELOW},
    ),
    "MIG": (
        changed("spec.containers.0.volumeMounts", [], changed(LIMITS, {"nvidia.com/mig-1g.5gb": "1", "memory": "9Gi"})),
        {WITHOUT_SHM, UNSIZED, NOT_BELOW},
    ),
    "AMD": (
        changed("spec.containers.0.volumeMounts", [], changed(LIMITS, {"amd.com/gpu": "1", "memory": "9Gi"})),
        {WITHOUT_SHM, UNSIZED, NOT_BELOW},
    ),
    "a resource claim": (
        changed(
            "spec.containers.0.resources",
            {"claims": [{"name": "gpu"}], "limits": {"memory": "9Gi"}},
            changed("spec.containers.0.volumeMounts", [], changed("spec.resourceClaims", CLAIMS)),
        ),
        {WITHOUT_SHM, UNSIZED, NOT_BELOW},
    ),
    "ours, without a GPU and without a volume": (
        changed(
            LIMITS,
            {"memory": "9Gi"},
            changed("spec.containers.0.volumeMounts", [], changed("metadata.labels", {"trainlaunch.dev/job": "x"})),
        ),
        {WITHOUT_SHM, UNSIZED, NOT_BELOW},
    ),
}
VGPU = changed("resources.limits", {"memory": "1Gi", "cpu": 1, "volcano.sh/vgpu-number": 1}, SIDECAR)
RDMA = changed("resources.limits", {"memory": "1Gi", "cpu": 1, "rdma/hca": 1}, SIDECAR)
PASSES = {
    "as it is": gpu_pod(),
    "quantities as numbers": changed(f"{SHM}.sizeLimit", 1 << 30, changed(f"{LIMITS}.memory", 32 << 30)),
    "a capability that is allowed": changed(
        "spec.containers.0.securityContext", {"capabilities": {"add": ["SYS_PTRACE"]}}
    ),
    "a variable that gives none": changed(
        "spec.containers.0.env", [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}, {"name": "A"}]
    ),
    "a variable that chooses inside": changed(
        "spec.containers.0.env", [{"name": "ROCR_VISIBLE_DEVICES", "value": "0"}]
    ),
    "a network card": changed("spec.containers.1", RDMA),
    "a slash behind": changed(f"{MOUNT}.mountPath", "/dev/shm/"),
    "a limit of the pod": changed("spec.resources", {"limits": {"memory": "32Gi"}}, changed(f"{LIMITS}.memory", None)),
    "a sidecar without GPU": changed("spec.containers.1", SIDECAR),
    "ours, without a GPU": changed(
        LIMITS, {"memory": "32Gi", "cpu": "1"}, changed("metadata.labels", {"trainlaunch.dev/job": "x", "team": "a"})
    ),
    "ours, with a sidecar": changed(
        "spec.containers.1",
        SIDECAR,
        changed(
            LIMITS,
            {"memory": "32Gi", "cpu": "1"},
            changed("metadata.labels", {"trainlaunch.dev/job": "x", "team": "a"}),
        ),
    ),
}
NONE_OF_OURS = {
    "no GPU, no label": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    },
    "no labels, no volumes": changed(LIMITS, {"memory": "1Gi"}, BARE),
    "an RDMA device": changed(LIMITS, {"rdma/hca": 1}, changed("spec.containers.0.volumeMounts", [])),
}


ASKED = [
    ("memory above", changed(f"{LIMITS}.memory", "65Gi"), "a limit of memory of at most 64Gi"),
    ("cpu above", changed(f"{LIMITS}.cpu", "8001m"), "a limit of cpu of at most 8000m"),
    ("no cpu limit", changed(f"{LIMITS}.cpu", None), "a limit of cpu"),
    ("a sidecar without limits", changed("spec.containers.1", UNLIMITED), "a limit of memory"),
    (
        "an init container without limits",
        changed("spec.initContainers", [UNLIMITED]),
        "a limit of memory",
    ),
    (
        "GPUs above",
        changed(LIMITS, {"memory": "32Gi", "cpu": 1, "nvidia.com/gpu": 9}),
        "at most 8",
    ),
    (
        "a memory limit of 0",
        changed("spec.containers.1", changed("resources.limits.memory", "0", SIDECAR)),
        "a limit of memory",
    ),
    ("a cpu limit of 0", changed(f"{LIMITS}.cpu", 0), "a limit of cpu"),
    (
        "another vendor's variable",
        changed("spec.containers.0.env", [{"name": "AMD_VISIBLE_DEVICES", "value": "0"}]),
        "vendor",
    ),
    ("a part of a GPU", changed("spec.containers.1", VGPU), "resources beside GPUs"),
    ("an ephemeral claim", changed("spec.volumes.1", {"name": "m", "ephemeral": EPHEMERAL}), "PVCs are data"),
    ("a volume of CSI", changed("spec.volumes.1", {"name": "m", "csi": {"driver": "x"}}), "PVCs are data"),
    ("claims", changed("spec.resourceClaims", CLAIMS), "resource claims"),
    ("/dev/shm above", changed(f"{SHM}.sizeLimit", "9Gi"), "at most 8Gi"),
    (
        "another registry",
        changed("spec.containers.0.image", f"docker.io/{DIGEST}"),
        "images come from",
    ),
    ("half a part", changed("spec.containers.0.image", DIGEST.replace("/ml/", "/ml-b/")), "images come from"),
    (
        "a sidecar's image",
        changed("spec.containers.1", {**SIDECAR, "image": NGINX}),
        "images come from",
    ),
    (
        "an image volume",
        changed("spec.volumes.1", {"name": "m", "image": {"reference": NGINX}}),
        "images come",
    ),
    ("a tag", changed("spec.containers.0.image", "registry.example.com/ml/trainer:1"), "pinned by a digest"),
    ("another namespace", changed("metadata.namespace", "prod"), "training runs in the namespaces training"),
    ("another account", changed("spec.serviceAccountName", "admin"), "service accounts are trainer"),
    ("the default account", changed("spec.serviceAccountName", None), "service accounts are trainer"),
    ("another priority", changed("spec.priorityClassName", "high"), "priority classes are low"),
    ("another claim", changed("spec.volumes.1.persistentVolumeClaim.claimName", "secrets"), "PVCs are data"),
    ("a token", changed("spec.automountServiceAccountToken", True), "automountServiceAccountToken"),
    ("a token in a volume", changed("spec.volumes.2", PROJECTED), "no volume may hold a serviceAccountToken"),
    ("GPUs of two names", changed(LIMITS, TWO_NAMES), "under one name"),
    (
        "GPUs of a sidecar that starts before",
        changed("spec.initContainers", [{**SIDECAR, "resources": {"limits": TWO_NAMES}}]),
        "one container of a pod may ask for GPUs",
    ),
    (
        "a variable that gives GPUs",
        changed("spec.containers.0.env", [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]),
        "NVIDIA_VISIBLE_DEVICES",
    ),
    (
        "a variable from elsewhere",
        changed("spec.containers.0.env", [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": ELSEWHERE}]),
        "NVIDIA_VISIBLE_DEVICES",
    ),
    (
        "a capability",
        changed("spec.containers.0.securityContext", {"capabilities": {"add": ["SYS_ADMIN"]}}),
        "capabilities are CAP_SYS_PTRACE",
    ),
    ("a token by default", changed("spec.automountServiceAccountToken", None), "automountServiceAccountToken"),
    ("privileged", changed("spec.containers.0.securityContext", {"privileged": True}), "neither privileged"),
    ("host network", changed("spec.hostNetwork", True), "privileged"),
    ("a host path", changed("spec.volumes.2", {"name": "h", "hostPath": {"path": "/"}}), "privileged"),
    ("no label", changed("metadata.labels", {}), "the label team with a value like"),
    ("another label", changed("metadata.labels", {"team": "Vision"}), "the label team with a value like"),
    ("no deadline", changed("spec.activeDeadlineSeconds", None), "activeDeadlineSeconds of at most 86400"),
    ("a longer deadline", changed("spec.activeDeadlineSeconds", 86401), "activeDeadlineSeconds of at most 86400"),
]


def job(**spec: Any) -> dict[str, Any]:
    """Return a Job of such pods."""
    pod = gpu_pod()
    labels = {"kueue.x-k8s.io/queue-name": "gpu"}
    template = {"metadata": pod["metadata"], "spec": {"restartPolicy": "Never", **pod["spec"]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "training", "labels": labels},
        "spec": {"activeDeadlineSeconds": 60, "template": template, **spec},
    }


def cron_job(inner: dict[str, Any]) -> dict[str, Any]:
    """Return a CronJob of such Jobs."""
    template = {"metadata": {"labels": inner["metadata"].get("labels", {})}, "spec": inner["spec"]}
    return {**inner, "kind": "CronJob", "spec": {"schedule": "0 1 * * *", "jobTemplate": template}}


def job_set(**replicated: Any) -> dict[str, Any]:
    """Return a JobSet of one such Job."""
    inner = {"name": "node", "replicas": 1, "template": {"spec": job()["spec"]}, **replicated}
    return {**job(), "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": {"replicatedJobs": [inner]}}


def pytorch_job(workers: int) -> dict[str, Any]:
    """Return a PyTorchJob of one master and some workers."""
    template = job()["spec"]["template"]
    specs = {"Master": {"replicas": 1, "template": template}, "Worker": {"replicas": workers, "template": template}}
    spec = {"runPolicy": {"activeDeadlineSeconds": 60}, "pytorchReplicaSpecs": specs}
    return {**job(), "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": spec}


def train_job(nodes: int) -> dict[str, Any]:
    """Return a TrainJob whose runtime is another object."""
    spec = {"activeDeadlineSeconds": 60, "runtimeRef": {"name": "x"}, "trainer": {"numNodes": nodes}}
    return {**job(), "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "spec": spec}


MAKERS = [
    ("a Job", job(), None),
    ("a Job of two", job(parallelism=2), None),
    ("a Job of three", job(parallelism=3), "at most 16 GPUs"),
    ("a Job without deadline", changed("spec.activeDeadlineSeconds", None, job()), "activeDeadlineSeconds"),
    ("a Job without queue", changed("metadata.labels", {}, job()), "queue-name with gpu"),
    (
        "a Job of an owner without queue",
        changed("metadata", OWNED, job()),
        "queue-name with gpu",
    ),
    ("a Job without volume", changed("spec.template.spec.volumes.0.emptyDir", {}, job()), WITHOUT_SHM),
    ("a JobSet", job_set(), None),
    ("a JobSet of two", job_set(replicas=2), None),
    ("a JobSet of three", job_set(replicas=3), "at most 16 GPUs"),
    (
        "a JobSet without volume",
        changed("spec.replicatedJobs.0.template.spec.template.spec.volumes.0.emptyDir", {}, job_set()),
        WITHOUT_SHM,
    ),
    (
        "a JobSet without deadline",
        changed("spec.replicatedJobs.0.template.spec.activeDeadlineSeconds", None, job_set()),
        "activeDeadlineSeconds",
    ),
    ("a PyTorchJob", pytorch_job(1), None),
    ("a PyTorchJob of three", pytorch_job(2), "at most 16 GPUs"),
    (
        "a PyTorchJob whose workers have no volume",
        changed("spec.pytorchReplicaSpecs.Worker.template.spec.volumes.0.emptyDir", {}, copy.deepcopy(pytorch_job(1))),
        WITHOUT_SHM,
    ),
    (
        "a PyTorchJob of workers whose number is the default",
        changed(
            "spec.pytorchReplicaSpecs.Worker.template.spec.containers.0.resources.limits",
            {"memory": "32Gi", "cpu": "1", "nvidia.com/gpu": 17},
            changed("spec.pytorchReplicaSpecs.Worker.replicas", None, copy.deepcopy(pytorch_job(1))),
        ),
        "at most 16 GPUs",
    ),
    (
        "a Job of three whose GPUs are a sidecar's",
        changed(
            "spec.template.spec.initContainers",
            [{**SIDECAR, "resources": {"limits": {"nvidia.com/gpu": 8, "memory": "1Gi", "cpu": "1"}}}],
            changed("spec.template.spec.containers.0.resources.limits", NO_GPU, job(parallelism=3)),
        ),
        "at most 16 GPUs",
    ),
    ("a TrainJob of many nodes", train_job(17), "at most 16 GPUs"),
    ("a TrainJob", train_job(2), None),
    ("a PyTorchJob without deadline", changed("spec.runPolicy", {}, pytorch_job(1)), "activeDeadlineSeconds"),
]
