"""`policy export`: pods that pass and pods that are refused, judged by CEL as an API server judges them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from trainlaunch.kinds import KINDS
from trainlaunch.policy import policies_in
from trainlaunch.policy.admission import admission_documents
from trainlaunch.policy.registry import in_registry, registry_pattern
from trainlaunch.render import render

from tests import plain_yaml
from tests.conftest import Runs
from tests.jobs import plan_with
from tests.policy.cel import refusals
from tests.policy.pods import ASKED, DIGEST, MAKERS, NONE_OF_OURS, OF_SHM, PASSES, changed, job

POLICY: dict[str, Any] = {
    "max": {"memory": "64Gi", "cpus": 8, "gpus": 8, "total_gpus": 16, "shm_size": "8Gi", "active_deadline": "1d"},
    "required_labels": {"team": "[a-z-]+"},
    "allowed_registries": ["registry.example.com/ml"],
    "allowed_queues": ["gpu"],
    "allowed_namespaces": ["training"],
    "allowed_service_accounts": ["trainer"],
    "allowed_claims": ["data"],
    "allowed_capabilities": ["CAP_SYS_PTRACE"],
    "allowed_priority_classes": ["low"],
    "allowed_pod_security": ["restricted"],
    "forbid_token": True,
    "require_digest": True,
}


def exported(folder: Path, policy: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the documents of a policy, or of none."""
    (folder / ".git").mkdir(exist_ok=True)
    if policy is not None:
        (folder / "trainlaunch-policy.yaml").write_text(plain_yaml.dump(policy))
    return admission_documents(policies_in(folder), enforce=True)


@pytest.mark.parametrize("name", OF_SHM)
def test_a_pod_without_a_sized_volume_in_memory_is_refused(tmp_path: Path, name: str) -> None:
    """Whatever the policy says, an empty one too; a rule says what is missing and nothing else is said."""
    pod, expected = OF_SHM[name]
    for policy in (None, {}):
        said = refusals(exported(tmp_path, policy), pod)
        assert len(said) == len(expected)
        assert all(any(part in each for each in said) for part in expected)


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("policy", [None, POLICY], ids=["none", "all"])
def test_a_good_pod_passes(tmp_path: Path, name: str, policy: dict[str, Any] | None) -> None:
    """Under an empty policy and under one that asks for everything."""
    assert refusals(exported(tmp_path, policy), PASSES[name]) == []


@pytest.mark.parametrize("name", NONE_OF_OURS)
def test_other_pods_are_left_alone(tmp_path: Path, name: str) -> None:
    """Neither the launcher's nor with a GPU: not ours to judge."""
    assert refusals(exported(tmp_path, POLICY), NONE_OF_OURS[name]) == []


@pytest.mark.parametrize(("pod", "said"), [each[1:] for each in ASKED], ids=[each[0] for each in ASKED])
def test_what_a_policy_asks_is_asked_of_pods(tmp_path: Path, pod: dict[str, Any], said: str) -> None:
    """Exactly one rule speaks, and without the policy none does."""
    (only,) = [each for each in refusals(exported(tmp_path, POLICY), pod) if said in each]
    assert only.startswith("trainlaunch: ")
    (tmp_path / "trainlaunch-policy.yaml").unlink()
    assert refusals(exported(tmp_path, None), pod) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gpus", [0, 2])
def test_our_own_renderings_pass(tmp_path: Path, kind: str, gpus: int) -> None:
    """Each object of each kind, and the pods of its template."""
    plan = plan_with(
        tmp_path,
        "kubernetes",
        image=DIGEST,
        labels={"team": "vision"},
        active_deadline="1h",
        shm_size="4Gi",
        resources={"cpus": 4, "memory": "32Gi", "gpus": gpus},
        kubernetes={
            "kind": kind,
            "namespace": "training",
            "service_account": "trainer",
            **({} if kind == "pod" else {"queue": "gpu"}),
        },
    )
    documents = exported(tmp_path, POLICY)
    made = list(plain_yaml.load_all(render(plan)))
    said = {each["kind"]: refusals(documents, each) for each in made}
    assert said == {name: [] for name in said}
    assert any(each["spec"]["matchConstraints"] for each in documents if "matchConstraints" in each["spec"])


@pytest.mark.parametrize(("made", "said"), [each[1:] for each in MAKERS], ids=[each[0] for each in MAKERS])
def test_what_makes_pods_is_judged_when_it_is_applied(tmp_path: Path, made: dict[str, Any], said: str | None) -> None:
    """`kubectl apply` itself is refused, not only the pods that a controller makes later."""
    found = refusals(exported(tmp_path, POLICY), made)
    if said is None:
        assert found == []
    else:
        assert any(said in each for each in found)


def test_an_object_whose_spec_is_unchanged_is_left_alone(tmp_path: Path) -> None:
    """Its controllers must be able to take a finalizer off one that was made before the policy."""
    bad = changed("spec.template.spec.volumes.0.emptyDir", {}, job())
    assert refusals(exported(tmp_path, {}), bad, old=bad) == []
    assert refusals(exported(tmp_path, {}), bad, old=job()) != []


def test_registries_are_told_apart_as_the_launcher_does() -> None:
    """The pattern of an API server and our own rule agree on every image."""
    from trainlaunch.job.values.patterns import matches

    hosts = [
        "",
        "docker.io/",
        "index.docker.io/",
        "DOCKER.io/",
        "localhost:5000/",
        "registry.example.com/",
        "Reg/",
        "a.b/",
    ]
    names = [
        "trainer",
        "pytorch",
        "library/trainer",
        "library/x/y",
        "pytorch/pytorch",
        "ml/x",
        "ml",
        "mlx/y",
        "py.torch/x",
    ]
    tags = ["", ":1", f"@sha256:{'0' * 64}", f":1@sha256:{'0' * 64}"]
    lists = [
        "docker.io",
        "docker.io/pytorch",
        "docker.io/library",
        "docker.io/library/trainer",
        "docker.io/pytorch/pytorch",
    ]
    lists += ["registry.example.com", "registry.example.com/ml", "localhost:5000/ml", "index.docker.io/pytorch"]
    for allowed, *parts in itertools.product(lists, hosts, names, tags):
        image = "".join(parts)
        assert matches(registry_pattern(allowed), image) == in_registry(image, allowed), (allowed, image)


def test_the_text_is_applicable_and_warns_by_default(trainlaunch: Runs, tmp_path: Path) -> None:
    """Strictly valid, bound to labelled namespaces alone; --enforce denies."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "trainlaunch-policy.yaml").write_text(plain_yaml.dump(POLICY))
    for options, actions in (([], ["Warn", "Audit"]), (["--enforce"], ["Deny"])):
        done = trainlaunch("policy", "export", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        documents = list(plain_yaml.load_all(done.stdout))
        for each in documents:
            kubernetes_validate.validate(each, "1.34", strict=True)
        bindings = [each for each in documents if each["kind"].endswith("Binding")]
        assert [each["spec"]["validationActions"] for each in bindings] == [actions, actions]
        selectors = [each["spec"]["matchResources"]["namespaceSelector"] for each in bindings]
        assert selectors == [{"matchLabels": {"trainlaunch.dev/policy": "enforce"}}] * 2
        assert {each["spec"]["policyName"] for each in bindings} < {each["metadata"]["name"] for each in documents} | {
            ""
        }


def test_a_bad_policy_is_an_error_with_its_place(trainlaunch: Runs, tmp_path: Path) -> None:
    """And nothing is printed that somebody could apply."""
    (tmp_path / "trainlaunch-policy.yaml").write_text("max: {memory: much}\n")
    done = trainlaunch("policy", "export", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "trainlaunch-policy.yaml:1:15" in done.stderr
