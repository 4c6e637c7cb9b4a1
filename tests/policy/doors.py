"""Ways past a policy: patches and fields that take what a ceiling bounds or a list doesn't have."""

from __future__ import annotations

from typing import Any, NamedTuple

MEMORY, CPUS, GPUS, SHM = "max: {memory: 16Gi}", "max: {cpus: 8}", "max: {gpus: 1}", "max: {shm_size: 1Gi}"
HOST, CLAIMS = "allowed_host_paths: [/data, .]", "allowed_claims: [data]"
CONFINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
POD = "/spec/template/spec"
TRAIN = f"{POD}/containers/0"
REPLICATED = "/spec/replicatedJobs/0/template/spec/template/spec"
RUNTIME = f"/spec/template{REPLICATED}"
TWO_NODES = {"torchrun": {"nnodes": 2, "nproc_per_node": 1}}


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


def sides(count: int, **service: Any) -> dict[str, Any]:
    """Return a patch that adds several services, each within all ceilings."""
    return compose(services={f"side-{index}": {"image": "a:1", **service} for index in range(count)})


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


def sidecars(count: int, key: str, limit: str, where: str = "containers", **more: Any) -> dict[str, Any]:
    """Return a patch that adds several containers, each within all ceilings."""
    limits = {"memory": "1Gi", "cpu": "1", key: limit}
    each = {"image": "a:1", "resources": {"limits": limits}, "securityContext": CONFINED, **more}
    listed = [{"name": f"side-{index}", **each} for index in range(count)]
    if where == "containers":
        return added(*((f"{POD}/containers/-", one) for one in listed))
    return added((f"{POD}/{where}", listed))


def sidecar_of(kind: str, pod: str, more: dict[str, str]) -> dict[str, Any]:
    """Return a patch that adds a container of 64 CPUs to a pod of another kind of object."""
    limits = {"memory": "1Gi", "cpu": "64"}
    side = {"name": "side", "image": "a:1", "resources": {"limits": limits}, "securityContext": CONFINED}
    operation = {"op": "add", "path": f"{pod}/containers/-", "value": side, **more}
    nodes = {} if kind == "pod" else TWO_NODES
    return {"kubernetes": {"kind": kind}, "patches": {"kubernetes": [operation]}, **nodes}


def gang(**policy: str) -> dict[str, Any]:
    """Return a patch of how a PyTorchJob's pods are scheduled together."""
    fields = {"kubernetes": {"kind": "pytorchjob", "queue": "team"}}
    return added(("/spec/runPolicy/schedulingPolicy", policy), **fields)


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
NO_PRIVILEGES = "allowed_pod_security: [restricted, baseline]"
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
    # The same by other words of docker run.
    Door("volume-attached", HOST, "docker", flags("-v/etc:/in")),
    Door("volume-with-equals-sign", HOST, "docker", flags("--volume=/etc:/in:ro")),
    Door("mount-source-twice", HOST, "docker", flags("--mount=type=bind,src=/data,source=/etc,dst=/in")),
    Door("mount-in-quotes", HOST, "docker", flags("--mount", 'type=bind,"src=/etc",dst=/in')),
    Door("device-relative", HOST, "docker", flags("--device", "dev/sda:/dev/sda"), ("dev/sda",)),
    Door("driver-path", HOST, "docker",
         flags("--mount", "type=volume,src=v,dst=/in,volume-driver=local-persist,volume-opt=mountpoint=/etc")),
    Door("memory-swap-attached", MEMORY, "docker", flags("--memory-swap=-1"), ("-1",)),
    Door("oom-kill-disable-by-number", MEMORY, "docker", flags("--oom-kill-disable=1"), ("16Gi",)),
    Door("cgroup-parent-by-equals", MEMORY, "docker", flags("--cgroup-parent=free.slice"), ("16Gi",)),
    Door("variable-of-the-caller", GPUS, "docker", flags("-eNVIDIA_VISIBLE_DEVICES")),
    Door("variable-by-equals", GPUS, "docker", flags("--env=HABANA_VISIBLE_DEVICES=all")),
    Door("cdi-device", GPUS, "docker", flags("--device=nvidia.com/gpu=all")),
    Door("all-devices", GPUS, "docker", flags("--device", "/dev")),
    Door("device-by-number", GPUS, "docker", flags("--device=/dev/char/195:0:/dev/null")),
    Door("device-behind-another", GPUS, "docker", flags("--device=/dev/infiniband/../nvidia0")),
    Door("runtime-flag", GPUS, "docker", flags("--runtime=nvidia")),
    Door("privileged-by-letter", f"{GPUS}\n{PRIVILEGED}", "docker", flags("--privileged=t")),
    Door("annotation-flag", GPUS, "docker", flags("--annotation=cdi.k8s.io/x=nvidia.com/gpu=all")),
    Door("annotation-of-mounts", f"{HOST}\n{PRIVILEGED}", "docker", flags("--annotation", "mounts.nri.io/pod=[]")),
    Door("namespace-of-a-process", NO_PRIVILEGES, "docker", flags("--pid=ns:/proc/1/ns/pid")),
    Door("network-of-a-process", NO_PRIVILEGES, "docker", flags("--net", "ns:/proc/1/ns/net")),
    # The same by other words of Compose.
    Door("privileged-as-text", f"{GPUS}\n{PRIVILEGED}", "compose", side(privileged="true")),
    Door("oom-kill-disable-as-text", MEMORY, "compose", own(oom_kill_disable="yes")),
    Door("memswap-as-text", MEMORY, "compose", own(memswap_limit="-1")),
    Door("memswap-without-unit", MEMORY, "compose", own(memswap_limit=68719476736)),
    Door("memory-in-terabytes", MEMORY, "compose", side(mem_limit="1t"), ("1t",)),
    Door("replicas-in-halves", MEMORY, "compose", side(deploy={"replicas": 500.5}), ("500.5 × 1g",)),
    Door("scale-as-text", MEMORY, "compose", side(scale="500"), ("500 × 1g",)),
    Door("scale-and-replicas", CPUS, "compose", side(scale=1, deploy={"replicas": 500}), ("500 × 1",)),
    Door("many-services", MEMORY, "compose", sides(3, mem_limit="8g"), ("max.memory 16Gi", "24Gi")),
    Door("many-services-cpus", CPUS, "compose", sides(3, mem_limit="1g", cpus="4"), ("max.cpus 8", "becomes 12")),
    Door("build-memory", MEMORY, "compose", side(build={"context": "./here"}), ("a build, which has no limit",)),
    Door("build-cpus", CPUS, "compose", side(build="./here"), ("max.cpus 8",)),
    Door("build-shm", SHM, "compose", side(build={"context": "./here", "shm_size": "9g"}), ("9g",)),
    Door("build-device", f"{GPUS}\n{PRIVILEGED}", "compose",
         side(build={"context": "./here", "entitlements": ["device"]})),
    Door("build-privileged", f"{GPUS}\n{PRIVILEGED}", "compose",
         side(build={"context": "./here", "privileged": True})),
    Door("cpu-count", CPUS, "compose", side(cpus=None, cpu_count=64), ("no limit",)),
    Door("quota-of-a-short-period", CPUS, "compose", side(cpus=None, cpu_quota=800000, cpu_period=1000)),
    Door("gpus-key", GPUS, "compose", side(gpus="all")),
    Door("gpus-key-of-the-job", GPUS, "compose", own(gpus=[{"count": 8}]), ("max.gpus",), False),
    Door("reserved-devices", GPUS, "compose",
         side(deploy={"resources": {"reservations": {"devices": [{"capabilities": ["gpu"], "count": 8}]}}})),
    Door("generic-resources", GPUS, "compose",
         side(deploy={"resources": {"reservations": {
             "generic_resources": [{"discrete_resource_spec": {"kind": "gpu", "value": 8}}]
         }}})),
    Door("runtime-key", GPUS, "compose", side(runtime="nvidia")),
    Door("operator-annotation", GPUS, "compose", side(annotations={"nvidia.cdi.k8s.io/x": "nvidia.com/gpu=all"})),
    Door("service-shm-size", SHM, "compose", side(shm_size="9g"), ("9g",)),
    Door("host-shm", SHM, "compose", side(volumes=[{"type": "bind", "source": "/dev/shm", "target": "/dev/shm"}])),
    Door("host-dev", SHM, "compose", side(volumes=[{"type": "bind", "source": "/dev", "target": "/dev/"}])),
    Door("named-tmpfs-at-shm", SHM, "compose",
         {"patches": {"compose": {
             "volumes": {"m": {"driver_opts": {"type": "tmpfs", "device": "tmpfs", "o": "size=9g"}}},
             "services": {"side": {"image": "a:1", "volumes": [
                 {"type": "volume", "source": "m", "target": "/dev/shm"}
             ]}},
         }}}),
    Door("service-device-relative", HOST, "compose", side(devices=["dev/sda:/dev/sda"])),
    Door("service-driver-path", HOST, "compose",
         compose(volumes={"v": {"driver": "local-persist", "driver_opts": {"mountpoint": "/etc"}}})),
    Door("overlay-one-by-one", HOST, "compose",
         compose(volumes={"v": {"driver_opts": {"type": "overlay", "device": "overlay", "o": "lowerdir+=/etc"}}})),
    Door("named-pipe", HOST, "compose",
         side(volumes=[{"type": "npipe", "source": r"\\.\pipe\docker_engine", "target": "/in"}])),
    Door("path-of-windows", HOST, "compose", side(volumes=[{"type": "bind", "source": r"C:\Users", "target": "/in"}])),
    Door("secret-of-home", HOST, "compose", compose(secrets={"c": {"file": "~/.ssh/id"}})),
    Door("host-network-by-its-old-key", NO_PRIVILEGES, "compose",
         compose(networks={"other": {"external": {"name": "host"}}})),
    Door("host-network-by-name", NO_PRIVILEGES, "compose", compose(networks={"other": {"name": "host"}})),
    Door("watch-privileged", NO_PRIVILEGES, "compose",
         side(develop={"watch": [
             {"path": "./x", "action": "sync+exec", "target": "/x", "exec": {"command": "id", "privileged": "true"}}
         ]})),
    # The same by other words of Kubernetes.
    *(Door(f"memory-{each}", MEMORY, "kubernetes", container(limits={"memory": each}), (each,))
      for each in ("1Ti", "1E", "64G", "17179869185", "16385Mi", "17179869184001m")),
    *(Door(f"no-memory-{each}", MEMORY, "kubernetes", container(limits={"memory": each}), (each,), False)
      for each in ("0.0", "-1", "0Ki", "00", "many")),
    *(Door(f"cpus-{each}", CPUS, "kubernetes", container(limits={"cpu": each}), (str(each),))
      for each in ("8001m", "8.1", "-1", "8k", "0m", "0.0", 64, "8000001u")),
    Door("cpu-request-above-its-limit", CPUS, "kubernetes",
         container(resources={"limits": {"memory": "1Gi", "cpu": "8"}, "requests": {"cpu": "64"}}),
         ("requested", "64")),
    Door("restarted-init", MEMORY, "kubernetes",
         container("initContainers", restartPolicy="Always", limits={"memory": "64Gi"}), ("64Gi",)),
    Door("many-sidecars", MEMORY, "kubernetes", sidecars(3, "memory", "8Gi"), ("max.memory 16Gi", "24Gi")),
    Door("many-sidecars-cpus", CPUS, "kubernetes", sidecars(3, "cpu", "4"), ("max.cpus 8", "becomes 12")),
    Door("many-restarted-inits", MEMORY, "kubernetes",
         sidecars(3, "memory", "8Gi", "initContainers", restartPolicy="Always"), ("24Gi",)),
    Door("huge-pages", MEMORY, "kubernetes", container(limits={"hugepages-1Gi": "500Gi"}), ("1Gi and hugepages-1Gi",)),
    Door("crio-quota", CPUS, "kubernetes", {"annotations": {"cpu-quota.crio.io": "disable"}}, ("cpu-quota", "is 8")),
    Door("crio-quota-patch", CPUS, "kubernetes",
         added(("/spec/template/metadata/annotations/cpu-quota.crio.io", "disable"))),
    Door("crio-cgroup", MEMORY, "kubernetes",
         {"kubernetes": {"annotations": {"io.kubernetes.cri-o.UnifiedCgroup.train": "memory.max=max"}}}),
    Door("crio-cgroups-writable", MEMORY, "kubernetes",
         {"annotations": {"cgroup2-mount-hierarchy-rw.crio.io": "true"}}),
    Door("crio-shm", SHM, "kubernetes", {"annotations": {"io.kubernetes.cri-o.ShmSize": "9Gi"}}, ("9Gi", "is 1Gi")),
    *(Door(f"annotation-{each}", GPUS, "kubernetes", {"annotations": {each: "nvidia.com/gpu=all"}}, (each,))
      for each in ("nvidia.cdi.k8s.io/x", "cdi-devices.noderesource.dev/container.train", "devices.nri.io/pod",
                   "io.kubernetes.cri-o.Devices", "devices.crio.io", "gpu-fraction", "gpu-memory",
                   "gpu-fraction-num-devices")),
    Door("annotation-of-a-runtime", GPUS, "kubernetes",
         added(("/spec/annotations", {"cdi.k8s.io/x": "nvidia.com/gpu=all"})) | {"kubernetes": {"kind": "trainjob"}}),
    *(Door(f"node-by-{each}", f"{HOST}\n{PRIVILEGED}", "kubernetes", {"annotations": {each: node}}, (each, "/data"))
      for each, node in (("io.kubernetes.cri-o.Devices", "/dev/fuse,/dev/sda:/dev/x"),
                         ("devices.nri.io/pod", "- path: /dev/sda"))),
    Door("gpu-node-of-crio", GPUS, "kubernetes",
         {"annotations": {"io.kubernetes.cri-o.Devices": "/dev/fuse,/dev/net/../nvidia0:/dev/fuse"}}),
    Door("mounts-annotation", f"{HOST}\n{PRIVILEGED}", "kubernetes",
         {"annotations": {"mounts.noderesource.dev/container.train": "- source: /etc\n  destination: /in"}}, ("/etc",)),
    Door("apparmor-annotation", NO_PRIVILEGES, "kubernetes",
         {"annotations": {"container.apparmor.security.beta.kubernetes.io/train": "unconfined"}}, ("unconfined",)),
    Door("gpus-of-a-device-class", GPUS, "kubernetes", extended(**{"deviceclass.resource.kubernetes.io/gpu": 1})),
    Door("container-claims", GPUS, "kubernetes", added((f"{TRAIN}/resources/claims", [{"name": "g"}]))),
    Door("sidecar-claims", GPUS, "kubernetes",
         container(resources={"limits": {"memory": "1Gi", "cpu": "1"}, "claims": [{"name": "g"}]})),
    Door("requested-vgpu", GPUS, "kubernetes",
         container(resources={"limits": {"memory": "1Gi"}, "requests": {"volcano.sh/vgpu-number": 1}})),
    Door("variable-from-a-config-map", GPUS, "kubernetes",
         added((f"{TRAIN}/env/-",
             {"name": "AMD_VISIBLE_DEVICES", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}))),
    Door("variable-of-another", GPUS, "kubernetes",
         container(env=[{"name": "X", "value": "all"}, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "$(X)"}])),
    Door("claim-at-shm", SHM, "kubernetes",
         container(volumes=({"name": "m", "persistentVolumeClaim": {"claimName": "x"}},), volumeMounts=AT_SHM)),
    Door("disk-at-dev", SHM, "kubernetes",
         container(volumes=({"name": "m", "emptyDir": {}},), volumeMounts=[{"name": "m", "mountPath": "//dev/."}])),
    Door("csi-path", HOST, "kubernetes",
         volume(csi={"driver": "hostpath.csi.k8s.io", "volumeAttributes": {"path": "/etc"}}), ("/etc", "/data")),
    Door("certificate-of-the-pod", "forbid_token: true", "kubernetes",
         volume(projected={"sources": [{"podCertificate": {"signerName": "example.com/x", "keyType": "ED25519"}}]})),
    Door("priority-of-kueue", "allowed_priority_classes: [low]", "kubernetes",
         {"labels": {"kueue.x-k8s.io/priority-class": "high"}}, ("high", "low")),
    Door("priority-of-kueue-patch", "allowed_priority_classes: [low]", "kubernetes",
         added(("/metadata/labels/kueue.x-k8s.io~1priority-class", "high")), ("high", "low")),
    Door("priority-of-a-gang", "allowed_priority_classes: [low]", "kubernetes",
         gang(priorityClass="high"), ("high", "low")),
    Door("queue-of-a-gang", "allowed_queues: [team]", "kubernetes", gang(queue="fast"), ("fast", "team")),
    # By another node, another kind of object, a copy, an override.
    Door("another-node", MEMORY, "compose", compose(services={"digits-1": {"cgroup_parent": "/free"}}) | TWO_NODES),
    Door("another-node-privileged", NO_PRIVILEGES, "compose",
         compose(services={"digits-1": {"privileged": "true"}}) | TWO_NODES),
    *(Door(f"sidecar-of-a-{kind}", CPUS, "kubernetes", sidecar_of(kind, where, more), ("64",))
      for kind, where, more in (
          ("pod", "/spec", {}),
          ("jobset", REPLICATED, {}),
          ("trainjob", RUNTIME, {"kind": "TrainingRuntime"}),
          ("pytorchjob", "/spec/pytorchReplicaSpecs/Worker/template/spec", {}),
      )),
    Door("copy-of-the-training", GPUS, "kubernetes",
         {"resources": {"cpus": 4, "memory": "4Gi", "gpus": 1}, "patches": {"kubernetes": [
             {"op": "copy", "from": TRAIN, "path": f"{POD}/containers/-"},
             {"op": "replace", "path": f"{POD}/containers/1/name", "value": "side"},
         ]}}, ("nvidia.com/gpu: 1",)),
    Door("override-of-a-secret", HOST, "docker",
         {"target_overrides": {"docker": {"secrets": {"X": {"file": "/etc/shadow"}}}}}),
    Door("override-of-annotations", GPUS, "kubernetes",
         {"target_overrides": {"kubernetes": {"annotations": {"cdi.k8s.io/x": "nvidia.com/gpu=all"}}}}),
    Door("capabilities-at-once", "allowed_capabilities: [SYS_PTRACE]", "docker",
         flags("--cap-add=SYS_PTRACE,SYS_ADMIN"), (), False),
    Door("all-capabilities", "allowed_capabilities: [SYS_PTRACE]", "compose", own(cap_add=["all"]), ("all",), False),
)  # fmt: skip
