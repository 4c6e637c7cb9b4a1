"""An object's name on Kubernetes changes exactly with what the API server lets nobody change in it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.container import name_hash
from trainlaunch.container.kubernetes import kubernetes_name
from trainlaunch.kinds import KINDS, Kind
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.templating.environment import template_text

from tests import plain_yaml
from tests.jobs import write_job
from tests.render.kinds import CASES, FILES, kind_plan
from tests.sampling import diagonals

FIELDS: dict[str, Any] = {
    "image": "registry.example.com/trainer:1",
    "resources": {"cpus": 16, "memory": "64Gi", "gpus": 2},
    "torchrun": {},
    "data_loader": {"batch_size": 32, "sample": {"shape": [3, 224, 224], "dtype": "float32"}},
}
# one change a row; what can't be stated for a kind is left out there
SETS = (
    "image=registry.example.com/trainer:2",
    "pull_policy=always",
    "command=[python, other.py]",
    "image_entrypoint=[/entry.sh]",
    "working_dir=/workspace",
    'user="1001:1001"',
    "group_add=[44]",
    "read_only=true",
    "env={A: b}",
    "labels={team: vision}",
    "annotations={note: x}",
    "secrets={TOKEN: {kubernetes: hub/token}}",
    "secrets={TOKEN: {kubernetes: hub/token, as: file}}",
    "mounts=[{type: pvc, source: data, target: /data}]",
    "mounts=[{type: tmpfs, target: /fast}]",
    "resources.cpus=8",
    "resources.memory=96Gi",
    "resources.gpus=4",
    "resources.gpu_resource=nvidia.com/mig-1g.10gb",
    "resources.ephemeral_storage=20Gi",
    "resources.extended={rdma/hca: 1}",
    "shm_size=8Gi",
    "shm_extra=[{name: ray, size: 1Gi}]",
    "data_loader.batch_size=64",
    "data_loader.num_workers=3",
    "data_loader.prefetch_factor=4",
    "data_loader.pin_memory=false",
    "data_loader.max_workers=5",
    "data_loader.inject=off",
    "torchrun.max_restarts=1",
    "torchrun.rdzv_port=29501",
    "healthcheck.interval=1m",
    "healthcheck.timeout=5s",
    "healthcheck.retries=5",
    "healthcheck.start_period=10m",
    "healthcheck.stall_after=10m",
    "healthcheck={stall_after: 30m, on_unhealthy: stop}",
    "observe=true",
    "restart.max_attempts=3",
    "active_deadline=2h",
    "stop_grace_period=90s",
    "ttl_after_finished=1h",
    "kubernetes.namespace=research",
    "kubernetes.service_account=trainer",
    "kubernetes.node_selector={pool: a}",
    "kubernetes.tolerations=[{key: spot, operator: Exists}]",
    "kubernetes.runtime_class=nvidia",
    "kubernetes.queue=team",
    "kubernetes.priority_class=high",
    "kubernetes.image_pull_secrets=[registry]",
    "kubernetes.fs_group=2000",
    "kubernetes.run_as=assigned",
    "kubernetes.pod_security=baseline",
    "kubernetes.cpu_limit=false",
    "kubernetes.annotations={pod: y}",
    "kubernetes.token=true",
    'patches={kubernetes: [{op: add, path: /metadata/labels/a, value: "b"}]}',
    'patches={kubernetes: [{op: add, path: /metadata/annotations, value: {a: "b"}}]}',
)
NAMED = [kind for kind in KINDS.values() if kind.immutable]


def plan_of(folder: Path, kind: Kind, *sets: str) -> LaunchPlan:
    """Return the plan of the job as a kind, with changes."""
    path = write_job(folder, **FIELDS)
    return plan_job(read_job(path, target="kubernetes", sets=(f"kubernetes.kind={kind.word}", *sets)))


def immutable(plan: LaunchPlan, kind: Kind) -> str:
    """Return what nobody can change of a job's manifest, without the object's own name.

    An object that only serves it has its name too, and is taken whole but for its labels.
    """
    name = kubernetes_name(plan)
    text = render(plan).replace(name, "NAME")
    *parts, main = plain_yaml.load_all(text)
    held = [[_at(main, path) for path in kind.immutable], [each.get("spec") for each in parts]]
    return json.dumps(held, sort_keys=True)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def misnamed(folder: Path, pairs: Iterable[tuple[str, Kind]]) -> list[tuple[str, str]]:
    """Return the changes whose object keeps its name or gets another, and shouldn't."""
    before = {kind.word: plan_of(folder / "before", kind) for kind in NAMED}
    held = {kind.word: immutable(before[kind.word], kind) for kind in NAMED}
    wrong = []
    for change, kind in pairs:
        if kind.refuses_attempts(1) and change.startswith("restart"):
            continue
        after = plan_of(folder / "after", kind, change)
        same = held[kind.word] == immutable(after, kind)
        if (kubernetes_name(before[kind.word]) == kubernetes_name(after)) != same:
            wrong.append((change, kind.word))
    return wrong


def test_a_name_changes_exactly_with_what_is_immutable(tmp_path: Path) -> None:
    """A field that reaches only what can be changed in place keeps the name; every other one gives another."""
    assert misnamed(tmp_path, diagonals(2, SETS, NAMED)) == []


@pytest.mark.long
def test_a_name_of_every_kind_changes_exactly_with_what_is_immutable(tmp_path: Path) -> None:
    """The whole product."""
    assert misnamed(tmp_path, product(SETS, NAMED)) == []


def test_a_stable_name_has_no_hash(tmp_path: Path) -> None:
    """For those who delete and make an object again when it changes, as Argo CD's Replace does."""
    for kind in NAMED:
        assert kubernetes_name(plan_of(tmp_path, kind, "kubernetes.stable_name=true")) == "digits"


def test_a_name_that_is_given_keeps_its_own(tmp_path: Path) -> None:
    """By --name."""
    spec = read_job(write_job(tmp_path, **FIELDS), target="kubernetes")
    assert kubernetes_name(plan_job(spec, name="mine")) == "mine"


def test_another_place_of_the_job_file_gives_the_same_name(tmp_path: Path) -> None:
    """A comment above a field, or another folder, is no other job."""
    first = write_job(tmp_path / "first", **FIELDS)
    second = write_job(tmp_path / "second", **FIELDS)
    second.write_text("# a comment\n\n" + second.read_text())
    names = {kubernetes_name(plan_job(read_job(each, target="kubernetes"))) for each in (first, second)}
    assert len(names) == 1


FILES_AND_KINDS = [[*range(len(FILES))], [case for case in CASES if KINDS[case[0]].immutable]]


def turned(text: str) -> str:
    """Return a manifest with the keys of all its mappings the other way round, and comments."""

    def back(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: back(item) for key, item in reversed(value.items())}
        return [back(each) for each in value] if isinstance(value, list) else value

    documents = (plain_yaml.dump(back(each), sort_keys=False) for each in plain_yaml.load_all(text))
    return "---\n# a comment\n".join(documents) + "# the end\n"


def renamed(folder: Path, monkeypatch: pytest.MonkeyPatch, cases: Iterable[tuple[int, tuple[str, int]]]) -> list[str]:
    """Return the cases in which an order, a comment or `kubernetes.prune` gives an object another name."""
    wrong = []
    for index, (kind, nodes) in cases:
        copy = folder / str(index)
        if not copy.exists():
            shutil.copytree(FILES[index].parent, copy)
        job = copy / FILES[index].name
        plan = kind_plan(job, kind, nodes)
        names = [kubernetes_name(plan), kubernetes_name(kind_plan(job, kind, nodes, "kubernetes.prune=true"))]
        with monkeypatch.context() as patched:
            patched.setattr(name_hash, "template_text", lambda *given, **more: turned(template_text(*given, **more)))
            names.append(kubernetes_name(kind_plan(job, kind, nodes)))
        last_first = copy / "last-first.yaml"
        fields = re.split(r"^(?=[a-z])", job.read_text(), flags=re.MULTILINE)
        last_first.write_text("# a comment\n".join(reversed(fields)))
        names.append(kubernetes_name(kind_plan(last_first, kind, nodes)))
        wrong += [f"{job} {kind} {nodes}: {names}"] if len({*names}) != 1 else []
    return wrong


def test_neither_order_nor_comments_nor_prune_name_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the API server sees is a tree, and what a controller may delete is no part of it."""
    assert renamed(tmp_path, monkeypatch, diagonals(6, *FILES_AND_KINDS)) == []


@pytest.mark.long
def test_no_kind_of_any_job_is_named_by_order_comments_or_prune(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All examples and all jobs of the tests, as every kind on one node and on three."""
    assert renamed(tmp_path, monkeypatch, product(*FILES_AND_KINDS)) == []


def test_prune_is_an_annotation_alone(tmp_path: Path) -> None:
    """Each kind that is named by its template says that no controller deletes it, unless the job allows that."""
    for kind in NAMED:
        assert "Prune=false" in render(plan_of(tmp_path / "a", kind))
        pruned = render(plan_of(tmp_path / "b", kind, "kubernetes.prune=true"))
        assert "rune" not in pruned.replace("kubernetes.prune=true", "")


def test_options_of_argo_cd_that_are_stated_stay(tmp_path: Path) -> None:
    """Ours are added to them; a stated Prune is the user's own."""
    stated = "annotations={argocd.argoproj.io/sync-options: 'Replace=true, Force=true'}"
    assert '"Replace=true,Force=true,Prune=false"' in render(plan_of(tmp_path, KINDS["job"], stated))
    own = "annotations={argocd.argoproj.io/sync-options: Prune=true}"
    assert '"Prune=true"' in render(plan_of(tmp_path, KINDS["job"], own))
