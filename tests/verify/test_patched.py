"""A patch changes nothing that the plan decided: each attempt is an error at its line that names the field to use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trainlaunch.committed.check_renderings import compared
from trainlaunch.errors import JobFileRejected, RenderingDisagrees
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render
from trainlaunch.verify import verified, verify

from tests.jobs import plan_with
from tests.sampling import diagonals, every

FIELDS: dict[str, Any] = {
    "env": {"A": "1"},
    "labels": {"team": "x"},
    "resources": {"cpus": 4, "memory": "4Gi"},
    "user": "1000",
    "working_dir": "/work",
    "secrets": {"TOKEN": {"env": "TOKEN", "kubernetes": "a/b"}},
}
MOUNTS = {
    "docker": [{"type": "tmpfs", "target": "/data"}],
    "compose": [{"type": "volume", "source": "data", "target": "/data"}],
    "kubernetes": [{"type": "pvc", "source": "data", "target": "/data"}],
}
GPU = {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
CONFINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
POD = "/spec/template/spec"
TRAIN = f"{POD}/containers/0"


def patched_plan(folder: Path, target: str, patch: Any, **fields: Any) -> LaunchPlan:
    """Return the plan of a job with a patch for its target."""
    return plan_with(folder, target, **{**FIELDS, "mounts": MOUNTS[target], **fields}, patches={target: patch})


def refusals(plan: LaunchPlan) -> list[tuple[str, str, str]]:
    """Return code and field of each error of a patch, and what its fix says to write."""
    with pytest.raises(JobFileRejected) as caught:
        verified(plan, render(plan))
    found = caught.value.diagnostics
    assert all(each.span and each.span.file == plan.job.path and each.span.line > 1 for each in found)
    return [(each.code, each.field, each.fix) for each in found]


def instead(fixes: list[tuple[str, str, str]]) -> set[str]:
    """Return the fields that the fixes name, empty for those that name none."""
    return {fix.removeprefix("write ").partition(" instead")[0] if " instead" in fix else "" for _, _, fix in fixes}


SERVICE: list[tuple[dict[str, Any], str]] = [
    ({"image": "other:1"}, "image"),
    ({"pull_policy": "always"}, "pull_policy"),
    ({"shm_size": "64m"}, "shm_size"),
    ({"shm_size": None}, "shm_size"),
    ({"shm_size": 67108864}, ""),
    ({"ipc": "host"}, "shm_size"),
    ({"ipc": "service:x"}, "shm_size"),
    ({"tmpfs": ["/dev/shm"]}, "shm_size"),
    ({"tmpfs": ["/dev/shm/:size=1g"]}, "shm_size"),
    ({"tmpfs": "/dev/shm"}, "shm_size"),
    ({"volumes": [{"type": "tmpfs", "target": "/dev/shm"}]}, "mounts"),
    ({"volumes": [*MOUNTS["compose"], {"type": "tmpfs", "target": "/dev"}]}, "shm_size"),
    ({"volumes": ["data:/data"]}, ""),
    ({"volumes": None}, "mounts"),
    ({"volumes_from": ["x"]}, "shm_size"),
    ({"extends": {"service": "x"}}, "shm_size"),
    ({"mem_limit": "1g"}, "resources.memory"),
    ({"mem_limit": None}, "resources.memory"),
    ({"deploy": {"resources": {"limits": {"memory": "1g"}}}}, "resources.memory"),
    ({"cpus": "1"}, "resources.cpus"),
    ({"cpu_quota": 1000}, "resources.cpus"),
    ({"gpus": "all"}, "resources.gpus"),
    ({"deploy": {"resources": {"reservations": {"devices": [GPU]}}}}, "resources.gpus or resources.extended"),
    ({"healthcheck": {"disable": True}}, "healthcheck"),
    ({"healthcheck": {"interval": "1s"}}, "healthcheck"),
    ({"healthcheck": {"test": ["CMD", "true"]}}, "healthcheck"),
    ({"healthcheck": None}, "healthcheck"),
    ({"entrypoint": ["python"]}, "command, script or image_entrypoint"),
    ({"command": None}, "command, script or image_entrypoint"),
    ({"environment": {"A": "2"}}, "env.A"),
    ({"environment": {"A": None}}, "env.A"),
    ({"environment": {"TOKEN": "x"}}, "secrets.TOKEN"),
    ({"environment": {"OMP_NUM_THREADS": "9"}}, "env.OMP_NUM_THREADS"),
    ({"environment": {"TRAINLAUNCH_NUM_WORKERS": "9"}}, ""),
    ({"environment": ["A=1"]}, ""),
    ({"labels": {"team": "other"}}, "labels.team"),
    ({"labels": {"dev.trainlaunch.plan": "1"}}, ""),
    ({"labels": {"dev.trainlaunch.more": "1"}}, ""),
    ({"user": "0"}, "user"),
    ({"working_dir": "/"}, "working_dir"),
    ({"read_only": True}, "read_only"),
    ({"stop_signal": "SIGKILL"}, "stop_signal"),
    ({"stop_grace_period": "1s"}, "stop_grace_period"),
    ({"restart": "always"}, "restart.max_attempts"),
    ({"init": False}, ""),
    ({"tty": True}, ""),
    ({"container_name": "x"}, "name"),
    ({"container_name": None}, "name"),
    ({"scale": 3}, "torchrun.nnodes"),
    ({"deploy": {"replicas": 3}}, "torchrun.nnodes"),
    ({"profiles": ["x"]}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("change", "field"), SERVICE, ids=lambda each: str(each)[:70])
def test_a_merge_patch_changes_nothing_of_the_plan(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    """Each key of the job's service that the plan owns, changed, deleted or undone by another."""
    found = refusals(patched_plan(tmp_path, "compose", {"services": {"digits": change}}))
    key = next(iter(change))
    assert {each[0] for each in found} == {"TL146"}
    assert all(each[1].startswith(f"patches.compose.services.digits.{key}") for each in found)
    assert field in instead(found)


NODES = ("digits-0", "digits-1", "digits-2")


@pytest.mark.parametrize("case", every(4, diagonals(len(NODES), SERVICE, NODES)), ids=lambda each: str(each)[:70])
def test_a_merge_patch_changes_nothing_of_any_node(
    tmp_path: Path, case: tuple[tuple[dict[str, Any], str], str]
) -> None:
    """What the plan owns of one container it owns of each, whichever service the patch names."""
    (owned, field), node = case
    found = refusals(patched_plan(tmp_path, "compose", {"services": {node: owned}}, torchrun={"nnodes": 3}))
    assert {each[0] for each in found} == {"TL146"}
    assert all(each[1].startswith(f"patches.compose.services.{node}.{next(iter(owned))}") for each in found)
    assert field in instead(found)


@pytest.mark.parametrize(
    "change", [None, {"hostname": "x"}, {"depends_on": None}, {"labels": {"dev.trainlaunch.node": "0"}}]
)
def test_a_merge_patch_takes_no_node_away_and_none_from_the_meeting(
    tmp_path: Path, change: dict[str, Any] | None
) -> None:
    """All nodes that the plan counts are in the file, under the names by which they meet."""
    (found,) = refusals(patched_plan(tmp_path, "compose", {"services": {"digits-1": change}}, torchrun={"nnodes": 3}))
    assert found[0] == "TL146"


def test_a_merge_patch_adds_to_one_node_alone(tmp_path: Path) -> None:
    """What no plan decides may differ between the nodes."""
    change = {"environment": {"NCCL_DEBUG": "INFO"}, "cap_add": ["SYS_PTRACE"]}
    for node in ("digits-0", "digits-2"):
        plan = patched_plan(tmp_path, "compose", {"services": {node: change}}, torchrun={"nnodes": 3})
        assert verified(plan, render(plan)).count("SYS_PTRACE") == 1


def test_a_merge_patch_includes_no_other_file(tmp_path: Path) -> None:
    """What it would start is read by nobody, and by no policy."""
    (found,) = refusals(patched_plan(tmp_path, "compose", {"include": ["other.yaml"]}))
    assert found[:2] == ("TL146", "patches.compose.include")


OPERATIONS: list[tuple[str, str, Any, str]] = [
    ("replace", f"{TRAIN}/image", "other:1", "image"),
    ("replace", f"{TRAIN}/imagePullPolicy", "Always", "pull_policy"),
    ("replace", f"{POD}/volumes/0/emptyDir/sizeLimit", "64Mi", "shm_size"),
    ("remove", f"{POD}/volumes/0/emptyDir/sizeLimit", None, "shm_size"),
    ("remove", f"{POD}/volumes/0/emptyDir/medium", None, "shm_size"),
    ("remove", f"{TRAIN}/volumeMounts/0", None, "shm_size"),
    ("add", f"{TRAIN}/volumeMounts/0/subPath", "x", "shm_size"),
    ("add", f"{TRAIN}/volumeMounts/-", {"name": "home", "mountPath": "/dev/shm/"}, "shm_size"),
    ("add", f"{TRAIN}/volumeMounts/-", {"name": "home", "mountPath": "/dev"}, "shm_size"),
    ("add", f"{TRAIN}/volumeMounts/-", {"name": "home", "mountPath": "/data"}, "mounts"),
    ("add", f"{POD}/hostIPC", True, ""),
    ("replace", f"{TRAIN}/resources/limits/memory", "1Gi", "resources.memory"),
    ("remove", f"{TRAIN}/resources/limits", None, "resources.memory"),
    ("replace", f"{TRAIN}/resources/requests/memory", "1Gi", "resources.memory and resources.cpus"),
    ("replace", f"{TRAIN}/resources/limits/cpu", "1", "resources.cpus"),
    ("add", f"{TRAIN}/resources/limits/nvidia.com~1gpu", "1", "resources.gpus or resources.extended"),
    ("remove", f"{TRAIN}/readinessProbe", None, "healthcheck"),
    ("replace", f"{TRAIN}/readinessProbe/exec/command/2", "true", "healthcheck"),
    ("replace", f"{TRAIN}/readinessProbe/periodSeconds", 1, "healthcheck"),
    ("replace", f"{TRAIN}/command/2", 'exec "$$@"', "command, script or image_entrypoint"),
    ("remove", f"{TRAIN}/args/1", None, "command, script or image_entrypoint"),
    ("replace", f"{TRAIN}/env/0/value", "2", "env.A"),
    ("add", f"{TRAIN}/env/-", {"name": "A", "value": "2"}, "env.A twice"),
    ("add", f"{TRAIN}/env/-", {"name": "MKL_NUM_THREADS", "value": "2"}, "env.MKL_NUM_THREADS"),
    ("replace", "/metadata/labels/team", "other", "labels.team"),
    ("remove", "/metadata/labels/trainlaunch.dev~1job", None, ""),
    ("replace", "/spec/template/metadata/labels/team", "other", "labels or annotations"),
    ("replace", f"{POD}/securityContext/runAsUser", 0, "user"),
    ("replace", f"{TRAIN}/workingDir", "/", "working_dir"),
    ("replace", f"{POD}/terminationGracePeriodSeconds", 1, "stop_grace_period"),
    ("replace", f"{POD}/restartPolicy", "OnFailure", "restart.max_attempts"),
    ("replace", "/spec/backoffLimit", 6, "restart.max_attempts"),
    ("remove", "/spec/podFailurePolicy", None, "restart.max_attempts"),
    ("add", "/spec/activeDeadlineSeconds", 60, "active_deadline"),
    ("add", "/spec/ttlSecondsAfterFinished", 60, "ttl_after_finished"),
    ("add", "/metadata/namespace", "x", "kubernetes.namespace"),
    ("replace", "/metadata/name", "x", "name"),
    ("replace", f"{POD}/shareProcessNamespace", False, ""),
    ("replace", f"{TRAIN}/name", "x", ""),
    ("replace", "/kind", "CronJob", "kubernetes.kind"),
]


@pytest.mark.parametrize(
    ("op", "path", "value", "field"), OPERATIONS, ids=[f"{each[0]}{each[1]}" for each in OPERATIONS]
)
def test_a_json_patch_changes_nothing_of_the_plan(tmp_path: Path, op: str, path: str, value: Any, field: str) -> None:
    """Each field of the pod and its Job that the plan owns; the operation is blamed, not the one before it."""
    harmless = {"op": "add", "path": "/spec/suspend", "value": True}
    operation = {"op": op, "path": path} | ({} if op == "remove" else {"value": value})
    found = refusals(patched_plan(tmp_path, "kubernetes", [harmless, operation]))
    assert {each[:2] for each in found} == {("TL146", "patches.kubernetes.1")}
    assert field in instead(found)


@pytest.mark.parametrize(
    "value",
    [
        {"name": "side", "image": "x:1", "securityContext": CONFINED},
        {"name": "side", "image": "x:1", "securityContext": CONFINED, "resources": {"limits": {"cpu": "1"}}},
    ],
)
@pytest.mark.parametrize("path", [f"{POD}/containers/-", f"{POD}/initContainers"])
def test_an_added_container_needs_a_memory_limit(tmp_path: Path, path: str, value: dict[str, Any]) -> None:
    """One without takes the pod's own limit away, and with it the bound on /dev/shm."""
    added: Any = [value] if path.endswith("initContainers") else value
    (found,) = refusals(patched_plan(tmp_path, "kubernetes", [{"op": "add", "path": path, "value": added}]))
    assert found[2].startswith("add resources: {limits: {memory: 256Mi}}")
    limited = {**value, "resources": {"limits": {"memory": "64Mi"}}}
    added = [limited] if path.endswith("initContainers") else limited
    plan = patched_plan(tmp_path, "kubernetes", [{"op": "add", "path": path, "value": added}])
    assert verified(plan, render(plan))


def test_a_change_that_is_taken_back_is_none(tmp_path: Path) -> None:
    """Only the final text counts."""
    path = f"{TRAIN}/image"
    there_and_back = [{"op": "replace", "path": path, "value": each} for each in ("other:1", "trainer:1")]
    plan = patched_plan(tmp_path, "kubernetes", there_and_back)
    assert verified(plan, render(plan))


def test_a_variable_of_a_flag_that_the_plan_decides_is_refused(tmp_path: Path) -> None:
    """Threads follow from the CPUs; the job's own env is where they are stated."""
    (found,) = refusals(patched_plan(tmp_path, "docker", {"extra_args": ["-e", "OMP_NUM_THREADS=9"]}))
    assert found == (
        "TL146",
        "patches.docker.extra_args.0",
        "write env.OMP_NUM_THREADS instead, and delete this part of the patch",
    )


@pytest.mark.parametrize(
    ("target", "patch", "before", "after"),
    [
        ("docker", {"extra_args": ["--privileged"]}, "  --privileged \\\n", ""),
        ("docker", {"extra_args": ["--privileged"]}, "  --privileged \\\n", "  --privileged \\\n  --ipc host \\\n"),
        ("docker", {"extra_args": ["--cap-add", "X"]}, "--cap-add X", "--cap-add Y"),
        ("compose", {"services": {"digits": {"privileged": True}}}, "privileged: true", "privileged: false"),
        (
            "compose",
            {"services": {"digits": {"privileged": True}}},
            "privileged: true",
            "privileged: true\n    tty: true",
        ),
        ("kubernetes", [{"op": "add", "path": "/spec/suspend", "value": True}], "suspend: true", "suspend: false"),
        ("kubernetes", [{"op": "add", "path": "/spec/suspend", "value": True}], "  suspend: true\n", ""),
    ],
)
def test_a_patched_text_is_the_plans_and_the_patch(
    tmp_path: Path, target: str, patch: Any, before: str, after: str
) -> None:
    """A changed text is not a rendering of the job, even where the patch itself may do the same."""
    plan = patched_plan(tmp_path, target, patch)
    text = render(plan)
    verify(plan, text)
    assert before in text
    with pytest.raises(RenderingDisagrees):
        verify(plan, text.replace(before, after))


POLICY = "max: {gpus: 1, memory: 8Gi, shm_size: 6Gi}\nallowed_registries: [docker.io/library]\nrequire_digest: true\n"
PINNED = "@sha256:" + "0" * 64


def pinned(**more: Any) -> dict[str, Any]:
    """Return a service that the policy allows, with changes."""
    return {"services": {"x": {"image": f"a:1{PINNED}", "mem_limit": "1g", **more}}}


def sidecar(image: str = f"a:1{PINNED}", limits: dict[str, Any] | None = None, **more: Any) -> list[dict[str, Any]]:
    """Return the addition of a container that the policy allows, with changes."""
    memory = {"limits": {"memory": "1Gi", **(limits or {})}}
    value = {"name": "x", "image": image, "resources": memory, "securityContext": CONFINED, **more}
    return [{"op": "add", "path": f"{POD}/containers/-", "value": value}]


@pytest.mark.parametrize(
    ("target", "patch", "code"),
    [
        ("docker", {"extra_args": ["--sysctl", "net.core.somaxconn=9", "--device=/dev/fuse"]}, ""),
        ("docker", {"extra_args": ["--device=/dev/nvidia0"]}, "TL140"),
        ("docker", {"extra_args": ["--runtime", "nvidia"]}, "TL140"),
        ("compose", {"services": {"digits": {"privileged": True}}}, "TL146"),
        ("compose", {"services": {"digits": {"devices": ["/dev/nvidia0"]}}}, "TL146"),
        ("compose", pinned(), ""),
        ("compose", pinned(image=f"a/b:1{PINNED}"), "TL146"),
        ("compose", pinned(image="a:1"), "TL146"),
        ("compose", {"services": {"x": {"image": f"a:1{PINNED}"}}}, "TL146"),
        ("compose", pinned(mem_limit="9g"), "TL146"),
        ("compose", pinned(shm_size="9g"), "TL146"),
        ("compose", pinned(gpus="all"), "TL146"),
        ("kubernetes", sidecar(), ""),
        ("kubernetes", sidecar(f"a/b:1{PINNED}"), "TL146"),
        ("kubernetes", sidecar("a:1"), "TL146"),
        ("kubernetes", sidecar(limits={"memory": "9Gi"}), "TL146"),
        ("kubernetes", sidecar(limits={"nvidia.com/gpu": 2}), "TL146"),
    ],
    ids=str,
)
def test_no_patch_passes_a_policy(tmp_path: Path, target: str, patch: Any, code: str) -> None:
    """Registries, digests and ceilings hold for what a patch adds; without the policy it is fine."""
    fields = {"image": f"trainer:1{PINNED}", "resources": {"cpus": 4, "memory": "4Gi"}}

    def attempt() -> str:
        plan = patched_plan(tmp_path, target, patch, **fields)
        return verified(plan, render(plan))

    assert attempt()
    (tmp_path / "trainlaunch-policy.yaml").write_text(POLICY)
    if not code:
        assert attempt()
        return
    with pytest.raises(JobFileRejected) as caught:
        attempt()
    assert {each.code for each in caught.value.diagnostics} == {code}


def test_a_committed_patched_text_is_current(tmp_path: Path) -> None:
    """`check` renders it again with its patch, and says where a patch has come to change the plan."""
    patch = {"services": {"digits": {"privileged": True}}}
    plan = patched_plan(tmp_path, "compose", patch)
    path = tmp_path / "digits.compose.yaml"
    path.write_text(render(plan, base=tmp_path))
    assert compared(path).status == "current"
    patched_plan(tmp_path, "compose", {"services": {"digits": {"privileged": False}}})
    assert compared(path).status == "differs"
    patched_plan(tmp_path, "compose", {"services": {"digits": {"shm_size": "1g"}}})
    checked = compared(path)
    assert checked.status == "rejected"
    assert [each.code for each in checked.findings] == ["TL146", "TL122"]
