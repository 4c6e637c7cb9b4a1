"""What a real server said of its objects the fake one says too, and what is told of each is right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.diagnose import explain_end
from trainlaunch.kinds import workloads
from trainlaunch.run.base.clock import Clock
from trainlaunch.run.base.console import Console, Events
from trainlaunch.run.base.store import ClusterPlace
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.follow import End, Follower, FollowOptions
from trainlaunch.run.kubernetes.liveness import with_liveness
from trainlaunch.run.kubernetes.objects import JOB_LABEL, create, reference_of
from trainlaunch.run.kubernetes.pending import Reasons, Wait
from trainlaunch.run.kubernetes.runs import ClusterRun, pods_of_run
from trainlaunch.run.kubernetes.status import evidence_of_end
from trainlaunch.run.kubernetes.store import open_cluster

from tests.kubernetes.asking import wait_until
from tests.kubernetes.kinds import EVENTS
from tests.kubernetes.recorded import PROBE, SCENARIOS, Scenario
from tests.kubernetes.server import FakeCluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCluster]:
    """Return one cluster for all scenarios: each has names of its own."""
    with FakeCluster() as fake:
        yield fake


@pytest.fixture
def client(cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Return the product's own connection to it, whose clock is fast."""
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig(tmp_path / "kubeconfig")))
    opened, _ = open_cluster(ClusterPlace(None, None))
    opened.clock = Clock(20.0)
    yield opened
    opened.close()


def manifest(name: str, scenario: Scenario) -> dict[str, Any]:
    """Return a scenario's object, with the labels by which a run and its pods are found."""
    labels = {JOB_LABEL: name, "app.kubernetes.io/instance": name}
    container = {"name": "train", "image": "trainer:1", "args": ["true"]} | (
        {"livenessProbe": PROBE} if scenario.probe else {}
    )
    spec: dict[str, Any] = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": [container]}
    if scenario.kind == "Job":
        spec = {"backoffLimit": 0, **scenario.spec, "template": {"metadata": {"labels": labels}, "spec": spec}}
    version = workloads()[scenario.kind].api_version
    metadata = {"name": name, "namespace": "team", "labels": labels}
    return {"apiVersion": version, "kind": scenario.kind, "metadata": metadata, "spec": spec}


def events_of(fake: FakeCluster, name: str) -> set[str]:
    """Return the events of a scenario's objects, names of pods replaced."""
    found = set()
    for each in fake.store.all(EVENTS, "team"):
        about = each["involvedObject"]
        if re.fullmatch(rf"{name}(-[a-z0-9]{{5}})?", about["name"]):
            words = re.sub(rf"\b{name}-[a-z0-9]{{5}}\b", "POD", f"{each['reason']} {each['message']}")
            words = words.replace(f'"{name}-"', '"NAME-"')
            found.add(re.sub(rf"(team/|pod: ){name}\b", r"\1POD", words))
    return found


def followed(client: Cluster, run: ClusterRun) -> tuple[End, list[str]]:
    """Return how following a run ended, and what is said of its causes."""
    console = Console(lambda _: None, lambda _: None, lambda _: None, lambda _: None)
    follower = Follower(client, run, console, Events(), options=FollowOptions(grace=5))
    end = follower.follow()
    evidence = with_liveness(client, evidence_of_end(end, follower.output), end.pod)
    return end, [f"{each.code} {each.sentence} {each.saw}" for each in explain_end(evidence)]


def waits(client: Cluster, run: ClusterRun) -> list[Wait]:
    """Return why a run waits, as it is now."""
    reasons = Reasons(client, run.main, job=None, patience=0)
    return reasons.waits(pods_of_run(client, run), run.thing)


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_is_replayed_and_told(cluster: FakeCluster, client: Cluster, name: str) -> None:
    """The events that the real server recorded, no other, and then the code and the cause, or the wait."""
    scenario = SCENARIOS[name]
    cluster.kubelet.script = scenario.play
    cluster.refuse_pods(scenario.refused)
    document = manifest(name, scenario)
    run = ClusterRun(name, reference_of(client, document), {"kind": scenario.kind, **create(client, document)})
    if scenario.code is not None:
        end, causes = followed(client, run)
        assert end.exit_code == scenario.code, (end, causes)
        assert [each for each in scenario.says if each not in "\n".join(causes)] == [], causes
        assert len(causes) == sum(each.startswith("TL") for each in scenario.says), causes
    wait_until(lambda: events_of(cluster, name) >= set(scenario.events))
    assert events_of(cluster, name) == set(scenario.events)
    if scenario.patience is not None:
        (wait,) = waits(client, run)
        assert wait.patience == scenario.patience, wait
        assert [each for each in scenario.says if not re.search(each.replace("(", r"\("), wait.sentence)] == [], wait
    cluster.refuse_pods("")
