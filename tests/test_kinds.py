"""A Kubernetes kind is one record and one template."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.kinds import KINDS, PARTS, Kind, objects, workloads
from trainlaunch.plan.target_names import MAX_NAME_LENGTH, longest_cluster_name
from trainlaunch.render import render

from tests import plain_yaml
from tests.conftest import ROOT
from tests.jobs import plan_with, write_job

LIMITS = {"cpus": 4, "memory": "8Gi"}
# A process of its own: the table of fields is made from the records when it is first imported.
WITH_FAKE = """
import json, sys
from pathlib import Path
from jinja2 import ChoiceLoader, DictLoader
from trainlaunch.kinds import KINDS, Kind, workloads
KINDS["fakejob"] = Kind(
    "fakejob", "FakeJob", "fake.dev/v1", "fakejobs", pod_template=("spec", "template"), container_name="fake",
    suffix_of_several="-{last}", first_host="{name}-first", retries=False, retry_unsupported="it can't",
)
from trainlaunch.errors import JobFileRejected
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.templating.environment import environment
template = '''{% include "kubernetes/header.yaml.j2" %}
apiVersion: "fake.dev/v1"
kind: "FakeJob"
metadata:
{% filter indent(2, first=true) %}
{% include "kubernetes/metadata.yaml.j2" %}
{% endfilter %}
spec:
  template:
{% filter indent(4, first=true) %}
{% include "kubernetes/pod-template.yaml.j2" %}
{% endfilter %}
'''
environment().loader = ChoiceLoader([DictLoader({"kubernetes/fakejob.yaml.j2": template}), environment().loader])
try:
    plan = plan_job(read_job(Path(sys.argv[1]), target="kubernetes"))
    print(json.dumps([render(plan), list(workloads())]))
except JobFileRejected as rejected:
    print(json.dumps([each.message for each in rejected.diagnostics]))
"""


def with_fake(job: Path) -> Any:
    """Return what a process prints of a job where the kind `fakejob` was added."""
    done = subprocess.run(
        [sys.executable, "-c", WITH_FAKE, str(job)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "launcher")},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def pod_templates(thing: Any, path: tuple[str, ...]) -> list[Any]:
    """Return what a path of a kind's record leads to."""
    if not path:
        return [thing]
    first, *rest = path
    below = [thing[first]] if first != "*" else list(thing.values() if isinstance(thing, dict) else thing)
    return [found for each in below for found in pod_templates(each, tuple(rest))]


def test_a_new_kind_plans_and_renders(tmp_path: Path) -> None:
    """The job file takes its word; its template has the pod, the container's name and the first node's host."""
    several = {"nnodes": 2, "nproc_per_node": 1}
    job = write_job(tmp_path, resources=LIMITS, kubernetes={"kind": "fakejob"}, torchrun=several)
    text, known = with_fake(job)
    manifest = plain_yaml.load(text)
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert (manifest["kind"], container["name"]) == ("FakeJob", "fake")
    assert env["PET_RDZV_ENDPOINT"] == f"{manifest['metadata']['name']}-first:29500"
    assert known.index("FakeJob") < known.index("Pod")


def test_a_new_kind_says_what_it_cannot_do(tmp_path: Path) -> None:
    """Its record has the reason."""
    job = write_job(tmp_path, resources=LIMITS, kubernetes={"kind": "fakejob"}, restart={"max_attempts": 3})
    assert with_fake(job) == ["kubernetes has no fakejob that starts 3 times (restart.max_attempts 3)"]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_record_says_what_the_manifest_has(kind: Kind, tmp_path: Path) -> None:
    """Kind, apiVersion, parts, and the way to a pod's container."""
    plan = plan_with(tmp_path, "kubernetes", resources=LIMITS, kubernetes={"kind": kind.word})
    *parts, main = plain_yaml.load_all(render(plan))
    assert (main["kind"], main["apiVersion"]) == (kind.name, kind.api_version)
    assert [each["kind"] for each in parts] == [each.name for each in kind.parts]
    found = []
    for thing in (*parts, main):
        record = objects()[thing["kind"]]
        assert thing["apiVersion"] == record.api_version
        found += [] if record.pod_template is None else pod_templates(thing, record.pod_template)
    assert {each["spec"]["containers"][0]["name"] for each in found} == {kind.container_name}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("nodes", [1, 2, 11])
def test_the_longest_name_leaves_room_for_what_is_appended(kind: Kind, nodes: int) -> None:
    """A pod's name becomes a label, and labels hold 63 characters."""
    longest = longest_cluster_name(kind, nodes, fixed=True)
    assert longest + len(kind.longest_suffix(nodes)) == MAX_NAME_LENGTH
    assert longest - longest_cluster_name(kind, nodes, fixed=False) == (9 if kind.immutable else 0)


def test_objects_come_in_the_order_in_which_they_make_each_other() -> None:
    """What runs the job is found before what its controller makes of it."""
    assert list(workloads()) == ["TrainJob", "JobSet", "PyTorchJob", "Job", "Pod"]
    assert list(objects()) == [*workloads(), *PARTS]
