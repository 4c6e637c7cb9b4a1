"""`policy export --mutating`: which pods a cluster repairs, by how much, and what it leaves; judged by CEL."""

from __future__ import annotations

import copy
import json
import re
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from trainlaunch.policy import api_server, policies_in
from trainlaunch.policy.admission import admission_documents
from trainlaunch.policy.api_server import Request, refusals, repaired
from trainlaunch.policy.pod_trial import LEFT as LEFT_ALONE
from trainlaunch.policy.pod_trial import REPAIRED as GIVEN
from trainlaunch.policy.pod_trial import try_pods
from trainlaunch.policy.repair_in_cel import as_maps, mutation
from trainlaunch.policy.training_in_cel import DOES_OTHER, HAS_OTHER_TASK, MAX_TEXT_LENGTH, SHOWS

from tests import plain_yaml
from tests.conftest import Runs
from tests.policy.cel import refusals as said_of
from tests.policy.foreign_pods import LEFT, REPAIRED
from tests.policy.pods import MAKERS, OF_SHM, WITHOUT_SHM, changed, cron_job, gpu_pod, job, job_set, pytorch_job

LABEL = "trainlaunch.dev/policy"
MOUNT = {"name": "trainlaunch-shm", "mountPath": "/dev/shm"}
# What Pod Security's level `restricted` lets a volume be.
RESTRICTED_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected"}


def exported(folder: Path, policy: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return the documents that repair, of a policy or of none."""
    (folder / ".git").mkdir(exist_ok=True)
    if policy is not None:
        (folder / "trainlaunch-policy.yaml").write_text(plain_yaml.dump(policy))
    return admission_documents(policies_in(folder), enforce=True, mutating="v1")


def one(documents: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    """Return the document of a kind and name."""
    return next(each for each in documents if each["kind"] == kind and each["metadata"]["name"] == name)


def after_repair(documents: list[dict[str, Any]], pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod as the mutating policy makes it."""
    policy = one(documents, "MutatingAdmissionPolicy", "trainlaunch-repair")
    return repaired(policy, mutation(as_maps), Request(pod, labels={LABEL: "repair"}))[0]


def without_repair(pod: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
    """Return a repaired pod without what a repair adds, each part of which must be its list's last."""
    made = copy.deepcopy(pod)
    assert made["spec"]["volumes"].pop()["name"] == MOUNT["name"]
    containers = [*made["spec"]["containers"], *made["spec"].get("initContainers", [])]
    assert [each["volumeMounts"].pop() for each in containers] == [MOUNT] * len(containers)
    del made["metadata"]["annotations"]["trainlaunch.dev/repaired"]
    before = [*original["spec"]["containers"], *original["spec"].get("initContainers", [])]
    parts = [(made["spec"], original["spec"], "volumes"), (made["metadata"], original["metadata"], "annotations")]
    parts += [(new, old, "volumeMounts") for new, old in zip(containers, before, strict=True)]
    for new, old, key in parts:
        if key not in old and not new[key]:
            del new[key]
    return made


@pytest.mark.parametrize("name", REPAIRED)
def test_a_pod_without_dev_shm_gets_its_share_and_keeps_all_else(tmp_path: Path, name: str) -> None:
    """The size is half of the least limit; the pod then passes what validates, and a second pass changes nothing."""
    case, documents = REPAIRED[name], exported(tmp_path)
    pod = case["pod"]
    before = copy.deepcopy(pod)
    (trial,) = try_pods(documents, [pod])
    assert (trial.verdict, f" of {case['size']}Mi for " in trial.why) == (GIVEN, True), trial
    (warned,) = [words for policy, words in refusals(documents, Request(pod)) if policy == "trainlaunch-left"]
    assert warned.endswith(f"in a namespace labelled {LABEL}=repair it gets {case['size']}Mi")
    made = after_repair(documents, pod)
    assert made == trial.pod
    assert without_repair(made, pod) == pod == before
    volume = made["spec"]["volumes"][-1]
    assert volume == {"name": "trainlaunch-shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{case['size']}Mi"}}
    assert made["metadata"]["annotations"]["trainlaunch.dev/repaired"] == trial.why
    assert re.fullmatch(r"TL301: /dev/shm of \d+Mi for [\w, -]+, 1/2 of the memory limit", trial.why)
    assert said_of(documents, made) == []
    assert after_repair(documents, made) == made
    assert {key for each in made["spec"]["volumes"] for key in each} - {"name"} <= RESTRICTED_VOLUMES


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_sure_to_lack_it_is_left_and_why_is_said(tmp_path: Path, name: str) -> None:
    """No field changes; a cluster warns of pods that train, with the same reason, and of no other."""
    case, documents = LEFT[name], exported(tmp_path)
    pod = case["pod"]
    (trial,) = try_pods(documents, [pod])
    assert (trial.verdict != GIVEN, case["why"] in trial.why) == (True, True), trial
    assert after_repair(documents, pod) == pod
    if "claim" in name:  # what names no GPU is asked for nothing either
        assert trial.verdict == LEFT_ALONE
    said = [words for policy, words in refusals(documents, Request(pod)) if policy == "trainlaunch-left"]
    assert [case["why"] in words for words in said] == [True] * bool(case.get("warned"))
    assert all("\n" not in words and len(words) < 1024 for words in said)  # else a server drops it


@pytest.mark.parametrize(
    ("policy", "size"),
    [
        ({"shm_share": "1/4"}, "8192Mi"),
        ({"shm_share": "9/10"}, "29491Mi"),
        ({"max": {"shm_size": "4Gi"}}, "4096Mi"),
        ({"max": {"shm_size": "24Gi"}, "shm_share": "1/2"}, "16384Mi"),
    ],
)  # fmt: skip
def test_a_policy_says_the_share_and_the_most(tmp_path: Path, policy: dict[str, Any], size: str) -> None:
    """The lower of both."""
    documents = exported(tmp_path, policy)
    made = after_repair(documents, REPAIRED["lone-gpu"]["pod"])
    assert made["spec"]["volumes"][-1]["emptyDir"]["sizeLimit"] == size
    said = made["metadata"]["annotations"]["trainlaunch.dev/repaired"]
    assert ("max.shm_size" in said) == (size == "4096Mi")
    assert said_of(documents, made) == []


@pytest.mark.parametrize("share", ["1", "1/1", "3/2", "0/2", "1/0", "0.5", "50%", "1/16"])
def test_what_is_no_share_is_an_error_with_its_place(trainlaunch: Runs, tmp_path: Path, share: str) -> None:
    """A whole limit would leave nothing to the processes."""
    (tmp_path / "trainlaunch-policy.yaml").write_text(f"shm_share: {share}\n")
    done = trainlaunch("policy", "export", "--mutating", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "trainlaunch-policy.yaml:1:12" in done.stderr
    assert "a share below 1, like 1/2 or 3/4" in done.stderr


def test_the_lowest_share_of_several_policies_counts(tmp_path: Path) -> None:
    """As with ceilings: a nearer file only narrows."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "team").mkdir()
    (tmp_path / "trainlaunch-policy.yaml").write_text("shm_share: 1/4\n")
    (tmp_path / "team" / "trainlaunch-policy.yaml").write_text("shm_share: 3/4\n")
    documents = admission_documents(policies_in(tmp_path / "team"), enforce=True, mutating="v1")
    made = after_repair(documents, REPAIRED["lone-gpu"]["pod"])
    assert made["spec"]["volumes"][-1]["emptyDir"]["sizeLimit"] == "8192Mi"


@pytest.mark.parametrize("expression", [SHOWS, DOES_OTHER, HAS_OTHER_TASK], ids=["shows", "other", "task"])
def test_matching_the_longest_commands_stays_within_a_servers_budget(expression: str) -> None:
    """An API server cancels an expression that costs more than a million; it counts a tenth of a text's length, times a
    quarter of its pattern's."""
    patterns = re.findall(r't\.matches\(("(?:[^"\\]|\\.)*")\)', expression)
    assert len(patterns) >= 3
    assert sum(MAX_TEXT_LENGTH * 0.1 * len(json.loads(each)) * 0.25 for each in patterns) < 900_000


BARE = changed("spec.volumes.0", {"name": "data", "emptyDir": {}}, changed("spec.containers.0.volumeMounts", None))
BARE_JOB = job(template={"metadata": {}, "spec": BARE["spec"]})
TEMPLATES = {
    "Job": BARE_JOB,
    "CronJob": cron_job(BARE_JOB),
    "JobSet": changed("spec.replicatedJobs.0.template.spec.template.spec", BARE["spec"], job_set()),
    "PyTorchJob": changed(
        "spec.pytorchReplicaSpecs.Worker.template.spec",
        BARE["spec"],
        changed("spec.pytorchReplicaSpecs.Master.template.spec", BARE["spec"], copy.deepcopy(pytorch_job(1))),
    ),
}


@pytest.mark.parametrize("kind", TEMPLATES)
@pytest.mark.parametrize(("label", "passes"), [("repair", True), ("enforce", True), ("warn", False), ("", False)])
def test_what_makes_repairable_pods_may_be_applied_where_they_are_repaired(
    tmp_path: Path, kind: str, label: str, passes: bool
) -> None:
    """Else `kubectl apply` would refuse the Job whose pods the same cluster repairs."""
    documents = exported(tmp_path)
    found = said_of(documents, TEMPLATES[kind], labels={LABEL: label})
    assert any(WITHOUT_SHM in each for each in found) is not passes
    assert said_of(admission_documents(None, enforce=True), TEMPLATES[kind], labels={LABEL: label}) != []


@pytest.mark.parametrize("name", OF_SHM)
def test_what_makes_pods_that_are_left_is_refused_all_the_same(tmp_path: Path, name: str) -> None:
    """The exemption is of what is repaired alone: a template is refused where its pod, after all, would be."""
    documents = exported(tmp_path)
    pod, _ = OF_SHM[name]
    made = after_repair(documents, pod)
    template = job(template={"metadata": {"labels": pod["metadata"].get("labels") or {}}, "spec": pod["spec"]})
    assert bool(said_of(documents, template, labels={LABEL: "enforce"})) == bool(said_of(documents, made))


def test_other_rules_of_templates_hold_beside_a_repair(tmp_path: Path) -> None:
    """Ceilings and lists are asked as before."""
    policy = {"max": {"total_gpus": 16, "active_deadline": "1d"}, "allowed_queues": ["gpu"]}
    documents = exported(tmp_path, policy)
    for _, made, said in MAKERS:
        if said in {"at most 16 GPUs", "activeDeadlineSeconds", "queue-name with gpu"}:
            assert any(said in each for each in said_of(documents, made, labels={LABEL: "enforce"})), made


def test_the_text_is_applicable_at_each_version_of_the_api(trainlaunch: Runs, tmp_path: Path) -> None:
    """Strictly valid; labels say which namespaces are warned, repaired and refused, and a repair never stops a pod."""
    (tmp_path / ".git").mkdir()
    for api in ("v1", "v1beta1", "v1alpha1"):
        done = trainlaunch("policy", "export", "--mutating", "--enforce", "--api", api, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        documents = list(plain_yaml.load_all(done.stdout))
        for each in documents:
            if not (each["kind"].startswith("Mutating") and api == "v1alpha1"):
                kubernetes_validate.validate(each, "1.37", strict=True)
        versions = {each["apiVersion"] for each in documents if each["kind"].startswith("Mutating")}
        assert versions == {f"admissionregistration.k8s.io/{api}"}
        assert {each["apiVersion"] for each in documents if each["kind"].startswith("Validating")} == {
            "admissionregistration.k8s.io/v1"
        }
    bound: dict[str, dict[str, Any]] = {}
    for each in documents:
        if each["kind"].endswith("Binding"):
            selector = each["spec"]["matchResources"]["namespaceSelector"]
            for value in selector.get("matchLabels", {}).values() or selector["matchExpressions"][0]["values"]:
                bound.setdefault(value, {})[each["spec"]["policyName"]] = each["spec"].get("validationActions")
    says = ["Warn", "Audit"]
    judged = dict.fromkeys(("trainlaunch-pods", "trainlaunch-templates", "trainlaunch-left"), says)
    assert bound["warn"] == judged
    assert bound["repair"] == {**judged, "trainlaunch-repair": None}
    assert bound["enforce"] == {
        "trainlaunch-pods": ["Deny"],
        "trainlaunch-templates": ["Deny"],
        "trainlaunch-left": says,
        "trainlaunch-repair": None,
    }
    spec = one(documents, "MutatingAdmissionPolicy", "trainlaunch-repair")["spec"]
    assert (spec["failurePolicy"], spec["reinvocationPolicy"]) == ("Ignore", "IfNeeded")
    assert spec["matchConstraints"]["resourceRules"][0]["operations"] == ["CREATE"]


def test_without_the_option_an_export_is_as_before(trainlaunch: Runs, tmp_path: Path) -> None:
    """Nobody who only refuses gets a policy that changes pods."""
    (tmp_path / ".git").mkdir()
    done = trainlaunch("policy", "export", cwd=tmp_path)
    assert "Mutating" not in done.stdout
    assert "repair" not in done.stdout
    for options in (["--api", "v1"], ["--try", "-"]):
        done = trainlaunch("policy", "export", *options, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "add --mutating" in done.stderr


def test_a_dry_run_lists_each_pod_of_a_cluster(trainlaunch: Runs, tmp_path: Path) -> None:
    """Of a List as kubectl prints it, as YAML or JSON; the code says whether one would be refused."""
    (tmp_path / ".git").mkdir()
    pods = [REPAIRED["lone-gpu"]["pod"], LEFT["nginx"]["pod"], LEFT["no-memory-limit"]["pod"], LEFT["gpu-of-0"]["pod"]]
    named = [changed("metadata.name", f"p{number}", pod) for number, pod in enumerate(pods)]
    (tmp_path / "pods.yaml").write_text(plain_yaml.dump({"apiVersion": "v1", "kind": "List", "items": named}))
    done = trainlaunch("policy", "export", "--mutating", "--try", "pods.yaml", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert [each.split(":")[0].split() for each in done.stdout.splitlines()] == [
        ["repaired", "training/p0"],
        ["left", "training/p1"],
        ["refused", "training/p2"],
        ["left", "training/p3"],
    ]
    assert "mounted at /dev/shm, writable and whole; without it /dev/shm has 64 MiB. Not repaired: " in done.stdout
    assert "there is no memory limit to share: x needs one" in done.stdout
    assert "1 repaired, 2 left, 1 refused" in done.stderr
    (tmp_path / "pods.yaml").write_text("---\n".join(plain_yaml.dump(each) for each in named[:2]))
    assert trainlaunch("policy", "export", "--mutating", "--try", "pods.yaml", cwd=tmp_path).returncode == 0


GROWING = "".join(f"a{each}: &a{each} [{f'*a{each - 1}, ' * 9}]\n" for each in range(1, 20))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it has no pod"),
        ("kind: Service\n", "it has no pod, but 1 of kind Service"),
        ("{apiVersion: foo.io/v1, kind: Pod, spec: {}}", "it has no pod, but 1 of kind Pod"),
        ("a: [\n", "line 2, column 1"),
        ("{'a': 1}", "no pod"),
        ("&a [*a]", "more than 64 levels"),
        ("kind: Pod\nspec: &a {containers: [*a]}", "more than 64 levels"),
        ("[" * 30_000, "more than 64 levels"),
        ("[ " * 3_000 + "\n- x", "more than 64 levels"),
        ("- " * 3_000, "more than 64 levels"),
        ('{"a":' * 30_000, "more than 64 levels"),
        (
            "\n".join(
                ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]" for n in range(1, 30)] + ["items: *a29"]
            ),
            "",
        ),
        ("kind: Pod\nspec: {containers: [{args: [x, null]}]}", "Pod.spec.containers[0].args[1] is null"),
        ("? [a]\n: b", "line 1"),
        ("kind: !!python/object:os.system x", "line 1, column 7"),
        (b"\x00\xff\xfe", "it is no text: byte 1"),
        (b"\xff\xfe\x00", "it is no text"),
    ],
)
def test_what_has_no_pods_is_an_error_that_says_so(
    trainlaunch: Runs, tmp_path: Path, text: str | bytes, said: str
) -> None:
    """Exit 2, and nothing is listed."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "pods.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    done = trainlaunch("policy", "export", "--mutating", "--try", "pods.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert (said in done.stderr, "TL118" in done.stderr) == (True, True), done.stderr


@pytest.mark.parametrize(
    "part",
    [
        "command: [test, $(cat /tmp/ok), =, '1']",
        "command: [sh, -c, <<, =]",
        "command: [sh, 1:30, 2020-13-45, 2020-01-01]",
        "command: [sh, 99999999999999999999999]",
        'command: [sh, "\\0"]',
        "resources: {requests: {cpu: 99999999999999999999999}}",
        "2020-01-01: x",
        "~: x",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_plain_scalars_are_read_as_kubernetes_reads_them(
    trainlaunch: Runs, tmp_path: Path, part: str, encoding: str
) -> None:
    """One odd word of one pod stops no dry run of a whole cluster; nor does what is no pod."""
    (tmp_path / ".git").mkdir()
    odd = f"kind: Pod\nmetadata: {{name: odd}}\nspec: {{containers: [{{name: x, {part}}}]}}\n"
    good = plain_yaml.dump({key: value for key, value in REPAIRED["lone-gpu"]["pod"].items() if key != "metadata"})
    (tmp_path / "pods.yaml").write_text(f"{odd}---\n{good}---\nkind: Job\n", encoding=encoding)
    done = trainlaunch("policy", "export", "--mutating", "--try", "pods.yaml", cwd=tmp_path)
    assert [each.split(":")[0].split() for each in done.stdout.splitlines()] == [
        ["left", "default/odd"],
        ["repaired", "default/"],
    ], done.stderr
    assert "1 of kind Job" in done.stderr


def test_the_folder_may_stand_behind_options(trainlaunch: Runs, tmp_path: Path) -> None:
    """As before them; a second one is as unknown as ever."""
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "trainlaunch-policy.yaml").write_text("max: {shm_size: 1Gi}\n")
    before = trainlaunch("policy", "export", "team", "--mutating", "--api", "v1", cwd=tmp_path)
    assert (before.returncode, "max.shm_size" in before.stdout) == (0, True), before.stderr
    for words in (("export", "--mutating", "--api", "v1", "team"), ("--mutating", "export", "--api", "v1", "team")):
        done = trainlaunch("policy", *words, cwd=tmp_path)
        assert (done.stdout, done.stderr) == (before.stdout, before.stderr)
    assert trainlaunch("policy", "export", "team", "--mutating", "team", cwd=tmp_path).returncode == 2


def test_a_cluster_without_pods_has_none_to_try(trainlaunch: Runs, tmp_path: Path) -> None:
    """An empty List is no error; no file, and two, are."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "pods.yaml").write_text(r'{"kind": "Pod", "spec": {"containers": [{"name": "x", "args": ["\ud800"]}]}}')
    assert trainlaunch("policy", "export", "--mutating", "--try", "pods.yaml", cwd=tmp_path).returncode == 0
    (tmp_path / "pods.yaml").write_text("apiVersion: v1\nitems: []\nkind: List\n")
    tried = ("policy", "export", "--mutating", "--try")
    done = trainlaunch(*tried, "pods.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout, "0 repaired, 0 left" in done.stderr) == (0, "", True)
    for words, said in ((("",), "has no file"), (("pods.yaml", "--try", "-"), "is there twice")):
        done = trainlaunch(*tried, *words, cwd=tmp_path)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_dry_run_without_its_extra_says_what_to_install(
    trainlaunch: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter of CEL is nobody's but who asks for a dry run."""
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    api_server._environment.cache_clear()
    api_server._compiled.cache_clear()
    (tmp_path / ".git").mkdir()
    (tmp_path / "pods.yaml").write_text(plain_yaml.dump(REPAIRED["lone-gpu"]["pod"]))
    done = trainlaunch("policy", "export", "--mutating", "--try", "pods.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'trainlaunch[cel]'" in done.stderr
    assert trainlaunch("policy", "export", "--mutating", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    "part",
    [
        {"metadata": ["x"]},
        {"metadata": {"annotations": "x"}},
        {"metadata": {"ownerReferences": [[]]}},
        {"spec": None},
        {"spec": []},
        {"spec": {"containers": []}},
        {"spec": {"containers": ["x"]}},
        {"spec": {"containers": [{"name": "x", "resources": {"limits": {"nvidia.com/gpu": "many"}}}]}},
        {"spec": {"containers": [{"name": "x", "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "much"}}}]}},
        {"spec": {"containers": [{"name": "x", "command": "python train.py"}], "volumes": {}}},
        {"spec": {**REPAIRED["lone-gpu"]["pod"]["spec"], "volumes": {}}},
        {"spec": {**REPAIRED["lone-gpu"]["pod"]["spec"], "initContainers": ["x"]}},
    ],
)
def test_a_pod_that_no_server_takes_is_left(tmp_path: Path, part: dict[str, Any]) -> None:
    """Of whatever shape somebody's text is; the others of the same file are tried all the same."""
    good = REPAIRED["lone-gpu"]["pod"]
    trials = try_pods(exported(tmp_path), [{**good, **part}, good])
    assert [each.verdict for each in trials] == [LEFT_ALONE, GIVEN]


def test_pods_by_a_controller_need_no_deadline_in_a_dry_run(tmp_path: Path) -> None:
    """A pod of a Job has its Job's, as on a server; one by hand needs its own."""
    documents = exported(tmp_path, {"max": {"active_deadline": "1d"}})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "1", "controller": True}
    own = changed("spec.activeDeadlineSeconds", None, gpu_pod())
    trials = try_pods(documents, [own, changed("metadata.ownerReferences", [owner], own)])
    assert [each.verdict for each in trials] == ["refused", "left"]
