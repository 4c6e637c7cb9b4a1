"""A manifest of any kind that says anything else than the plan is refused, in whichever of its objects or pods."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render

from tests.jobs import plan_with
from tests.render.crds import pod_templates
from tests.render.jobs import FOLDER
from tests.render.kinds import CASES, documents, kind_plan
from tests.sampling import diagonals
from tests.verify.test_verify import Dumper, Path_, places, refusals, scalar_at

CLUSTER = FOLDER / "jobs" / "cluster.yaml"
MINIMAL = FOLDER / "jobs" / "minimal.yaml"
SEVERAL = [(kind, nodes) for kind, nodes in CASES if nodes == 3 or kind == "pod"]


def dumped(objects: list[Any]) -> str:
    """Return documents as YAML."""
    text: str = yaml.dump_all(objects, Dumper=Dumper, sort_keys=False)
    return text


def mutations(objects: list[Any], paths: Iterable[Path_]) -> Iterator[tuple[str, str]]:
    """Yield each place with the text without it, and with another scalar there."""
    for path in paths:
        yield f"without {path}", dumped(_changed(objects, path, delete=True))
        if scalar_at(objects, path):
            yield f"another {path}", dumped(_changed(objects, path, delete=False))


def outside_of_pods(path: Path_, kind: str) -> bool:
    """Return whether a place is the kind's own, or its way to a pod: what stands in pods one kind shows for all."""
    return kind == "job" or not {"containers", "volumes"} & set(path)


def _changed(objects: list[Any], path: Path_, *, delete: bool) -> list[Any]:
    other = copy.deepcopy(objects)
    inner: Any = other
    for key in path[:-1]:
        inner = inner[key]
    if delete:
        del inner[path[-1]]
    else:
        inner[path[-1]] = inner[path[-1]] + 1 if type(inner[path[-1]]) is int else f"{inner[path[-1]]}x"
    return other


def taken_all_the_same(kind: str, nodes: int, wanted: Callable[[Path_, str], bool]) -> list[str]:
    """Return the places whose text is taken without them, or with another scalar there."""
    # The pod is the same in each kind, so one kind has all that it can say.
    sets = ("kubernetes.queue=a", "active_deadline=1h", "ttl_after_finished=1h", "kubernetes.namespace=b")
    plan = kind_plan(CLUSTER, kind, nodes) if kind in {"job", "pod"} else kind_plan(MINIMAL, kind, nodes, *sets)
    objects = documents(plan)
    assert refusals(plan, dumped(objects)) == []
    paths = [path for path in places(objects) if wanted(path, kind)]
    return [place for place, text in mutations(objects, paths) if not refusals(plan, text)]


@pytest.fixture
def _short_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "echo $HOME\nexit 1"  # each reading of the whole ones takes 20 ms
    monkeypatch.setattr("trainlaunch.container.preflight.preflight_text", lambda: text)
    monkeypatch.setattr("trainlaunch.container.container.health_text", lambda: text)


@pytest.mark.usefixtures("_short_texts")
@pytest.mark.parametrize(("kind", "nodes"), SEVERAL)
def test_nothing_can_be_left_out_or_changed(kind: str, nodes: int) -> None:
    """Each key and item of each object is deleted, and each scalar changed, in turn; in a pod, of one kind."""
    assert taken_all_the_same(kind, nodes, outside_of_pods) == []


@pytest.mark.long
@pytest.mark.usefixtures("_short_texts")
@pytest.mark.parametrize(("kind", "nodes"), SEVERAL)
def test_nothing_in_a_pod_of_any_kind_can_be_left_out_or_changed(kind: str, nodes: int) -> None:
    """All pods are read by the same code, wherever a kind has them."""
    assert taken_all_the_same(kind, nodes, lambda path, kind: not outside_of_pods(path, kind)) == []


@pytest.mark.parametrize(("kind", "nodes"), SEVERAL)
def test_no_container_can_be_added_to_any_pod(kind: str, nodes: int) -> None:
    """A sidecar or an init container would take the bound from /dev/shm, in the first pods or in later ones."""
    plan = kind_plan(CLUSTER, kind, nodes)
    count = sum(len(pod_templates(each)) for each in documents(plan))
    for number in range(count):
        for kind_of_container in ("containers", "initContainers"):
            objects = documents(plan)
            pod = [each for document in objects for each in pod_templates(document)][number]["spec"]
            pod.setdefault(kind_of_container, []).append({"name": "side", "image": "a:1"})
            assert refusals(plan, dumped(objects))


ADDITIONS: list[tuple[str, Any]] = [
    ("hostIPC", True),
    ("hostPID", True),
    ("nodeName", "a"),
    ("resources", {"limits": {"memory": "1Gi"}}),
    ("dnsConfig", {"searches": ["example.com"]}),
]


@pytest.mark.parametrize(("case", "addition"), diagonals(len(SEVERAL), SEVERAL, ADDITIONS))
def test_no_key_can_be_added_to_a_pod_or_an_object(case: tuple[str, int], addition: tuple[str, Any]) -> None:
    """Whatever the plan doesn't ask for is refused, also where the kind itself would take it."""
    key, value = addition
    plan = kind_plan(CLUSTER, *case)
    for number in range(len(documents(plan))):
        objects = documents(plan)
        objects[number]["spec"][key] = value
        assert refusals(plan, dumped(objects))
    objects = documents(plan)
    pods = [each for document in objects for each in pod_templates(document)]
    pods[-1]["spec"][key] = value
    assert refusals(plan, dumped(objects))


@pytest.mark.parametrize(("kind", "nodes"), SEVERAL)
def test_no_object_can_be_added_repeated_or_left_out(kind: str, nodes: int) -> None:
    """One document more or less is another text."""
    plan = kind_plan(CLUSTER, kind, nodes)
    objects = documents(plan)
    extra = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    for other in ([extra, *objects], [*objects, extra], [*objects, objects[-1]], objects[1:], objects[::-1][1:]):
        assert refusals(plan, dumped(other))
    if len(objects) > 1:
        assert refusals(plan, dumped(objects[::-1]))


def test_pods_that_differ_are_refused_with_both_sides_named() -> None:
    """A worker with a smaller /dev/shm than the master would be the one that dies."""
    plan: LaunchPlan = kind_plan(CLUSTER, "pytorchjob", 3)
    objects = documents(plan)
    worker = objects[0]["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["volumes"][0]["emptyDir"]["sizeLimit"] = "64Mi"
    found = refusals(plan, dumped(objects))
    assert any("shm_size" in each for each in found)
    assert any("rest pods" in each for each in found)


@pytest.mark.parametrize("text", ["---\n", "a: b\n---\n", "kind: JobSet\n", "kind: PyTorchJob\nspec: []\n"])
def test_half_a_manifest_is_refused(text: str) -> None:
    """No reader's crash is taken for agreement."""
    assert refusals(kind_plan(CLUSTER, "jobset", 3), text)


def test_a_manifest_inside_a_list_or_with_its_pod_elsewhere_is_refused() -> None:
    """kubectl would take the list, and a controller another template than the one that it looks at."""
    plan = kind_plan(CLUSTER, "job", 3)
    objects = documents(plan)
    assert refusals(plan, dumped([{"apiVersion": "v1", "kind": "List", "items": objects}]))
    template = objects[-1]["spec"]["template"]
    template["other"] = template.pop("spec")
    assert refusals(plan, dumped(objects))


def test_braces_of_a_job_are_no_template(tmp_path: Path) -> None:
    """Nothing expands a rendering before Kubernetes reads it, so what the job says is known."""
    fields = {"command": ["echo", "{{ x }}", "{{"], "env": {"A": "{{b}}"}, "resources": {"cpus": 2, "memory": "4Gi"}}
    plan = plan_with(tmp_path, "kubernetes", **fields)
    objects = documents(plan)
    assert refusals(plan, dumped(objects)) == []
    objects[0]["spec"]["template"]["spec"]["containers"][0]["args"][-1] = "{{ y }}"
    assert refusals(plan, dumped(objects))


@pytest.mark.parametrize("change", ["!!binary ", "&a ", "!other "])
def test_a_tag_is_refused_and_an_anchor_changes_nothing(change: str) -> None:
    """kubectl would decode the one; the other only names a value."""
    plan = kind_plan(CLUSTER, "pod", 1)
    text = render(plan)
    image = f'image: "{plan.job.image}"'
    assert image in text
    assert bool(refusals(plan, text.replace(image, image.replace(": ", f": {change}")))) == change.startswith("!")
