"""The kubernetes target's manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from trainlaunch.container.kubernetes import kubernetes_name
from trainlaunch.errors import JobFileRejected
from trainlaunch.formats.kubernetes.environment import expanded
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.target_names import shortened
from trainlaunch.render import render
from trainlaunch.rules import check_plan, plan_job
from trainlaunch.verify import verified

from tests import plain_yaml
from tests.jobs import job_with, plan_with
from tests.render.jobs import JOBS, job_plan

NEWEST = kubernetes_validate.latest_version()
LIMITS = {"cpus": 2, "memory": "4Gi"}


def manifest(plan: LaunchPlan) -> dict[str, Any]:
    """Return a verified manifest, parsed."""
    found: dict[str, Any] = plain_yaml.load(verified(plan, render(plan)))
    return found


def pod_spec(plan: LaunchPlan) -> dict[str, Any]:
    """Return the pod's spec of a verified manifest."""
    spec: dict[str, Any] = manifest(plan)["spec"]
    inner: dict[str, Any] = spec["template"]["spec"] if "template" in spec else spec
    return inner


@pytest.mark.parametrize("version", ["1.31", NEWEST])
@pytest.mark.parametrize("job", JOBS)
def test_the_manifest_fits_the_api_strictly(job: str, version: str) -> None:
    """The API's own schema, with unknown fields refused, accepts the manifest."""
    kubernetes_validate.validate(manifest(job_plan(job, "kubernetes")), version, strict=True)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$(NOPE)", "$(NOPE)"),
        ("$$$(A)", "$1"),
        ("$A", "$A"),
        ("${A}", "${A}"),
        ("$", "$"),
        ("$(A", "$(A"),
        ("$$", "$"),
        ("$$VAR", "$VAR"),
        ("a$$b", "a$b"),
        ("$(df -k /dev/shm)", "$(df -k /dev/shm)"),
        ("$((1+2))", "$((1+2))"),
        ("$(B)", "a b $(A)"),
    ],
)
def test_the_model_of_expansion_is_the_kubelets_own(text: str, meaning: str) -> None:
    """verify's model of `$(VAR)` gives what the kubelet's own function gave; values are not expanded again."""
    assert expanded(text, {"A": "1", "B": "a b $(A)"}) == meaning


def test_every_container_sees_a_sized_shm_in_memory() -> None:
    """/dev/shm is an emptyDir with medium Memory, in that spelling, and sizeLimit in whole MiB."""
    spec = pod_spec(job_plan("full", "kubernetes"))
    volumes = {each["name"]: each for each in spec["volumes"]}
    assert volumes["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "5559Mi"}
    for container in spec["containers"]:
        assert {"name": "shm", "mountPath": "/dev/shm"} in container["volumeMounts"]


@pytest.mark.parametrize("job", JOBS)
def test_no_memory_volume_is_without_a_size(job: str) -> None:
    """An unsized one would be as large as the node's memory."""
    empty = [each.get("emptyDir", {}) for each in pod_spec(job_plan(job, "kubernetes"))["volumes"]]
    assert all("sizeLimit" in each for each in empty if each.get("medium") == "Memory")


def test_memory_and_devices_are_requested_as_they_are_limited() -> None:
    """request = limit: tmpfs counts as use, and the scheduler knows only requests."""
    resources = pod_spec(job_plan("full", "kubernetes"))["containers"][0]["resources"]
    assert resources["requests"] == resources["limits"]
    assert resources["limits"] == {
        "cpu": "7500m",
        "memory": "32768Mi",
        "ephemeral-storage": "20480Mi",
        "nvidia.com/gpu": "2",
        "rdma/hca": "1",
    }


@pytest.mark.parametrize("job", JOBS)
def test_pod_security_restricted_accepts_the_pod(job: str) -> None:
    """Each control of the level `restricted` that concerns a pod of ours holds."""
    spec = pod_spec(job_plan(job, "kubernetes"))
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostIPC", "hostPID", "hostNetwork"} & set(spec)
    allowed = {"emptyDir", "persistentVolumeClaim", "configMap", "secret"}
    assert all(set(each) - {"name"} <= allowed for each in spec["volumes"])
    for container in spec["containers"]:
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_a_user_of_the_job_is_kept_and_an_unstated_one_is_1000(tmp_path: Path) -> None:
    """uid, gid and fsGroup are always stated; a uid without group gets 1000."""
    for user, ids in ((None, (1000, 1000)), ("1234", (1234, 1000)), ("1234:0", (1234, 0)), ("7:8", (7, 8))):
        context = pod_spec(plan_with(tmp_path, "kubernetes", user=user, resources=LIMITS))["securityContext"]
        assert (context["runAsUser"], context["runAsGroup"]) == ids
        assert (context["fsGroup"], context["fsGroupChangePolicy"]) == (1000, "OnRootMismatch")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("user", "0", "root"),
        ("user", "0:1000", "root"),
        ("user", "root", "named users"),
        ("user", "1000:video", "named users"),
        ("group_add", ["video"], "named groups"),
    ],
)
def test_users_that_restricted_refuses_are_errors_with_their_place(
    tmp_path: Path, field: str, value: object, said: str
) -> None:
    """Root and names, which the API server can't look up, stop the rendering and name the number to write."""
    asked: dict[str, Any] = {field: value}
    with pytest.raises(JobFileRejected) as stopped:
        plan_with(tmp_path, "kubernetes", resources=LIMITS, **asked)
    (found,) = stopped.value.diagnostics
    assert found.code == "TL401"
    assert said in found.message
    assert found.span is not None
    assert found.field.startswith(field)
    assert any(digit in found.fix for digit in "1") or "getent" in found.fix
    render(plan_with(tmp_path, "docker", resources=LIMITS, **asked))


@pytest.mark.parametrize(("stated", "own"), [({}, False), ({"HOME": "/mine"}, True)])
def test_name_and_home_are_the_preflights_affair(tmp_path: Path, stated: dict[str, str], own: bool) -> None:
    """It alone sees whether the image's user has them; a home that the job states is the job's own affair."""
    plan = plan_with(tmp_path, "kubernetes", resources=LIMITS, env=stated)
    spec = pod_spec(plan)
    env = {each["name"]: each["value"] for each in spec["containers"][0]["env"]}
    numbers = env.pop("TRAINLAUNCH_PLAN")
    assert (env, " home=own" in numbers) == (stated, own)
    assert [each["name"] for each in spec["volumes"]] == ["shm"]


def test_a_read_only_root_brings_its_own_tmp(tmp_path: Path) -> None:
    """The root is read-only and /tmp a volume; both only when asked for."""
    plain = pod_spec(plan_with(tmp_path, "kubernetes", resources=LIMITS))
    assert "readOnlyRootFilesystem" not in plain["containers"][0]["securityContext"]
    locked = pod_spec(plan_with(tmp_path, "kubernetes", resources=LIMITS, read_only=True))
    assert locked["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    assert {"name": "tmp", "emptyDir": {}} in locked["volumes"]


def test_only_gpu_jobs_tolerate_gpu_nodes(tmp_path: Path) -> None:
    """The taints that GPU nodes carry are tolerated: the resource's own name, and the vendor's."""
    assert "tolerations" not in pod_spec(plan_with(tmp_path, "kubernetes", resources=LIMITS))
    for resource, keys in (
        ("nvidia.com/gpu", ["nvidia.com/gpu"]),
        ("nvidia.com/mig-1g.10gb", ["nvidia.com/mig-1g.10gb", "nvidia.com/gpu"]),
        ("amd.com/gpu", ["amd.com/gpu"]),
    ):
        asked = {"gpus": 1, "gpu_vendor": resource.partition(".")[0], "gpu_resource": resource}
        spec = pod_spec(plan_with(tmp_path, "kubernetes", resources={**LIMITS, **asked}))
        assert spec["tolerations"] == [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys]
        assert spec["containers"][0]["resources"]["limits"][resource] == "1"


def test_gpus_of_amd_have_its_own_resource(tmp_path: Path) -> None:
    """Asked for by the vendor's name; a cluster that partitions them has other names."""
    amd = {**LIMITS, "gpus": 2, "gpu_vendor": "amd"}
    spec = pod_spec(plan_with(tmp_path, "kubernetes", resources=amd))
    assert spec["containers"][0]["resources"]["limits"]["amd.com/gpu"] == "2"
    named = {**amd, "gpu_resource": "amd.com/cpx_nps4"}
    spec = pod_spec(plan_with(tmp_path, "kubernetes", resources=named))
    assert "amd.com/gpu" not in str(spec["containers"][0]["resources"])


def test_a_secret_as_a_file_is_one_key_at_the_place_that_engines_have(tmp_path: Path) -> None:
    """One file each, so that nothing else in /run/secrets is hidden; readable by the pod's group, not by the world."""
    secrets = {
        "TOKEN": {"env": "TOKEN", "kubernetes": "hub/token", "as": "file"},
        "KEY": {"file": "./key", "kubernetes": "storage/ssh.key", "as": "file"},
        "PLAIN": {"file": "./plain", "kubernetes": "storage/plain"},
    }
    plan = plan_with(tmp_path, "kubernetes", resources=LIMITS, secrets=secrets)
    verified(plan, render(plan))
    spec = pod_spec(plan)
    container = spec["containers"][0]
    env = {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}
    assert (env["TOKEN_FILE"], env["KEY_FILE"]) == ("/run/secrets/TOKEN", "/run/secrets/KEY")
    assert env["PLAIN"] == {"secretKeyRef": {"name": "storage", "key": "plain"}}
    assert not {"TOKEN", "KEY", "PLAIN_FILE"} & set(env)
    mounts = [each for each in container["volumeMounts"] if each["mountPath"].startswith("/run")]
    assert [(each["mountPath"], each["subPath"], each["readOnly"]) for each in mounts] == [
        ("/run/secrets/TOKEN", "value", True),
        ("/run/secrets/KEY", "value", True),
    ]
    volumes = {each["name"]: each.get("secret") for each in spec["volumes"]}
    items = [{"key": "ssh.key", "path": "value"}]
    assert volumes[mounts[1]["name"]] == {"secretName": "storage", "defaultMode": 0o440, "items": items}


def test_a_job_is_not_retried_where_a_retry_ends_the_same_way(tmp_path: Path) -> None:
    """78 and codes of a command that never ran fail the Job, 75 counts, a drained node is ignored; values ascend."""
    spec = manifest(plan_with(tmp_path, "kubernetes", resources=LIMITS, restart={"max_attempts": 4}))["spec"]
    assert spec["backoffLimit"] == 3
    rules = spec["podFailurePolicy"]["rules"]
    assert [(each["action"], each.get("onExitCodes", {}).get("values")) for each in rules] == [
        ("FailJob", [78, 125, 126, 127]),
        ("Ignore", None),
    ]
    assert {each["onExitCodes"]["containerName"] for each in rules if "onExitCodes" in each} == {"train"}
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


def test_exit_codes_that_are_stated_are_the_only_ones_retried(tmp_path: Path) -> None:
    """75 is among them, ascending and each once, as the API wants; any other code fails the Job."""
    restart = {"max_attempts": 4, "on_exit_codes": [137, 1, 137]}
    for kind in ("job", "jobset"):
        fields = {"resources": LIMITS, "restart": restart, "kubernetes": {"kind": kind}}
        spec = manifest(plan_with(tmp_path, "kubernetes", **fields))["spec"]
        job = spec if kind == "job" else spec["replicatedJobs"][0]["template"]["spec"]
        rules = [each["onExitCodes"] | {"does": each["action"]} for each in job["podFailurePolicy"]["rules"][2:]]
        assert [(each["does"], each["operator"], each["values"]) for each in rules] == [
            ("Count", "In", [1, 75, 137]),
            ("FailJob", "NotIn", [1, 75, 137]),
        ]


def test_a_backoff_is_a_comment_that_names_the_clusters_own(tmp_path: Path) -> None:
    """One file fits all targets; no field of Kubernetes says it, and no name depends on it."""
    restart = {"max_attempts": 3, "backoff": "30s"}
    text = render(plan_with(tmp_path, "kubernetes", resources=LIMITS, restart=restart))
    assert "# restart.backoff 30s is not in effect: its controller waits 10 s before the second attempt" in text
    without = plan_with(tmp_path, "kubernetes", resources=LIMITS, restart={"max_attempts": 3})
    assert without_comments(text) == without_comments(render(without))


def without_comments(text: str) -> list[str]:
    """Return the lines that an API server reads."""
    return [line for line in text.splitlines() if not line.lstrip().startswith("#")]


def test_signals_and_tokens(tmp_path: Path) -> None:
    """The pod's own pid 1 forwards SIGTERM, the grace period is the job's, no token of the cluster is mounted."""
    spec = pod_spec(plan_with(tmp_path, "kubernetes", resources=LIMITS, stop_grace_period="2m"))
    assert spec["shareProcessNamespace"] is True
    assert spec["automountServiceAccountToken"] is False
    assert spec["terminationGracePeriodSeconds"] == 120


def test_a_jobs_name_carries_its_input_hash_unless_it_is_fixed(tmp_path: Path) -> None:
    """A Job's template can't change, so other input is another Job; --name and Pods keep the name."""
    plan = plan_with(tmp_path, "kubernetes", resources=LIMITS)
    name = manifest(plan)["metadata"]["name"]
    assert name.startswith("digits-")
    assert len(name) == len("digits-") + 8
    fixed = plan._replace(name="mine", name_fixed=True)
    assert manifest(fixed)["metadata"]["name"] == "mine"
    pod = plan_with(tmp_path, "kubernetes", resources=LIMITS, kubernetes={"kind": "pod"})
    assert manifest(pod)["metadata"]["name"] == "digits"


@pytest.mark.parametrize("length", [54, 55, 63])
def test_a_long_name_is_shortened_the_same_way_each_time(tmp_path: Path, length: int) -> None:
    """With its suffix a name has at most 63 characters, and two long names with one start stay different."""
    names = ["a" * (length - 1) + last for last in "bc"]
    plans = [plan_job(job_with(tmp_path, "kubernetes", name=name, resources=LIMITS)) for name in names]
    made = [manifest(plan)["metadata"]["name"] for plan in plans]
    assert len({*made}) == 2
    assert all(len(each) <= 63 for each in made)
    assert [kubernetes_name(plan) for plan in plans] == made
    notes = [each.code for each in check_plan(plans[0]) if each.code == "TL402"]
    assert notes == (["TL402"] if length > 54 else [])


def test_shortening_leaves_a_valid_label() -> None:
    """A cut behind a dash loses the dash, and a short name is left alone."""
    assert shortened("short", 20) == "short"
    cut = shortened("abcdefghij-klmnopqrst", 20)
    assert cut.startswith("abcdefghij-")
    assert "--" not in cut
    assert len(cut) <= 20


def test_a_mount_point_that_a_pod_cannot_have_is_an_error(tmp_path: Path) -> None:
    """mountPath holds no colon."""
    with pytest.raises(JobFileRejected, match="TL401"):
        plan_with(tmp_path, "kubernetes", resources=LIMITS, mounts=[{"type": "scratch", "target": "/a:b"}])


@pytest.mark.parametrize("key", ["dev.trainlaunch.job", "trainlaunch.dev/job"])
@pytest.mark.parametrize("target", ["docker", "compose", "kubernetes"])
def test_labels_of_ours_cannot_be_taken(tmp_path: Path, target: str, key: str) -> None:
    """By these labels runs are found again; a job that sets one is told to choose another prefix."""
    with pytest.raises(JobFileRejected, match="TL401"):
        plan_with(tmp_path, target, resources=LIMITS, labels={key: "x"})


@pytest.mark.parametrize("target", ["docker", "compose"])
def test_a_label_key_with_an_equals_sign_is_an_error(tmp_path: Path, target: str) -> None:
    """docker would take what follows the sign for the value."""
    with pytest.raises(JobFileRejected, match="TL401"):
        plan_with(tmp_path, target, labels={"a=b": "c"})


@pytest.mark.parametrize("key", ["a/b/c", "-a", "UPPER.example/a", "a" * 64])
def test_an_annotation_key_that_the_api_refuses_is_an_error(tmp_path: Path, key: str) -> None:
    """A manifest that the API server would refuse is not written; good keys pass."""
    with pytest.raises(JobFileRejected, match="TL401"):
        plan_with(tmp_path, "kubernetes", resources=LIMITS, annotations={key: "x"})
    good = {"example.com/owner": "any text: $HOME\n", "plain": ""}
    plan = plan_with(tmp_path, "kubernetes", resources=LIMITS, annotations=good)
    assert manifest(plan)["metadata"]["annotations"].items() >= good.items()


@pytest.mark.parametrize("target", ["docker", "compose"])
def test_a_path_with_a_control_character_is_an_error(tmp_path: Path, target: str) -> None:
    """docker reads mounts as CSV, in which a carriage return can't be written."""
    mounts = [{"type": "bind", "source": "./a\r\nb", "target": "/a"}]
    with pytest.raises(JobFileRejected, match="TL401"):
        plan_with(tmp_path, target, mounts=mounts)


def test_the_users_own_app_label_wins(tmp_path: Path) -> None:
    """A job that sets a well-known label keeps it."""
    plan = plan_with(tmp_path, "kubernetes", resources=LIMITS, labels={"app.kubernetes.io/name": "mine"})
    assert manifest(plan)["metadata"]["labels"]["app.kubernetes.io/name"] == "mine"


@pytest.mark.parametrize("level", ["restricted", "baseline", "privileged"])
def test_assigned_ids_are_left_to_the_cluster(tmp_path: Path, level: str) -> None:
    """OpenShift gives each namespace a range of uids and refuses pods that state others."""
    plan = plan_with(tmp_path, "kubernetes", resources=LIMITS, kubernetes={"run_as": "assigned", "pod_security": level})
    spec = pod_spec(plan)
    context = spec.get("securityContext", {})
    assert not {"runAsUser", "runAsGroup", "fsGroup", "fsGroupChangePolicy"} & context.keys()
    assert context.get("runAsNonRoot", False) is (level == "restricted")


@pytest.mark.parametrize(("field", "stated"), [("user", {"user": "1000"}), ("kubernetes.fs_group", {"fs_group": 7})])
def test_assigned_ids_beside_stated_ones_are_an_error(tmp_path: Path, field: str, stated: dict[str, Any]) -> None:
    """Of two wishes neither is dropped."""
    own = {key: value for key, value in stated.items() if key == "fs_group"}
    top = {key: value for key, value in stated.items() if key != "fs_group"}
    with pytest.raises(JobFileRejected) as stopped:
        plan_with(tmp_path, "kubernetes", resources=LIMITS, kubernetes={"run_as": "assigned", **own}, **top)
    (found,) = stopped.value.diagnostics
    assert (found.code, found.field) == ("TL109", field)
