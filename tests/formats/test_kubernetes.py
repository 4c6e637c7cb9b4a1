"""Manifests that nobody here wrote: each kind, each way to give a container a /dev/shm, and near misses of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from trainlaunch.formats.kubernetes import read_kubernetes
from trainlaunch.formats.workload import GpuRequest, Known, ShmSetting, Unknown, Workload, stated
from trainlaunch.yamltree.emitter import yaml_block

from tests.formats.readings import assert_spans_cut

SHM_MOUNT = {"name": "dshm", "mountPath": "/dev/shm"}


def pod(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return the spec of a pod with one container."""
    return {"containers": [{"name": "t", "image": "a:1", **(container or {})}], **spec}


def only(manifest: object) -> Workload:
    """Return the one Workload of a manifest, once its spans are seen to cut."""
    (found,) = every(manifest)
    return found


def every(manifest: object) -> tuple[Workload, ...]:
    """Return all of them, of a text or of an object."""
    text = manifest if isinstance(manifest, str) else yaml_block(manifest)
    read = read_kubernetes(text, "a.yaml")
    for each in read:
        assert_spans_cut(text, each)
    return read


def kind_of(kind: str, spec: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    """Return an object."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


TEMPLATE = {"template": {"metadata": {}, "spec": pod()}}
IN_JOB = {"template": {"spec": TEMPLATE}}
KINDS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("Pod", pod(), ["containers[0]"]),
    ("Job", TEMPLATE, ["containers[0]"]),
    ("Deployment", TEMPLATE, ["containers[0]"]),
    ("DaemonSet", TEMPLATE, ["containers[0]"]),
    ("ReplicaSet", TEMPLATE, ["containers[0]"]),
    ("StatefulSet", TEMPLATE, ["containers[0]"]),
    ("Service", TEMPLATE, ["containers[0]"]),  # Knative's
    ("CronJob", {"jobTemplate": {"spec": TEMPLATE}}, ["jobTemplate containers[0]"]),
    ("JobSet", {"replicatedJobs": [IN_JOB, IN_JOB]}, [f"replicatedJobs[{each}] containers[0]" for each in (0, 1)]),
    (
        "ClusterTrainingRuntime",
        {"template": {"spec": {"replicatedJobs": [IN_JOB]}}},
        ["replicatedJobs[0] containers[0]"],
    ),
    (
        "PyTorchJob",
        {"pytorchReplicaSpecs": {"Master": TEMPLATE, "Worker": TEMPLATE}},
        [f"pytorchReplicaSpecs.{each} containers[0]" for each in ("Master", "Worker")],
    ),
    ("MPIJob", {"mpiReplicaSpecs": {"Launcher": TEMPLATE}}, ["mpiReplicaSpecs.Launcher containers[0]"]),
    ("TFJob", {"tfReplicaSpecs": {"PS": TEMPLATE}}, ["tfReplicaSpecs.PS containers[0]"]),
    ("Job", {"tasks": [TEMPLATE]}, ["tasks[0] containers[0]"]),  # Volcano's
    (
        "RayCluster",
        {"headGroupSpec": TEMPLATE, "workerGroupSpecs": [TEMPLATE]},
        ["headGroupSpec containers[0]", "workerGroupSpecs[0] containers[0]"],
    ),
    ("RayJob", {"rayClusterSpec": {"headGroupSpec": TEMPLATE}}, ["rayClusterSpec.headGroupSpec containers[0]"]),
    ("Workflow", {"templates": [{"container": {"image": "a:1"}}]}, ["templates[0] container"]),
    ("Workflow", {"templates": [{"script": {"image": "a:1"}}, {"steps": []}]}, ["templates[0] script"]),
    (
        "Workflow",
        {"templates": [{"containerSet": {"containers": [{"image": "a:1"}]}}]},
        ["templates[0] containerSet.containers[0]"],
    ),
    ("CronWorkflow", {"workflowSpec": {"templates": [{"container": {}}]}}, ["workflowSpec.templates[0] container"]),
    ("NobodyKnows", {"deep": [{"er": pod()}]}, ["deep[0].er containers[0]"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "spec", "places"), KINDS, ids=[f"{kind}-{places[0]}" for kind, _, places in KINDS])
def test_each_pod_template_of_each_kind_is_found(kind: str, spec: dict[str, Any], places: list[str]) -> None:
    """By its containers, wherever the kind has it; the place tells it from its neighbours."""
    assert [each.place for each in every(kind_of(kind, spec))] == [f"{kind}/x {each}" for each in places]


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "just text",
        "- a\n- b\n",
        kind_of("ConfigMap", {"data": {"containers": "[]"}}),
        kind_of("Pod", {"containers": []}),
        kind_of("Pod", {"containers": "{{ .Values.containers }}"}),
        kind_of("Pod", {"containers": ["a:1"]}),
        kind_of("CustomResourceDefinition", {"properties": {"containers": {"type": "array"}}}),
        {**kind_of("Job", {}), "status": pod()},
        kind_of("TrainJob", {"podTemplateOverrides": [{"spec": pod()}]}),
        kind_of("Build", {"template": {"container": {"image": "a:1"}}}),
        "a: {{ if .Values.x }}\nb: [",
    ],
    ids=str,
)
def test_what_starts_no_container_gives_none(manifest: object) -> None:
    """What merely looks like a pod, what a controller merges into others, and what is no YAML."""
    assert every(manifest) == ()


def test_objects_are_found_in_documents_and_lists() -> None:
    """A List's items and every document; one that is broken ends the text."""
    one = yaml_block(kind_of("Pod", pod()))
    several = yaml_block(
        {"kind": "List", "items": [kind_of("Pod", pod()), {"kind": "PodList", "items": [kind_of("Job", TEMPLATE)]}]}
    )
    assert [each.place for each in every(f"{one}\n---\n---\n{several}")] == [
        f"{each}/x containers[0]" for each in ("Pod", "Pod", "Job")
    ]
    assert len(every(f"{one}\n---\na: [\n")) == 1


def test_json_is_read_too() -> None:
    """With the tabs and escapes that only JSON has."""
    text = json.dumps(kind_of("Pod", pod({"args": ["a\tb", "é/"]})), indent="\t").replace("/", "\\/")
    assert stated(only(text).command) == ("a\tb", "é/")


def test_init_containers_are_marked() -> None:
    """They run before the others, and see the same volumes if they mount them."""
    spec = pod(initContainers=[{"name": "i", "volumeMounts": [SHM_MOUNT]}], volumes=[{"name": "dshm", "emptyDir": {}}])
    first, second = every(kind_of("Pod", spec))
    assert (first.place, first.shm.kind) == ("Pod/x initContainers[0]", "disk")
    assert (second.place, second.shm.kind) == ("Pod/x containers[0]", "absent")


MEMORY = {"medium": "Memory", "sizeLimit": "2Gi"}
SHMS: list[tuple[str, dict[str, Any], dict[str, Any], str, int | None]] = [
    ("sized", SHM_MOUNT, {"emptyDir": MEMORY}, "size", 2 << 30),
    ("a slash behind", {**SHM_MOUNT, "mountPath": "/dev/shm/"}, {"emptyDir": MEMORY}, "size", 2 << 30),
    ("dots in it", {**SHM_MOUNT, "mountPath": "/dev/./x/../shm"}, {"emptyDir": MEMORY}, "size", 2 << 30),
    ("read-only", {**SHM_MOUNT, "readOnly": True}, {"emptyDir": MEMORY}, "size", 2 << 30),
    ("a part of it", {**SHM_MOUNT, "subPath": "a"}, {"emptyDir": MEMORY}, "size", 2 << 30),
    ("milli", SHM_MOUNT, {"emptyDir": {**MEMORY, "sizeLimit": "512m"}}, "size", 1),
    ("a number", SHM_MOUNT, {"emptyDir": {**MEMORY, "sizeLimit": 2147483648}}, "size", 2 << 30),
    ("decimal", SHM_MOUNT, {"emptyDir": {**MEMORY, "sizeLimit": "20G"}}, "size", 20 * 10**9),
    ("no size", SHM_MOUNT, {"emptyDir": {"medium": "Memory"}}, "unsized", None),
    ("null", SHM_MOUNT, {"emptyDir": {"medium": "Memory", "sizeLimit": None}}, "unsized", None),
    ("zero is no size", SHM_MOUNT, {"emptyDir": {**MEMORY, "sizeLimit": 0}}, "unsized", None),
    ("Docker's word", SHM_MOUNT, {"emptyDir": {**MEMORY, "sizeLimit": "2g"}}, "size", None),
    ("a template", SHM_MOUNT, {"emptyDir": {**MEMORY, "sizeLimit": "{{ .Values.shm }}"}}, "size", None),
    ("disk", SHM_MOUNT, {"emptyDir": {"sizeLimit": "2Gi"}}, "disk", None),
    ("empty", SHM_MOUNT, {"emptyDir": {}}, "disk", None),
    ("nothing said", SHM_MOUNT, {}, "disk", None),
    ("lower case", SHM_MOUNT, {"emptyDir": {**MEMORY, "medium": "memory"}}, "disk", None),
    ("huge pages", SHM_MOUNT, {"emptyDir": {"medium": "HugePages"}}, "disk", None),
    ("the host's", SHM_MOUNT, {"hostPath": {"path": "/dev/shm"}}, "bind", None),
    ("a claim", SHM_MOUNT, {"persistentVolumeClaim": {"claimName": "c"}}, "disk", None),
    ("another volume", {**SHM_MOUNT, "name": "other"}, {"emptyDir": MEMORY}, "absent", None),
    ("near it", {**SHM_MOUNT, "mountPath": "/dev/shm2"}, {"emptyDir": MEMORY}, "absent", None),
    ("below it", {**SHM_MOUNT, "mountPath": "/dev/shm/x"}, {"emptyDir": MEMORY}, "absent", None),
    ("relative, as the kubelet takes it", {**SHM_MOUNT, "mountPath": "dev/shm"}, {"emptyDir": MEMORY}, "size", 2 << 30),
    ("a template's volume", {**SHM_MOUNT, "name": "{{ .x }}"}, {"emptyDir": MEMORY}, "size", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mount", "volume", "kind", "size"), [each[1:] for each in SHMS], ids=[each[0] for each in SHMS]
)
def test_what_dev_shm_is(mount: dict[str, Any], volume: dict[str, Any], kind: str, size: int | None) -> None:
    """By the volume that this container mounts there, however the path is written."""
    shm = only(kind_of("Pod", pod({"volumeMounts": [mount]}, volumes=[{"name": "dshm", **volume}]))).shm
    assert (shm.kind, stated(shm.size)) == (kind, size)
    assert shm.kind == "absent" or shm.span is not None


def test_a_size_that_is_not_in_effect_is_kept() -> None:
    """For who explains why the stated size isn't what `df` shows."""
    for volume in ({"emptyDir": {"sizeLimit": "2Gi"}}, {"emptyDir": {"medium": "Memory", "sizeLimit": "0"}}):
        shm = only(kind_of("Pod", pod({"volumeMounts": [SHM_MOUNT]}, volumes=[{"name": "dshm", **volume}]))).shm
        assert isinstance(shm.declared, Known)


def test_the_last_of_two_mounts_lies_on_top() -> None:
    """`/dev/shm` and `/dev/shm/` are two paths to the API server, and one to the kernel."""
    volumes = [{"name": "dshm", "emptyDir": MEMORY}, {"name": "disk", "emptyDir": {}}]
    mounts = [SHM_MOUNT, {"name": "disk", "mountPath": "/dev/shm/"}]
    read = only(kind_of("Pod", pod({"volumeMounts": mounts}, volumes=volumes)))
    assert read.shm.kind == "disk"
    assert [stated(each.target) for each in read.mounts] == ["/dev/shm", "/dev/shm/"]


def test_host_ipc_is_the_hosts_unless_a_volume_lies_on_it() -> None:
    """containerd leaves the mount to whoever states it."""
    assert only(kind_of("Pod", pod(hostIPC=True))).shm.kind == "host"
    assert only(kind_of("Pod", pod(hostIPC=False))).shm.kind == "absent"
    spec = pod({"volumeMounts": [SHM_MOUNT]}, hostIPC=True, volumes=[{"name": "dshm", "emptyDir": MEMORY}])
    assert only(kind_of("Pod", spec)).shm.kind == "size"


def test_volumes_of_an_object_around_the_pod_are_seen() -> None:
    """Of a Workflow all templates; claims of a StatefulSet are disks whatever else is written in them."""
    template = {"container": {"image": "a:1", "volumeMounts": [SHM_MOUNT]}}
    spec = {"volumes": [{"name": "dshm", "emptyDir": MEMORY}], "templates": [template]}
    assert only(kind_of("Workflow", spec)).shm.kind == "size"
    claim = {"metadata": {"name": "dshm"}, "emptyDir": MEMORY}
    in_pod = {"template": {"spec": pod({"volumeMounts": [SHM_MOUNT]})}}
    assert only(kind_of("StatefulSet", {"volumeClaimTemplates": [claim], **in_pod})).shm.kind == "disk"


def test_a_mount_at_the_pod_is_none() -> None:
    """Kubernetes drops it, or refuses it; the rest says that it is there."""
    read = only(kind_of("Pod", pod(volumeMounts=[SHM_MOUNT], volumes=[{"name": "dshm", "emptyDir": MEMORY}])))
    assert read.shm == ShmSetting("absent")
    assert read.rest["pod.volumeMounts.0.mountPath"] == "/dev/shm"
    assert read.rest["pod.volumes.0.emptyDir.medium"] == "Memory"


RESOURCES: list[tuple[dict[str, Any], int | None, int | None, tuple[int, str] | None]] = [
    ({"limits": {"memory": "1.5Gi", "cpu": "1500m"}}, 1610612736, 1500, None),
    ({"limits": {"memory": "2E3", "cpu": 0.5}}, 2000, 500, None),
    ({"limits": {"memory": "3500m"}}, 4, None, None),
    ({"requests": {"memory": "8Gi", "cpu": "8"}}, None, 8000, None),
    ({"limits": {"cpu": 2}, "requests": {"cpu": 1}}, None, 2000, None),
    ({"limits": {"nvidia.com/gpu": 1}}, None, None, (1, "nvidia.com/gpu")),
    ({"limits": {"nvidia.com/mig-1g.5gb": "2"}}, None, None, (2, "nvidia.com/mig-1g.5gb")),
    ({"limits": {"amd.com/gpu": 8, "rdma/hca": 1}}, None, None, (8, "amd.com/gpu")),
    ({"limits": {"gpu.intel.com/i915": "1"}}, None, None, (1, "gpu.intel.com/i915")),
    ({"limits": {"nvidia.com/hostdev": 1}}, None, None, None),
    ({"limits": {"memory": "8g"}}, None, None, None),
    ({"limits": {"memory": "{{ .m }}"}}, None, None, None),
    ({"limits": "{{ .limits }}"}, None, None, None),
    ({"limits": ["memory"]}, None, None, None),
]


@pytest.mark.parametrize(("resources", "memory", "cpus", "gpus"), RESOURCES, ids=str)
def test_limits(resources: dict[str, Any], memory: int | None, cpus: int | None, gpus: tuple[int, str] | None) -> None:
    """Memory by its limit alone, CPUs by the limit or the request, GPUs by the name of their resource."""
    read = only(kind_of("Pod", pod({"resources": resources})))
    assert (stated(read.memory), stated(read.cpus)) == (memory, cpus)
    assert stated(read.gpus) == (GpuRequest(gpus[0], resource=gpus[1]) if gpus else None)


def test_a_quantity_of_another_language_is_unknown_and_not_absent() -> None:
    """`8g` is no limit that Kubernetes would take; it is not 8 GiB either, and the rest says that it is refused."""
    read = only(kind_of("Pod", pod({"resources": {"limits": {"memory": "8g"}}})))
    assert isinstance(read.memory, Unknown)
    assert read.rest["refused container.resources.limits.memory"] == '"8g"'
    template = only(kind_of("Pod", pod({"resources": {"limits": {"memory": "{{ .m }}"}}})))
    assert isinstance(template.memory, Unknown)
    assert not any("refused" in each for each in template.rest)


def test_the_pods_own_limits_hold_for_its_containers() -> None:
    """Where a container states none."""
    spec = pod(resources={"limits": {"memory": "6Gi", "cpu": "3"}})
    spec["containers"].append({"name": "u", "resources": {"limits": {"memory": "1Gi"}}})
    assert [(stated(each.memory), stated(each.cpus)) for each in every(kind_of("Pod", spec))] == [
        (6 << 30, 3000),
        (1 << 30, 3000),
    ]


def test_variables_are_expanded_in_their_order() -> None:
    """With those before them, once; the last of two counts."""
    env = [
        {"name": "A", "value": "$(B)"},
        {"name": "B", "value": "b$$"},
        {"name": "C", "value": "$(A)$(B)$$(B)$(NOPE)"},
        {"name": "EMPTY"},
        {"name": "B", "value": "again"},
    ]
    read = only(kind_of("Pod", pod({"env": env, "args": ["$(B)", "$$", "$(C", "${B}"]})))
    assert {name: stated(value) for name, value in read.env.items()} == {
        "A": "$(B)",
        "C": "$(B)b$$(B)$(NOPE)",
        "EMPTY": "",
        "B": "again",
    }
    assert stated(read.command) == ("again", "$", "$(C", "${B}")
    assert "container.env.B twice" in read.rest


def test_a_variable_with_a_source_makes_what_refers_to_it_unknown() -> None:
    """Its value is in the cluster; what doesn't refer to it is known."""
    env = [
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        {"name": "URL", "value": "http://$(IP)"},
        {"name": "PLAIN", "value": "x$$(KEY)"},
    ]
    read = only(kind_of("Pod", pod({"env": env, "command": ["sh", "$(MAP)"], "args": ["$(PLAIN)", "$$(KEY)"]})))
    assert dict(read.secrets) == {"KEY": "s/k", "IP": "field status.podIP"}
    assert {name: stated(value) for name, value in read.env.items()} == {"MAP": None, "URL": None, "PLAIN": "x$(KEY)"}
    assert isinstance(read.entrypoint, Unknown)
    assert stated(read.command) == ("x$(KEY)", "$(KEY)")


def test_variables_of_a_config_map_may_be_any() -> None:
    """With envFrom nobody knows whether `$(X)` is a variable."""
    container = {"envFrom": [{"configMapRef": {"name": "c"}}], "args": ["$(X)"]}
    assert isinstance(only(kind_of("Pod", pod(container))).command, Unknown)
    assert stated(only(kind_of("Pod", pod({**container, "envFrom": []}))).command) == ("$(X)",)


@pytest.mark.parametrize("word", ["1", "1e3", "08", "yes", "true", "2001-01-01", "~", "x"])
def test_a_scalar_that_is_no_string_to_kubectl_is_unknown(word: str) -> None:
    """An unquoted number or truth value is refused by the API server; a date and a word are strings."""
    text = f"kind: Pod\nspec: {{containers: [{{args: [{word}], env: [{{name: A, value: {word}}}]}}]}}\n"
    read = only(text)
    assert isinstance(read.command, Known) == (word in ("2001-01-01", "x"))
    assert isinstance(read.env["A"], Known) == (word in ("2001-01-01", "x", "~"))
    assert ("refused container.env.A" in read.rest) == isinstance(read.env["A"], Unknown)


@pytest.mark.parametrize(
    "value", ["python train.py", "{{ .Values.args }}", {"a": "b"}, 5, ["a", ["b"]], ["{{ x }}"]], ids=str
)
def test_words_of_another_shape_are_unknown(value: Any) -> None:
    """A string is no list of its letters; what no template decides is refused."""
    read = only(kind_of("Pod", pod({"command": value})))
    assert isinstance(read.entrypoint, Unknown)
    assert ("refused container.command" in read.rest) == ("{{" not in str(value))


@pytest.mark.parametrize("value", [None, []])
def test_no_words_are_the_images_own(value: Any) -> None:
    """An empty list is as if it was not there."""
    assert only(kind_of("Pod", pod({"command": value}))).entrypoint is None


def test_a_template_in_braces_is_unknown() -> None:
    """YAML takes it for a mapping whose key is a mapping."""
    text = (
        "kind: Job\nmetadata: {name: {{ .Release.Name }}}\nspec:\n  template:\n    spec:\n      containers:\n"
        "      - image: {{ .Values.image }}\n        resources: {{ toYaml .Values.resources }}\n"
        "        volumeMounts: [{name: dshm, mountPath: /dev/shm}]\n"
        "      volumes:\n      - {name: dshm, emptyDir: {{ toYaml .Values.shm }}}\n"
    )
    read = only(text)
    assert isinstance(read.image, Unknown)
    assert read.image.text == "{{ .Values.image }}"
    assert isinstance(read.shm.size, Unknown)
    assert read.memory is None
    assert "container.resources" in " ".join(read.rest)


def test_whose_the_process_is() -> None:
    """A container's own ids before its pod's."""
    security = {"runAsUser": 1000, "runAsGroup": 2000, "supplementalGroups": [3, 4]}
    spec = pod({"securityContext": {"runAsUser": 0, "readOnlyRootFilesystem": True}}, securityContext=security)
    read = only(kind_of("Pod", spec))
    assert (stated(read.user), read.groups, stated(read.read_only)) == ("0:2000", ("3", "4"), True)
    assert stated(only(kind_of("Pod", pod(securityContext={"runAsGroup": 5}))).user) == ":5"
    assert isinstance(only(kind_of("Pod", pod(securityContext={"runAsUser": "5"}))).user, Unknown)
    assert only(kind_of("Pod", pod())).user is None


def test_a_probe_of_a_shell_is_a_health_check() -> None:
    """Any other probe, and what else one says, stays in the rest."""
    shell = {"exec": {"command": ["/bin/sh", "-c", "test $(A) $(S) $$X"]}, "periodSeconds": 30, "successThreshold": 2}
    env = [{"name": "A", "value": "a"}, {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    read = only(kind_of("Pod", pod({"env": env, "readinessProbe": shell})))
    assert stated(read.health) == "test a $(S) $X"
    assert {key: stated(value) for key, value in read.health_times.items()} == {"interval": 30}
    assert read.rest["container.readinessProbe.successThreshold"] == 2
    for probe in ({"httpGet": {"port": 80}}, {"exec": {"command": ["true"]}}, {"exec": {"command": ["/bin/sh", "-c"]}}):
        other = only(kind_of("Pod", pod({"readinessProbe": probe})))
        assert other.health is None
        assert any(path.startswith("container.readinessProbe.") for path in other.rest)


def test_all_else_is_in_the_rest_by_its_path() -> None:
    """Of the container, of its pod and of the object around it; other containers are not."""
    spec = pod({"tty": True}, hostNetwork=True)
    spec["containers"].append({"name": "side", "stdin": True})
    first, second = every({**kind_of("Pod", spec), "metadata": {"name": "x", "namespace": "n", "labels": {"a": "b"}}})
    common = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata.namespace": "n",
        "pod.hostNetwork": True,
        "requests are limits": True,
    }
    assert dict(first.rest) == {**common, "container.name": "t", "container.tty": True}
    assert dict(second.rest) == {**common, "container.name": "side", "container.stdin": True}
    assert {key: stated(value) for key, value in first.labels.items()} == {"a": "b"}


def test_a_manifest_that_stands_for_much_is_read_in_time() -> None:
    """Fifty thousand containers share what their pod says."""
    text = "kind: Pod\nspec:\n  containers: [" + ", ".join(["{}"] * 30_000) + "]\n  x: [" + "a, " * 30_000 + "]\n"
    assert len(read_kubernetes(text, "a.yaml")) == 30_000
