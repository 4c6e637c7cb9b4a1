"""Ways around a policy of a cluster, as requests: each is refused with its sentence, and what looks like it passes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from tests import plain_yaml
from tests.conftest import Runs
from tests.policy.cel import refusals
from tests.policy.pods import (
    ASKED,
    DIGEST,
    LIMITS,
    MAKERS,
    NGINX,
    NONE_OF_OURS,
    OF_SHM,
    OWNER,
    PASSES,
    SHM,
    SIDECAR,
    WEB,
    WITHOUT_SHM,
    changed,
    cron_job,
    gpu_pod,
    job,
    job_set,
    pytorch_job,
    train_job,
)
from tests.policy.test_admission import POLICY, exported

SYSTEM = "system:serviceaccount:kube-system:{}-controller"
JOB_SETS = "system:serviceaccount:jobset-system:jobset-controller-manager"
KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"
OPERATOR = "system:serviceaccount:kubeflow:training-operator"
DEADLINE = "activeDeadlineSeconds of at most 86400"
UNKNOWN = "resources beside GPUs and network cards are none"
MEMORY, CPU = "a limit of memory of at most 64Gi", "a limit of cpu of at most 8000m"
VARIABLE = "NVIDIA_VISIBLE_DEVICES, or another vendor's"
CONTAINER = "spec.containers.0"
IN_JOB_SET = "spec.replicatedJobs.0.template.spec.template"
ENDLESS = changed("spec.activeDeadlineSeconds", None)
ENDLESS_JOB = changed("spec.activeDeadlineSeconds", None, job())
NO_SHM_JOB = changed(f"spec.template.{SHM}", {}, ENDLESS_JOB)
Row = tuple[dict[str, Any], dict[str, Any], str]


def owned(obj: dict[str, Any], api: str, kind: str, **more: Any) -> dict[str, Any]:
    """Return the object with an owner."""
    owner = {**OWNER, "apiVersion": api, "kind": kind, **more}
    return changed("metadata.ownerReferences", [owner], obj)


def changed_cron_job(path: str, value: Any) -> dict[str, Any]:
    """Return a CronJob with one value of its Job changed."""
    return cron_job(changed(path, value, job()))


def resized(path: str, value: Any, old: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a pod and how a resize asks for it."""
    before = old or gpu_pod()
    return changed(path, value, before), {"part": "resize", "old": before}


def debugged(container: dict[str, Any], old: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a pod and how `kubectl debug` asks for it."""
    before = old or gpu_pod()
    added = {"name": "debugger", "image": DIGEST, **container}
    return changed("spec.ephemeralContainers", [added], before), {"part": "ephemeralcontainers", "old": before}


def asks(name: str, key: str = "limits", pod: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a pod that asks for one of an extended resource besides what it has."""
    made = pod or gpu_pod()
    had = made["spec"]["containers"][0].get("resources", {}).get(key, {})
    return changed(f"{CONTAINER}.resources.{key}", {**had, name: 1}, made)


def web(**container: Any) -> dict[str, Any]:
    """Return a pod that has no label and asks for no GPU."""
    return changed(CONTAINER, {**WEB["spec"]["containers"][0], **container}, WEB)


def prioritized(name: str, obj: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a pod or an object with a label by which Kueue gives it another priority."""
    made = obj or gpu_pod()
    return changed("metadata.labels", {**made["metadata"]["labels"], "kueue.x-k8s.io/priority-class": name}, made)


def limited(kind: str, limits: dict[str, Any], **resources: Any) -> dict[str, Any]:
    """Return a pod with another container of a kind, with such limits."""
    side = {**SIDECAR, "resources": {"limits": {"memory": "1Gi", "cpu": "1", **limits}, **resources}}
    return changed("spec.initContainers", [side]) if kind == "init" else changed("spec.containers.1", side)


def ephemeral(**spec: Any) -> dict[str, Any]:
    """Return a pod with a volume whose claim is made with it."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return changed("spec.volumes.2", {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}})


TENFOLD = {"memory": "32Gi", "cpu": 1, "nvidia.com/gpu": "1e1"}
MIRROR = {"kubernetes.io/config.mirror": "5a"}
HOST = changed("spec.volumes.2", {"name": "h", "hostPath": {"path": "/"}})
PRIVILEGED = {"securityContext": {"privileged": True}}
VOID = {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]}
ALL_GPUS = {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
BY_MOUNT = {"volumeMounts": [{"name": "data", "mountPath": "/var/run/./nvidia-container-devices/all"}]}
SYS_ADMIN = {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}
SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "secrets"}
GATED = changed("spec.schedulingGates", [{"name": "x"}], WEB)
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x", "namespace": "training"}}

BAD: dict[str, Row] = {
    "a resize of memory": (*resized(f"{LIMITS}.memory", "65Gi"), MEMORY),
    "a resize of CPUs": (*resized(f"{LIMITS}.cpu", "9"), CPU),
    "a resize of a pod from before the policy": (*resized(f"{LIMITS}.cpu", "99", changed(SHM, {})), CPU),
    "a resize to below /dev/shm": (*resized(f"{LIMITS}.memory", "8Gi"), "must be below the memory limit"),
    "a resize that takes a limit": (*resized(f"{LIMITS}.memory", None), MEMORY),
    "a resize to 0": (*resized(f"{LIMITS}.memory", "0"), MEMORY),
    "a resize of the pod's limits": (
        *resized(
            "spec.resources.limits.memory",
            "65Gi",
            changed(f"{LIMITS}.memory", None, changed("spec.resources", {"limits": {"memory": "32Gi"}})),
        ),
        MEMORY,
    ),
    "a resize of an init container": (
        *resized(
            "spec.initContainers.0.resources.limits.cpu",
            "9",
            changed("spec.initContainers", [{**SIDECAR, "name": "i"}]),
        ),
        "limit of cpu",
    ),
    "debug with a foreign image": (*debugged({"image": NGINX}), "images come from"),
    "debug with a tag": (*debugged({"image": "registry.example.com/ml/trainer:1"}), "pinned by a digest"),
    "debug that is privileged": (*debugged(PRIVILEGED), "neither privileged"),
    "debug with a capability": (*debugged(SYS_ADMIN), "capabilities are"),
    "debug with a folder of the host": (
        *debugged({"volumeMounts": [{"name": "h", "mountPath": "/h"}]}, HOST),
        "neither privileged",
    ),
    "debug with all GPUs": (*debugged(ALL_GPUS), VARIABLE),
    "debug with all GPUs in a pod that has none": (*debugged(ALL_GPUS, WEB), VARIABLE),
    "debug with all GPUs by a mount": (*debugged(BY_MOUNT), "a mount below nvidia-container-devices"),
    "debug with an unknown resource": (*debugged({"resources": {"limits": {"a.b/c": 1}}}), UNKNOWN),
    "another image of a running pod": (
        changed(f"{CONTAINER}.image", NGINX),
        {"old": gpu_pod()},
        "images come from",
    ),
    "a label taken from a running pod": (
        changed("metadata.labels", {}),
        {"old": gpu_pod()},
        "the label team",
    ),
    "a pod whose owner is forged": (owned(ENDLESS, "batch/v1", "Job"), {}, DEADLINE),
    "a pod whose owner is a ConfigMap": (owned(ENDLESS, "v1", "ConfigMap", controller=False), {}, DEADLINE),
    "a pod of a controller's name in another namespace": (
        owned(ENDLESS, "batch/v1", "Job"),
        {"user": "system:serviceaccount:training:job-controller"},
        DEADLINE,
    ),
    "a pod of the Job controller for another owner": (
        owned(ENDLESS, "example.com/v1", "Job"),
        {"user": SYSTEM.format("job")},
        DEADLINE,
    ),
    "a pod of an owner that doesn't control it": (
        owned(ENDLESS, "batch/v1", "Job", controller=False),
        {"user": SYSTEM.format("job")},
        DEADLINE,
    ),
    "a pod of a Deployment, which nothing judged": (
        owned(ENDLESS, "apps/v1", "ReplicaSet"),
        {"user": SYSTEM.format("replicaset")},
        DEADLINE,
    ),
    "a pod of a CronJob's name": (owned(ENDLESS, "batch/v1", "CronJob"), {"user": SYSTEM.format("cronjob")}, DEADLINE),
    "a Job of a CronJob from before the policy": (
        owned(ENDLESS_JOB, "batch/v1", "CronJob"),
        {"user": SYSTEM.format("cronjob")},
        DEADLINE,
    ),
    "a picture of a static pod by a user": (changed("metadata.annotations", MIRROR, ENDLESS), {}, DEADLINE),
    "a Job whose JobSet is forged": (owned(ENDLESS_JOB, "jobset.x-k8s.io/v1alpha2", "JobSet"), {}, DEADLINE),
    "a Job by hand from a CronJob": (owned(ENDLESS_JOB, "batch/v1", "CronJob"), {}, DEADLINE),
    "a Job without queue by hand from a CronJob": (
        owned(changed("metadata.labels", {}, job()), "batch/v1", "CronJob"),
        {},
        "queue-name with gpu",
    ),
    "a CronJob without deadline": (changed_cron_job("spec.activeDeadlineSeconds", None), {}, DEADLINE),
    "a CronJob without queue": (changed_cron_job("metadata.labels", {}), {}, "queue-name with gpu"),
    "a CronJob without volume": (changed_cron_job(f"spec.template.{SHM}", {}), {}, WITHOUT_SHM),
    "a CronJob of three": (changed_cron_job("spec.parallelism", 3), {}, "at most 16 GPUs"),
    "a CronJob that is changed": (
        changed_cron_job("spec.activeDeadlineSeconds", None),
        {"old": cron_job(job())},
        DEADLINE,
    ),
    "a claim made with the pod": (ephemeral(), {}, "PVCs are data"),
    "a claim of another's data": (
        ephemeral(dataSource={"kind": "PersistentVolumeClaim", "name": "secrets"}),
        {},
        "PVCs are data",
    ),
    "a claim of a snapshot": (ephemeral(dataSourceRef=SNAPSHOT), {}, "PVCs are data"),
    "a claim of a named volume": (ephemeral(volumeName="pv-secrets"), {}, "PVCs are data"),
    **{
        f"a volume of {kind}": (changed("spec.volumes.2", {"name": "m", kind: source}), {}, "PVCs are data")
        for kind, source in {"csi": {"driver": "x"}, "nfs": {"server": "x", "path": "/"}, "unheardOf": {}}.items()
    },
    "a Job that becomes three": (job(parallelism=3), {"old": job(parallelism=2)}, "at most 16 GPUs"),
    "a Job that becomes three as its image changes, by Kueue": (
        changed(f"spec.template.{CONTAINER}.image", "registry.example.com/ml/x", job(parallelism=3)),
        {"old": job(), "user": KUEUE},
        "at most 16 GPUs",
    ),
    "a suspended Job with another image": (
        changed(f"spec.template.{CONTAINER}.image", NGINX, job(suspend=True)),
        {"old": job(suspend=True)},
        "images come from",
    ),
    "a Job whose deadline is taken": (ENDLESS_JOB, {"old": job()}, DEADLINE),
    "a Job whose queue is taken": (changed("metadata.labels", {}, job()), {"old": job()}, "queue-name with gpu"),
    "a pod of another priority of Kueue": (prioritized("high"), {}, "priority classes are low"),
    "a Job of another priority of Kueue": (prioritized("high", job()), {}, "priority-class may be low"),
    "a Job that gets another priority of Kueue": (
        prioritized("high", job()),
        {"old": prioritized("low", job())},
        "priority-class may be low",
    ),
    "a TrainJob of more nodes": (train_job(18), {"old": train_job(17)}, "at most 16 GPUs"),
    "two groups of a JobSet": (
        changed(
            "spec.replicatedJobs.1", {**job_set()["spec"]["replicatedJobs"][0], "name": "b", "replicas": 2}, job_set()
        ),
        {},
        "at most 16 GPUs",
    ),
    "a PyTorchJob that is scaled": (
        {**SCALE, "spec": {"replicas": 9}},
        {"part": "scale", "old": {**SCALE, "spec": {"replicas": 1}}},
        "scale doesn't say",
    ),
    **{
        f"{name} of a pod that else has no GPU": (asks(name, pod=WEB), {}, UNKNOWN)
        for name in ("aliyun.com/gpu-mem", "tencent.com/vcuda-core", "volcano.sh/vgpu-number", "example.com/a100")
    },
    "a Job of GPUs in another spelling": (
        changed(f"spec.template.{LIMITS}", TENFOLD, job(parallelism=2)),
        {},
        "at most 8",
    ),
    "PyTorchJobs of GPUs in another spelling": (
        changed(f"spec.pytorchReplicaSpecs.Worker.template.{LIMITS}", TENFOLD, pytorch_job(1)),
        {},
        "at most 16 GPUs",
    ),
    **{
        f"{key} {value} of a container of {kind}": (limited(kind, {key: value}), {}, said)
        for kind in ("init", "sidecar")
        for key, said in (("memory", MEMORY), ("cpu", CPU))
        for value in ("0", 0, "-1", -1, "99Ti", "1e15")
    },
    **{
        f"a {kind} container without a limit of {key}": (
            changed(f"spec.{at}.resources.limits.{key}", None, limited(kind, {})),
            {},
            said,
        )
        for kind, at in (("init", "initContainers.0"), ("sidecar", "containers.1"))
        for key, said in (("memory", MEMORY), ("cpu", CPU))
    },
    "a request above, which only a server of pods compares": (
        changed(f"{IN_JOB_SET}.{CONTAINER}.resources.requests", {"cpu": "9"}, job_set()),
        {},
        CPU,
    ),
    "an unknown resource besides GPUs": (asks("nvidia.com/vgpu"), {}, UNKNOWN),
    "an unknown resource as a request": (asks("k8s.example.com/vgpu", "requests"), {}, UNKNOWN),
    "an unknown resource of an init container": (
        changed("spec.initContainers", [{**SIDECAR, "resources": {"limits": {"a.b/c": 1}}}], WEB),
        {},
        UNKNOWN,
    ),
    "GPUs as a request alone": (asks("nvidia.com/gpu", "requests", WEB), {}, WITHOUT_SHM),
    "an annotation of CDI": (
        changed("metadata.annotations", {"cdi.k8s.io/x": "nvidia.com/gpu=all"}, WEB),
        {},
        "an annotation of CDI",
    ),
    **{
        f"an annotation {key}": (changed("metadata.annotations", {key: value}, WEB), {}, "an annotation of CDI")
        for key, value in {
            "nvidia.cdi.k8s.io/x": "nvidia.com/gpu=all",
            "devices.nri.io/pod": "- path: /dev/nvidia0",
            "gpu-fraction": "0.5",
            "io.kubernetes.cri-o.Devices": "/dev/fuse,/dev/nvidia0",
            "devices.crio.io": "/dev/fuse/../nvidia0",
        }.items()
    },
    "an annotation of CDI of a pod that waits": (
        changed("metadata.annotations", {"cdi.k8s.io/x": "nvidia.com/gpu=all"}, GATED),
        {"old": GATED},
        "an annotation of CDI",
    ),
    **{
        f"{name} of a pod that asks for no GPU": (web(env=[{"name": name, "value": "0"}]), {}, VARIABLE)
        for name in ("NVIDIA_VISIBLE_DEVICES", "AMD_VISIBLE_DEVICES", "NEW_VISIBLE_DEVICES", "DOCKER_RESOURCE_GPU")
    },
    "all GPUs from a ConfigMap": (
        changed(f"{CONTAINER}.envFrom", [{"configMapRef": {"name": "x"}}]),
        {},
        "envFrom without a prefix",
    ),
    "all GPUs from a ConfigMap with a prefix": (
        changed(f"{CONTAINER}.envFrom", [{"prefix": "NVIDIA_", "configMapRef": {"name": "x"}}]),
        {},
        "envFrom without a prefix",
    ),
    "all GPUs by a mount": (web(**BY_MOUNT), {}, "a mount below nvidia-container-devices"),
    "all GPUs of the image by a runtime": (
        changed("spec.runtimeClassName", "nvidia", WEB),
        {},
        "runtimeClassName nvidia",
    ),
    "a privileged pod that asks for no GPU": (web(**PRIVILEGED), {}, "a privileged container has all GPUs"),
}

QUEUED = changed("spec.template.spec.nodeSelector", {"gpu": "a100"}, job(suspend=False))
QUEUED_BAD = changed("spec.template.spec.tolerations", [{"operator": "Exists"}], NO_SHM_JOB)
NO_SHM_POD = changed(SHM, {})
CDI_POD = changed("metadata.annotations", {"cdi.k8s.io/x": "nvidia.com/gpu=all"})
GOOD: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a resize within the ceiling": resized(f"{LIMITS}.memory", "64Gi"),
    "a resize of a pod from before the policy": resized(f"{LIMITS}.cpu", "4", NO_SHM_POD),
    "a resize to less, still above the ceiling": resized(
        f"{LIMITS}.memory", "80Gi", changed(f"{LIMITS}.memory", "99Gi")
    ),
    "a resize of CPUs where memory is above": resized(f"{LIMITS}.cpu", "4", changed(f"{LIMITS}.memory", "99Gi")),
    "a resize of CPUs where /dev/shm is too large": resized(f"{LIMITS}.cpu", "4", changed(f"{LIMITS}.memory", "4Gi")),
    "a resize of a pod that is none of ours": resized(f"{LIMITS}", {"memory": "99Gi"}, WEB),
    "debug with an allowed image": debugged({}),
    "debug of a pod from before the policy": debugged({}, HOST),
    "debug of a pod that is none of ours": debugged({"image": "busybox"}, WEB),
    "debug of a pod with an annotation from before the policy": debugged({}, CDI_POD),
    "a pod that is debugged gets a label": (
        changed("metadata.labels.team", "speech", debugged({})[0]),
        {"old": debugged({})[0]},
    ),
    "a pod from before the policy gets its label": (
        NO_SHM_POD,
        {"old": changed("metadata.labels", None, NO_SHM_POD)},
    ),
    "a pod from before the policy gets another label": (
        changed("metadata.labels.a", "b", NO_SHM_POD),
        {"old": NO_SHM_POD},
    ),
    "a status": (NO_SHM_POD, {"part": "status", "old": gpu_pod()}),
    "a pod without a name": (changed("metadata.name", None, changed("metadata.generateName", "train-")), {}),
    "a picture of a static pod": (changed("metadata.annotations", MIRROR, ENDLESS), {"user": "system:node:a"}),
    "a runtime class with GPUs": (changed("spec.runtimeClassName", "nvidia"), {}),
    "a runtime class without GPUs": (changed("spec.runtimeClassName", "nvidia", web(**VOID)), {}),
    "another runtime class": (changed("spec.runtimeClassName", "gvisor", WEB), {}),
    "variables from a ConfigMap with a prefix": (
        changed(f"{CONTAINER}.envFrom", [{"prefix": "DATA_", "configMapRef": {"name": "x"}}]),
        {},
    ),
    "variables from a ConfigMap of a pod that is none of ours": (web(envFrom=[{"configMapRef": {"name": "x"}}]), {}),
    "a claim by its name, and the pod's own volumes": (
        changed("spec.volumes.2", {"name": "own", "configMap": {"name": "x"}}),
        {},
    ),
    "nodes of the host that are no GPUs": (
        changed("metadata.annotations", {"io.kubernetes.cri-o.Devices": "/dev/fuse:/dev/fuse:rw,/dev/net/tun"}, WEB),
        {},
    ),
    "an annotation that names CDI": (changed("metadata.annotations", {"example.com/cdi.k8s.io": "x"}, WEB), {}),
    "another annotation of a pod from before the policy": (
        changed("metadata.annotations", {**CDI_POD["metadata"]["annotations"], "a": "b"}, changed(SHM, {}, CDI_POD)),
        {"old": changed(SHM, {}, CDI_POD)},
    ),
    "a priority of Kueue": (prioritized("low", job()), {}),
    "a priority of Kueue from before the policy": (
        changed("spec.suspend", True, prioritized("high", job())),
        {"old": prioritized("high", job(suspend=False)), "user": KUEUE},
    ),
    "a pod's finalizer": (changed("metadata.finalizers", [], ENDLESS), {"old": ENDLESS}),
    "a pod's toleration": (changed("spec.tolerations", [{"operator": "Exists"}], NO_SHM_POD), {"old": NO_SHM_POD}),
    "a pod of a Job": (owned(ENDLESS, "batch/v1", "Job"), {"user": SYSTEM.format("job")}),
    "a pod of a Job by the one manager": (
        owned(ENDLESS, "batch/v1", "Job"),
        {"user": "system:kube-controller-manager"},
    ),
    "a pod of a PyTorchJob": (owned(ENDLESS, "kubeflow.org/v1", "PyTorchJob"), {"user": OPERATOR}),
    "a pod of a Deployment without GPU": (owned(WEB, "apps/v1", "ReplicaSet"), {"user": SYSTEM.format("replicaset")}),
    "a Job of a JobSet": (
        owned(changed("metadata.labels", {}, ENDLESS_JOB), "jobset.x-k8s.io/v1alpha2", "JobSet"),
        {"user": JOB_SETS},
    ),
    "a Job of a CronJob": (owned(job(), "batch/v1", "CronJob"), {"user": SYSTEM.format("cronjob")}),
    "a Job by hand from a CronJob with a deadline": (owned(job(), "batch/v1", "CronJob"), {}),
    "a CronJob with a deadline": (cron_job(job()), {}),
    "a JobSet with a forged owner and a deadline": (owned(job_set(), "v1", "ConfigMap"), {}),
    "Kueue suspends": (job(suspend=True), {"old": job(suspend=False), "user": KUEUE}),
    "Kueue lets start": (QUEUED, {"old": job(suspend=True), "user": KUEUE}),
    "Kueue suspends one from before the policy": (
        changed("spec.suspend", True, NO_SHM_JOB),
        {"old": NO_SHM_JOB, "user": KUEUE},
    ),
    "Kueue lets one from before the policy start": (
        QUEUED_BAD,
        {"old": changed("spec.suspend", True, NO_SHM_JOB), "user": KUEUE},
    ),
    "a label of Kueue in a template": (
        changed("spec.template.metadata.labels.kueue", "x", NO_SHM_JOB),
        {"old": NO_SHM_JOB, "user": KUEUE},
    ),
    "Kueue gives the parallelism back that it took": (
        job(parallelism=5, suspend=True),
        {"old": job(parallelism=4, suspend=False), "user": KUEUE},
    ),
    "a CronJob from before the policy is suspended": (
        changed("spec.suspend", True, changed_cron_job(f"spec.template.{SHM}", {})),
        {"old": changed_cron_job(f"spec.template.{SHM}", {})},
    ),
    "a TrainJob of many nodes that becomes fewer": (train_job(17), {"old": train_job(18)}),
    "a runtime whose image a TrainJob gives": (
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainingRuntime",
            "metadata": {"name": "x", "namespace": "training"},
            "spec": {"template": {"spec": changed(f"{IN_JOB_SET}.{CONTAINER}.image", None, job_set())["spec"]}},
        },
        {},
    ),
    "a runtime without groups": (
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainingRuntime",
            "metadata": {"name": "x"},
            "spec": {"template": {"spec": {}}},
        },
        {},
    ),
    "a suspend by hand": (changed("spec.suspend", True, NO_SHM_JOB), {"old": NO_SHM_JOB}),
    "a Job of many that becomes fewer": (job(parallelism=4), {"old": job(parallelism=5)}),
    "a Job that becomes two": (job(parallelism=2), {"old": job(parallelism=1)}),
    "a PyTorchJob that is scaled down": (
        {**SCALE, "spec": {"replicas": 1}},
        {"part": "scale", "old": {**SCALE, "spec": {"replicas": 2}}},
    ),
    "a PyTorchJob that becomes two": (pytorch_job(1), {"old": pytorch_job(0)}),
    **{
        f"{name} is none": (asks(name), {})
        for name in ("rdma/hca", "vpc.amazonaws.com/efa", "hugepages-2Mi", "openshift.io/sriov", "smarter-devices/fuse")
    },
}


@pytest.mark.parametrize("name", BAD)
def test_a_way_around_is_refused(tmp_path: Path, name: str) -> None:
    """With the sentence that says what isn't allowed; the bypassed rule is named, not another."""
    submitted, request, said = BAD[name]
    found = refusals(exported(tmp_path, POLICY), submitted, **request)
    assert any(said in each for each in found), found


@pytest.mark.parametrize("name", GOOD)
def test_what_looks_like_a_way_around_passes(tmp_path: Path, name: str) -> None:
    """Controllers' own requests, changes within the policy, and what was there before it."""
    submitted, request = GOOD[name]
    assert refusals(exported(tmp_path, POLICY), submitted, **request) == []


def test_a_controller_elsewhere_is_trusted_where_it_is_named(trainlaunch: Runs, tmp_path: Path) -> None:
    """Operators and Kueue are installed in namespaces of any name; as owner of another kind one isn't trusted."""
    exported(tmp_path, POLICY)
    user = "system:serviceaccount:ml:training-operator"
    pod, other = (
        owned(ENDLESS, api, kind) for api, kind in (("kubeflow.org/v1", "PyTorchJob"), ("apps/v1", "DaemonSet"))
    )
    restored = {"old": job(parallelism=4), "user": user}
    for options, refused in (([], True), (["--controller", user], False)):
        done = trainlaunch("policy", "export", "--enforce", *options, cwd=tmp_path)
        documents = list(plain_yaml.load_all(done.stdout))
        assert bool(refusals(documents, pod, user=user)) is refused
        assert bool(refusals(documents, job(parallelism=5), **restored)) is refused
        assert refusals(documents, other, user=user)


def test_nothing_is_asked_of_what_is_deleted(tmp_path: Path) -> None:
    """There, and when a pod is bound to a node or a shell is opened in it, is no object to judge."""
    rules = [
        rule
        for each in exported(tmp_path, POLICY)
        for rule in each["spec"].get("matchConstraints", {}).get("resourceRules", ())
    ]
    assert {name for rule in rules for name in rule["operations"]} == {"CREATE", "UPDATE"}
    parts = {name.partition("/")[2] for rule in rules for name in rule["resources"]}
    assert parts == {"", "ephemeralcontainers", "resize", "scale"}


def test_no_validation_reads_a_typed_object(tmp_path: Path) -> None:
    """A server warns of a field that one matched kind lacks; behind `dyn` it checks none.

    It compiles each validation once for each kind, with `object` as that kind's schema has it.
    """
    for policy in (None, POLICY):
        for document in exported(tmp_path, policy):
            for each in document["spec"].get("validations", ()):
                assert not re.search(r"(?<![\w.\"])(?:object|oldObject)\b", each["expression"]), each["expression"]


@pytest.mark.parametrize(
    ("path", "refused"),
    [("/data", False), ("/data/a", False), ("/database", True), ("/data/../etc", True), ("/", True)],
)
def test_folders_of_the_host_are_those_of_the_policy(tmp_path: Path, path: str, refused: bool) -> None:
    """By whole parts, as in a patch; a container of `kubectl debug` that mounts one is asked too."""
    documents = exported(tmp_path, {"allowed_host_paths": ["/data", "shared"]})
    pod = changed("spec.volumes.2", {"name": "h", "hostPath": {"path": path}})
    assert bool(refusals(documents, pod)) is refused
    submitted, request = debugged({"volumeMounts": [{"name": "h", "mountPath": "/h"}]}, pod)
    assert bool(refusals(documents, submitted, **request)) is refused
    assert refusals(documents, *debugged({}, pod)[:1], **debugged({}, pod)[1]) == []
    below = changed("spec.volumes.2.hostPath.path", str(tmp_path / "shared/a"), pod)
    assert refusals(documents, below) == []


def test_a_resource_that_a_policy_lists_may_be_asked_for(tmp_path: Path) -> None:
    """Under a ceiling of GPUs too, as the launcher lets a job ask for it."""
    documents = exported(tmp_path, {"max": {"gpus": 8}, "allowed_extended": ["example.com/fpga"]})
    assert refusals(documents, asks("example.com/fpga")) == []
    assert refusals(documents, asks("example.com/fpga2"))


def refused_by_itself(pod: dict[str, Any]) -> list[str]:
    """Return what an API server has against a pod or template, besides its schema."""
    spec = pod["spec"]
    containers = [*spec["containers"], *spec.get("initContainers", ())]
    volumes = [each["name"] for each in spec.get("volumes", ())]
    claims = {each["name"] for each in spec.get("resourceClaims", ())}
    names = [each["name"] for each in containers]
    said = ["a name twice"] if len({*names}) < len(names) or len({*volumes}) < len(volumes) else []
    for each in containers:
        mounts, resources = each.get("volumeMounts", ()), each.get("resources", {})
        paths = [mount["mountPath"] for mount in mounts]
        said += [f"no volume {mount['name']}" for mount in mounts if mount["name"] not in volumes]
        said += ["a path twice"] if len({*paths}) < len(paths) else []
        said += [f"no claim {claim['name']}" for claim in resources.get("claims", ()) if claim["name"] not in claims]
        limits, requests = resources.get("limits", {}), resources.get("requests", {})
        said += [f"{key} without limit" for key in requests if "/" in key and limits.get(key) != requests[key]]
        said += [f"valueFrom of {env['name']}" for env in each.get("env", ()) if env.get("valueFrom") == {}]
    accounts = {None, "default", "trainer", "admin"}  # `plain` gives a real server the first two
    return said + ([] if spec.get("serviceAccountName") in accounts else ["no account"])


def _templates(obj: Any) -> list[dict[str, Any]]:
    """Return the pods in an object, wherever they stand."""
    if isinstance(obj, list):
        return [pod for each in obj for pod in _templates(each)]
    if not isinstance(obj, dict):
        return []
    if "containers" in obj.get("spec", {}):
        return [obj]
    return _templates(list(obj.values()))


def test_a_server_refuses_no_pod_of_these_by_itself() -> None:
    """Else it never asks the policy, and the tests on a real server show nothing."""
    pods = {**{key: each[0] for key, each in OF_SHM.items()}, **PASSES, **NONE_OF_OURS}
    pods |= {name: pod for name, pod, _ in ASKED}
    for name, pod in pods.items():
        kubernetes_validate.validate(pod, "1.34", strict=True)
        assert (name, refused_by_itself(pod)) == (name, [])
    for name, made, _ in MAKERS:
        if made["kind"] == "Job":
            kubernetes_validate.validate(made, "1.34", strict=True)
        assert (name, [said for pod in _templates(made) for said in refused_by_itself(pod)]) == (name, [])
