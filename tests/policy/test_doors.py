"""No ceiling and no list of a policy has a back door: what a job or its patch takes by another way is refused too."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from launcher.diagnostics import Diagnostic
from launcher.errors import JobFileRejected
from launcher.render import render
from launcher.verify import verified
from tests.jobs import plan_with

MEMORY, CPUS, GPUS, SHM = "max: {memory: 16Gi}", "max: {cpus: 8}", "max: {gpus: 1}", "max: {shm_size: 1Gi}"
HOST, CLAIMS = "allowed_host_paths: [/data, .]", "allowed_claims: [data]"
CONFINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
POD = "/spec/template/spec"
TRAIN = f"{POD}/containers/0"


class Door(NamedTuple):
    """One way past a policy: its name, the policy, the target, the job's fields, and what the refusal must say."""

    name: str
    policy: str
    target: str
    fields: dict[str, Any]
    said: tuple[str, ...] = ()
    is_free: bool = True  # without the policy


def flags(*words: str) -> dict[str, Any]:
    """Return a patch of docker run."""
    return {"patches": {"docker": {"extra_args": list(words)}}}


def compose(**document: Any) -> dict[str, Any]:
    """Return a patch of a Compose file."""
    return {"patches": {"compose": document}}


def own(**service: Any) -> dict[str, Any]:
    """Return a patch of the job's own service."""
    return compose(services={"digits": service})


def side(**service: Any) -> dict[str, Any]:
    """Return a patch that adds a service within all ceilings, but for what is stated."""
    stated = {"image": "a:1", "mem_limit": "1g", "cpus": "1", **service}
    return compose(services={"side": {key: each for key, each in stated.items() if each is not None}})


def added(*operations: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a JSON Patch that adds values at paths."""
    return {
        "patches": {"kubernetes": [{"op": "add", "path": path, "value": value} for path, value in operations]}
    } | fields


def container(where: str = "containers", volumes: tuple[Any, ...] = (), **more: Any) -> dict[str, Any]:
    """Return a patch that adds a container within all ceilings, but for what is stated."""
    limits = {"memory": "1Gi", "cpu": "1"} | more.pop("limits", {})
    resources = {"limits": {key: each for key, each in limits.items() if each is not None}} | more.pop("resources", {})
    whole = {"name": "side", "image": "a:1", "resources": resources, "securityContext": CONFINED, **more}
    place = (f"{POD}/containers/-", whole) if where == "containers" else (f"{POD}/{where}", [whole])
    return added(*((f"{POD}/volumes/-", each) for each in volumes), place)


def volume(**source: Any) -> dict[str, Any]:
    """Return a patch that adds a volume."""
    return added((f"{POD}/volumes/-", {"name": "v", **source}))


def extended(**names: int) -> dict[str, Any]:
    """Return resources of other names."""
    return {"resources": {"cpus": 4, "memory": "4Gi", "extended": names}}


def code(source: str) -> dict[str, Any]:
    """Return a mount of code, which a rendering for a cluster takes along."""
    return {"mounts": [{"type": "code", "source": source, "target": "/workspace"}]}


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
EPHEMERAL, CLONE, FROM = (
    {"volumeClaimTemplate": {"spec": {**CLAIM, **source}}}
    for source in (
        {},
        {"dataSource": {"kind": "PersistentVolumeClaim", "name": "theirs"}},
        {"dataSourceRef": {"kind": "VolumeSnapshot", "name": "theirs"}},
    )
)
FREE_POD = {"kubernetes": {"pod_security": "privileged"}}
PRIVILEGED = "allowed_pod_security: [restricted, baseline, privileged]"
MEMORY_AT_SHM = {"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "9Gi"}}
AT_SHM = [{"name": "m", "mountPath": "/dev/shm"}]

DOORS = (
    # Ways by which a path of the host reaches a container.
    Door("secret-file-socket-docker", HOST, "docker", {"secrets": {"X": {"file": "/var/run/docker.sock"}}}, ("/data",)),
    Door("secret-file-as-file", HOST, "docker", {"secrets": {"X": {"file": "/etc/shadow", "as": "file"}}}),
    Door("secret-file-compose", HOST, "compose", {"secrets": {"X": {"file": "/var/run/docker.sock"}}}),
    Door("secret-file-above", HOST, "docker", {"secrets": {"X": {"file": "../../../../etc/shadow"}}}),
    Door("code-from-elsewhere-kubernetes", HOST, "kubernetes", code("../../outside"), ("outside", "/data")),
    Door("code-from-elsewhere-docker", HOST, "docker", code("../../outside")),
    Door("volume-with-equals", HOST, "docker", flags("-v", "/a=b/../etc:/in")),
    Door("mount-upper-case", HOST, "docker", flags("--mount", "type=BIND,src=/etc,dst=/in")),
    Door("mount-mixed-case", HOST, "docker", flags("--mount", "Type=Bind,Source=/etc,Target=/in")),
    Door("mount-volume-with-path", HOST, "docker", flags("--mount", "type=volume,src=/etc,dst=/in")),
    Door("api-socket", f"{HOST}\n{PRIVILEGED}", "docker", flags("--use-api-socket")),
    Door("device-node", HOST, "docker", flags("--device", "/dev/sda")),
    Door("compose-home", HOST, "compose", side(volumes=[{"type": "bind", "source": "~/.ssh", "target": "/in"}])),
    Door("compose-dots", HOST, "compose", side(volumes=[{"type": "bind", "source": "../../../etc", "target": "/in"}])),
    Door("compose-watch", HOST, "compose",
         side(develop={"watch": [{"path": "/etc", "action": "sync", "target": "/in"}]})),
    Door("compose-config-file", HOST, "compose", compose(configs={"c": {"file": "/etc/shadow"}})),
    Door("compose-secret-dots", HOST, "compose", compose(secrets={"c": {"file": "/data/../etc/shadow"}})),
    Door("compose-build-context", HOST, "compose",
         side(build={"context": "./here", "additional_contexts": {"x": "/etc"}})),
    Door("compose-build-list", HOST, "compose", side(build={"context": "./here", "additional_contexts": ["x=/etc"]})),
    Door("compose-build-ssh", HOST, "compose", side(build={"context": "./here", "ssh": ["default=/root/.ssh/id"]})),
    Door("compose-build-cache", HOST, "compose",
         side(build={"context": "./here", "cache_from": ["type=local,src=/etc"]})),
    Door("compose-dockerfile", HOST, "compose", side(build={"context": "./here", "dockerfile": "/etc/shadow"})),
    Door("compose-credentials", HOST, "compose", side(credential_spec={"file": "/etc/shadow"})),
    Door("compose-driver-opts", HOST, "compose",
         compose(volumes={"v": {"driver_opts": {"o": "bind", "device": "/etc"}}})),
    Door("compose-device-long", HOST, "compose", side(devices=[{"source": "/dev/sda", "target": "/dev/x"}])),
    Door("host-path-volume", f"{HOST}\n{PRIVILEGED}", "kubernetes", volume(hostPath={"path": "/database"}) | FREE_POD),
    # Images by another way.
    Door("mount-of-image", "allowed_registries: [registry.example.com]", "docker",
         flags("--mount", "type=image,src=x,dst=/in") | {"image": "registry.example.com/a:1"}),
    Door("mount-of-image-unpinned", "require_digest: true", "docker",
         flags("--mount", "type=Image,src=x,dst=/in") | {"image": f"a@sha256:{'0' * 64}"}),
    # Memory: 0, below 0, none, and what takes a limit away.
    Door("memory-swap-unlimited", MEMORY, "docker", flags("--memory-swap", "-1"), ("16Gi", "-1")),
    Door("memory-swap-above", MEMORY, "docker", flags("--memory-swap=64g"), ("16Gi", "64g")),
    Door("oom-kill-disable", MEMORY, "docker", flags("--oom-kill-disable"), ("16Gi",)),
    Door("cgroup-parent", MEMORY, "docker", flags("--cgroup-parent", "/free"), ("16Gi", "/free")),
    Door("cgroup-parent-cpus", CPUS, "docker", flags("--cgroup-parent", "/free"), ("max.cpus is 8",)),
    Door("own-memswap", MEMORY, "compose", own(memswap_limit=-1), ("16Gi", "-1")),
    Door("own-memswap-above", MEMORY, "compose", own(memswap_limit="64g"), ("16Gi", "64g")),
    Door("own-oom-kill-disable", MEMORY, "compose", own(oom_kill_disable=True), ("16Gi",)),
    Door("own-cgroup-parent", MEMORY, "compose", own(cgroup_parent="/free"), ("16Gi", "/free")),
    Door("service-memory-zero", MEMORY, "compose", side(mem_limit="0"), ("16Gi", "0")),
    Door("service-memory-null", MEMORY, "compose", side(mem_limit=None), ("16Gi", "no limit")),
    Door("service-deploy-memory-above", MEMORY, "compose",
         side(mem_limit=None, deploy={"resources": {"limits": {"memory": "64g"}}}), ("16Gi", "64g")),
    Door("service-deploy-memory-zero", MEMORY, "compose",
         side(mem_limit=None, deploy={"resources": {"limits": {"memory": 0}}}), ("16Gi", "0")),
    Door("service-deploy-over-own", MEMORY, "compose",
         side(deploy={"resources": {"limits": {"memory": "64g"}}}), ("16Gi", "64g")),
    Door("service-memswap", MEMORY, "compose", side(memswap_limit=-1), ("16Gi", "-1")),
    Door("service-oom-kill-disable", MEMORY, "compose", side(oom_kill_disable=True), ("16Gi",)),
    Door("service-cgroup-parent", CPUS, "compose", side(cgroup_parent="/free"), ("max.cpus 8", "/free")),
    Door("service-scale", MEMORY, "compose", side(scale=500), ("16Gi", "500 × 1g")),
    Door("service-replicas", MEMORY, "compose", side(deploy={"replicas": 500}), ("16Gi", "500 × 1g")),
    Door("service-replicas-cpus", CPUS, "compose", side(deploy={"replicas": "500"}), ("max.cpus 8", "500 × 1")),
    Door("init-memory-zero", MEMORY, "kubernetes",
         container("initContainers", limits={"memory": "0"}), ("16Gi", "0"), False),
    Door("init-memory-above", MEMORY, "kubernetes",
         container("initContainers", limits={"memory": "64Gi"}), ("16Gi", "64Gi")),
    Door("sidecar-memory-zero", MEMORY, "kubernetes", container(limits={"memory": 0}), ("16Gi", "0"), False),
    # CPUs of everything that is added.
    Door("service-no-cpus", CPUS, "compose", side(cpus=None), ("max.cpus 8", "no limit")),
    Door("service-cpus-zero", CPUS, "compose", side(cpus="0"), ("max.cpus 8", "0")),
    Door("service-cpus-above", CPUS, "compose", side(cpus="64"), ("max.cpus 8", "64")),
    Door("service-quota-unlimited", CPUS, "compose", side(cpus=None, cpu_quota=-1), ("max.cpus 8", "-1")),
    Door("service-quota-above", CPUS, "compose", side(cpus=None, cpu_quota=6400000), ("max.cpus 8", "6400000")),
    Door("service-deploy-cpus", CPUS, "compose",
         side(cpus=None, deploy={"resources": {"limits": {"cpus": "64"}}}), ("64",)),
    Door("service-shares-only", CPUS, "compose", side(cpus=None, cpu_shares=2), ("max.cpus 8", "no limit")),
    Door("init-cpus-above", CPUS, "kubernetes",
         container("initContainers", limits={"cpu": "64"}), ("max.cpus 8", "64")),
    Door("init-no-cpus", CPUS, "kubernetes",
         container("initContainers", limits={"cpu": None}), ("max.cpus 8", "no limit")),
    Door("sidecar-cpu-request-alone", CPUS, "kubernetes",
         container(limits={"cpu": None}, resources={"limits": {"memory": "1Gi"}, "requests": {"cpu": "64"}}), ("64",)),
    Door("sidecar-cpus-zero", CPUS, "kubernetes", container(limits={"cpu": 0}), ("max.cpus 8", "0")),
    Door("job-without-cpu-limit", CPUS, "kubernetes", {"kubernetes": {"cpu_limit": False}}, ("max.cpus is 8",)),
    # /dev/shm of what is added.
    Door("sidecar-shm", SHM, "kubernetes", container(volumes=(MEMORY_AT_SHM,), volumeMounts=AT_SHM), ("1Gi", "9Gi")),
    Door("service-tmpfs-shm", SHM, "compose", side(tmpfs=["/dev/shm:size=9g"]), ("1Gi", "9g")),
    Door("service-tmpfs-shm-unsized", SHM, "compose", side(tmpfs="/dev/shm"), ("1Gi",)),
    Door("service-tmpfs-shm-long", SHM, "compose",
         side(volumes=[{"type": "tmpfs", "target": "/dev/shm", "tmpfs": {"size": "9g"}}]), ("1Gi", "9g")),
    # Accelerators under names that nobody listed.
    Door("vgpu", GPUS, "kubernetes", extended(**{"volcano.sh/vgpu-number": 1}), ("volcano.sh/vgpu-number",)),
    Door("gpu-mem", GPUS, "kubernetes", extended(**{"aliyun.com/gpu-mem": 16}), ("aliyun.com/gpu-mem 16",)),
    Door("vcuda", GPUS, "kubernetes", extended(**{"tencent.com/vcuda-core": 100}), ("allowed_extended",)),
    Door("gaudi", GPUS, "kubernetes", extended(**{"habana.ai/gaudi": 8})),
    Door("neuron", GPUS, "kubernetes", extended(**{"aws.amazon.com/neuron": 8})),
    Door("tpu", GPUS, "kubernetes", extended(**{"google.com/tpu": 8})),
    Door("unheard-of", "max: {total_gpus: 1}", "kubernetes", extended(**{"example.com/new-thing": 1})),
    Door("list-has-another", "allowed_extended: [example.com/fpga]", "kubernetes", extended(**{"example.com/new": 1})),
    Door("sidecar-vgpu", GPUS, "kubernetes", container(limits={"volcano.sh/vgpu-number": 1}), ("vgpu",)),
    Door("init-vgpu", GPUS, "kubernetes", container("initContainers", limits={"volcano.sh/vgpu-number": 1})),
    Door("sidecar-mig", GPUS, "kubernetes", container(limits={"nvidia.com/mig-1g.10gb": 1})),
    Door("amd-variable", GPUS, "docker", {"env": {"AMD_VISIBLE_DEVICES": "all"}}, ("AMD_VISIBLE_DEVICES all", "is 1")),
    Door("habana-variable", GPUS, "docker", {"env": {"HABANA_VISIBLE_DEVICES": "0"}}),
    Door("amd-variable-secret", GPUS, "docker", {"secrets": {"AMD_VISIBLE_DEVICES": {"env": "ANY"}}}),
    Door("amd-variable-flag", GPUS, "docker", flags("-e", "AMD_VISIBLE_DEVICES=all")),
    Door("amd-variable-container", GPUS, "kubernetes", container(env=[{"name": "AMD_VISIBLE_DEVICES", "value": "0"}])),
    Door("variables-from-elsewhere", GPUS, "kubernetes", container(envFrom=[{"configMapRef": {"name": "all"}}])),
    Door("variables-from-elsewhere-prefix", GPUS, "kubernetes",
         added((f"{TRAIN}/envFrom", [{"prefix": "NVIDIA_", "secretRef": {"name": "all"}}]))),
    Door("cdi-annotation", GPUS, "kubernetes",
         {"annotations": {"cdi.k8s.io/x": "nvidia.com/gpu=all"}}, ("cdi.k8s.io/x",)),
    Door("cdi-annotation-kubernetes", GPUS, "kubernetes",
         {"kubernetes": {"annotations": {"cdi.k8s.io/x": "nvidia.com/gpu=all"}}}),
    Door("cdi-annotation-patch", GPUS, "kubernetes",
         added(("/spec/template/metadata/annotations/cdi.k8s.io~1x", "nvidia.com/gpu=all"))),
    Door("cdi-annotation-list", GPUS, "compose", side(annotations=["cdi.k8s.io/x=nvidia.com/gpu=all"])),
    Door("gpu-by-mount-flag", GPUS, "docker", flags("-v", "/dev/null:/var/run/nvidia-container-devices/all")),
    Door("gpu-by-mount", GPUS, "docker",
         {"mounts": [{"type": "bind", "source": "/dev/null", "target": "/var/run/nvidia-container-devices/0"}]}),
    Door("gpu-by-mount-service", GPUS, "compose",
         side(volumes=[{"type": "bind", "source": "/dev/null", "target": "/run/nvidia-container-devices/all"}])),
    Door("runtime-class", GPUS, "kubernetes", {"kubernetes": {"runtime_class": "nvidia"}}, ("runtime_class nvidia",)),
    Door("runtime-class-patch", GPUS, "kubernetes", added((f"{POD}/runtimeClassName", "nvidia"))),
    Door("kfd", GPUS, "docker", flags("--device=/dev/kfd")),
    Door("resource-claims", GPUS, "kubernetes",
         added((f"{POD}/resourceClaims", [{"name": "g", "resourceClaimTemplateName": "g"}]))),
    # Storage of the cluster without a claim's name.
    Door("ephemeral", CLAIMS, "kubernetes", volume(ephemeral=EPHEMERAL), ("data", "ephemeral")),
    Door("ephemeral-clone", CLAIMS, "kubernetes", volume(ephemeral=CLONE)),
    Door("ephemeral-snapshot", CLAIMS, "kubernetes", volume(ephemeral=FROM)),
    Door("csi", CLAIMS, "kubernetes", volume(csi={"driver": "nfs.csi.k8s.io"})),
    Door("nfs", f"{CLAIMS}\n{PRIVILEGED}", "kubernetes", volume(nfs={"server": "x", "path": "/"}) | FREE_POD),
    Door("claim-of-another", CLAIMS, "kubernetes", volume(persistentVolumeClaim={"claimName": "theirs"}), ("theirs",)),
)  # fmt: skip

NEIGHBOURS = (
    Door("init-within", f"{MEMORY[:-1]}, cpus: 8}}", "kubernetes", container("initContainers")),
    Door("init-at-the-ceiling", MEMORY, "kubernetes", container("initContainers", limits={"memory": "16Gi"})),
    Door("sidecar-smaller", f"{MEMORY[:-1]}, cpus: 8}}", "kubernetes", container()),
    Door("sidecar-in-thousandths", CPUS, "kubernetes", container(limits={"cpu": "8000m"})),
    Door("sidecar-no-cpus-other-ceiling", MEMORY, "kubernetes", container(limits={"cpu": None})),
    Door("service-within", f"{MEMORY[:-1]}, cpus: 8}}", "compose", side()),
    Door("service-deploy-within", MEMORY, "compose",
         side(mem_limit=None, deploy={"resources": {"limits": {"memory": "16g"}}})),
    Door("service-quota-within", CPUS, "compose", side(cpus=None, cpu_quota=800000)),
    Door("service-quota-of-period", CPUS, "compose", side(cpus=None, cpu_quota=400000, cpu_period=50000)),
    Door("service-one-replica", MEMORY, "compose", side(deploy={"replicas": 1})),
    Door("service-replicas-within", MEMORY, "compose", side(scale=16)),
    Door("service-cpuset", CPUS, "compose", side(cpuset="0-3", cpu_shares=2)),
    Door("swap-within", MEMORY, "docker", flags("--memory-swap", "16g")),
    Door("swap-of-the-default", MEMORY, "docker", flags("--memory-swap", "0")),
    Door("reservation", MEMORY, "docker", flags("--memory-reservation", "1g", "--memory-swappiness", "0")),
    Door("oom-kill-enabled", MEMORY, "docker", flags("--oom-kill-disable=false")),
    Door("cpuset", CPUS, "docker", flags("--cpuset-cpus", "0-3", "--cpu-shares", "2")),
    Door("cgroup-parent-without-ceiling", GPUS, "docker", flags("--cgroup-parent", "/team")),
    Door("rdma", GPUS, "kubernetes", extended(**{"rdma/hca": 8, "vpc.amazonaws.com/efa": 4})),
    Door("sidecar-hugepages", GPUS, "kubernetes",
         container(resources={"limits": {"memory": "1Gi", "hugepages-2Mi": "64Mi"},
             "requests": {"hugepages-2Mi": "64Mi"}})),
    Door("fpga-that-is-listed", f"{GPUS}\nallowed_extended: [example.com/fpga]", "kubernetes",
         extended(**{"example.com/fpga": 9})),
    Door("vgpu-without-ceiling", MEMORY, "kubernetes", extended(**{"volcano.sh/vgpu-number": 8})),
    Door("vgpu-that-is-counted", GPUS, "kubernetes",
         {"resources": {"cpus": 4, "memory": "4Gi", "gpus": 1, "gpu_resource": "volcano.sh/vgpu-number"}}),
    Door("mig-that-is-counted", GPUS, "kubernetes", extended(**{"nvidia.com/mig-1g.10gb": 1})),
    Door("no-gpus", GPUS, "docker", {"env": {"NVIDIA_VISIBLE_DEVICES": "none", "AMD_VISIBLE_DEVICES": "void"}}),
    Door("chosen-inside", GPUS, "docker", {"env": {"ROCR_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "0"}}),
    Door("container-without-gpus", GPUS, "kubernetes",
         container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}])),
    Door("variables-with-a-prefix", GPUS, "kubernetes",
         container(envFrom=[{"prefix": "S3_", "secretRef": {"name": "s3"}}])),
    Door("runtime-class-with-gpus", GPUS, "kubernetes",
         {"kubernetes": {"runtime_class": "nvidia"}, "resources": {"cpus": 4, "memory": "4Gi", "gpus": 1}}),
    Door("runtime-class-of-a-sandbox", GPUS, "kubernetes", {"kubernetes": {"runtime_class": "gvisor"}}),
    Door("other-annotation", GPUS, "kubernetes", {"annotations": {"example.com/cdi.k8s.io": "x"}}),
    Door("empty-dir", CLAIMS, "kubernetes", volume(emptyDir={})),
    Door("config-map", CLAIMS, "kubernetes", volume(configMap={"name": "x"})),
    Door("claim-that-is-listed", CLAIMS, "kubernetes", volume(persistentVolumeClaim={"claimName": "data"})),
    Door("ephemeral-without-list", HOST, "kubernetes", volume(ephemeral=EPHEMERAL)),
    Door("bind-below", HOST, "docker", flags("-v", "/data/set:/in")),
    Door("bind-with-dots", HOST, "docker", flags("--mount", "type=bind,src=/etc/../data/x,dst=/in")),
    Door("bind-of-the-repository", HOST, "compose",
         side(volumes=[{"type": "bind", "source": "./set", "target": "/in"}])),
    Door("named-volume", HOST, "docker", flags("-v", "data:/in", "-v", "/scratch")),
    Door("service-build-here", HOST, "compose",
         side(build={"context": "./here", "additional_contexts": {"x": "docker-image://a"}})),
    Door("secret-of-the-repository", HOST, "docker", {"secrets": {"X": {"file": "./token"}}}),
    Door("secret-of-the-cluster", HOST, "kubernetes", {"secrets": {"X": {"kubernetes": "a/b", "file": "/etc/x"}}}),
    Door("code-of-the-repository", HOST, "kubernetes", code(".")),
    Door("image-volume-allowed", "allowed_registries: [docker.io]", "docker",
         flags("--mount", "type=image,src=a,dst=/in")),
    Door("sidecar-shm-within", SHM, "kubernetes",
         container(volumes=({"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},),
             volumeMounts=AT_SHM)),
    Door("memory-elsewhere", SHM, "kubernetes",
         container(volumes=(MEMORY_AT_SHM,), volumeMounts=[{"name": "m", "mountPath": "/cache"}])),
)  # fmt: skip


def refused(folder: Path, door: Door, policy: str) -> tuple[Diagnostic, ...]:
    """Return what is wrong with a job in a repository under a policy, whose first line is a comment."""
    repository = folder / "repository"
    (repository / ".git").mkdir(parents=True, exist_ok=True)
    (folder / "outside").mkdir(exist_ok=True)
    (folder / "outside" / "train.py").write_text("pass\n")
    (repository / "trainlaunch-policy.yaml").write_text(f"# what holds for all jobs\n{policy}\n")
    fields = {"resources": {"cpus": 4, "memory": "4Gi"}, "shm_size": "64Mi", **door.fields}
    try:
        plan = plan_with(repository / "jobs", door.target, **fields)
        verified(plan, render(plan))
    except JobFileRejected as rejected:
        return rejected.diagnostics
    return ()


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_no_limit_has_a_back_door(tmp_path: Path, door: Door) -> None:
    """Refused at its place in the job, with the policy's line and what both say; without that line it is free."""
    assert bool(refused(tmp_path, door, PRIVILEGED)) is not door.is_free
    found = refused(tmp_path, door, door.policy)
    told = [each for each in found if "trainlaunch-policy.yaml:2" in each.message]
    assert told, [each.message for each in found]
    assert {each.code for each in told} <= {"TL140", "TL146", "TL152"}
    assert all(each.span is not None and each.fix for each in told)
    whole = " ".join(f"{each.message} {each.fix}" for each in told)
    assert all(part in whole for part in door.said), whole


def test_a_nearer_policy_opens_no_name_that_another_one_bounds(tmp_path: Path) -> None:
    """Each file with a ceiling of GPUs has a list of its own, which is empty where it states none."""
    door = next(each for each in DOORS if each.name == "vgpu")
    nearer = tmp_path / "repository" / "jobs" / "trainlaunch-policy.yaml"
    nearer.parent.mkdir(parents=True)
    nearer.write_text(f"{GPUS}\nallowed_extended: [volcano.sh/vgpu-number]\n")
    (found,) = refused(tmp_path, door, GPUS)
    assert f"allows none ({tmp_path}/repository/trainlaunch-policy.yaml:2)" in found.message
    assert refused(tmp_path, door, MEMORY) == ()


@pytest.mark.parametrize("neighbour", NEIGHBOURS, ids=lambda door: door.name)
def test_what_only_looks_like_a_door_passes(tmp_path: Path, neighbour: Door) -> None:
    """A policy that refused these would be switched off."""
    found = refused(tmp_path, neighbour, neighbour.policy)
    assert [each.message for each in found if each.severity.value == "error"] == []
