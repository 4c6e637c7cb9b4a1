"""`trainlaunch probe` in a cluster: a Job of its own, which is gone afterwards, beside the job that runs."""

from __future__ import annotations

import json
import signal

import pytest

from tests.kubernetes.contract.user import User
from tests.kubernetes.pods import Pod
from tests.kubernetes.processes import PASSED
from tests.kubernetes.scripts import prints
from tests.kubernetes.server import FakeCluster
from tests.measure.spoken import a_probe, spoken

LINES = (PASSED.rstrip(), "epoch 1", *spoken(*a_probe()).split("\n")[:-1], "an echo of the end")
UNSIZED = {"data_loader": {}, "shm_size": None}


def probes(fake: FakeCluster) -> list[str]:
    """Return the objects of runs that measure, pods included."""
    return [each for each in fake.objects() if "-probe-" in each]


def measured_or_stays(pod: Pod) -> None:
    """Report where it is a probe's pod, else run for ever."""
    if "-probe-" in pod.name:
        prints(*LINES)(pod)
    pod.start()
    pod.sleep()


def test_a_probe_is_a_job_of_its_own_and_leaves_nothing(user: User, fake: FakeCluster) -> None:
    """Records are hidden in a log that has both streams; what is kept is planned on every target."""
    fake.pods_do(prints(*LINES))
    user.writes(**UNSIZED)
    done = user.starts("probe", "job.yaml", "--write", "-o", "json")
    assert done.end() == 0, done.words()
    assert "epoch 1" in done.said
    assert "an echo" not in done.said
    assert "\x1e" not in done.words()
    found = json.loads(done.out)
    assert found["probe"]["target"] == "kubernetes"
    assert found["probe"]["loaders"][0]["batch"] == {"storages": [3 << 20, 512]}
    assert fake.objects() == []
    plan = user.runs("plan", "-o", "json")
    assert json.loads(plan.out)["measured"]["probe"] == "fresh"


def test_it_asks_for_the_jobs_memory_and_all_of_it_for_shm(user: User, fake: FakeCluster) -> None:
    """Within the limit, less a MiB."""
    sizes: list[str] = []

    def script(pod: Pod) -> None:
        volumes = pod.now()["spec"]["volumes"]
        sizes.extend(each["emptyDir"]["sizeLimit"] for each in volumes if each.get("emptyDir", {}).get("sizeLimit"))
        prints(*LINES)(pod)

    fake.pods_do(script)
    user.writes(**UNSIZED)
    assert user.starts("probe", "job.yaml").end() == 0
    assert "255Mi" in sizes


def test_the_job_that_runs_is_left_alone(user: User, fake: FakeCluster) -> None:
    """Same job file, other names and labels: `up` goes on, and is found by every verb."""
    fake.pods_do(measured_or_stays)
    assert user.up("--detach", **UNSIZED).end() == 0
    before = fake.objects()
    done = user.starts("probe", "job.yaml")
    assert done.end() == 0, done.words()
    assert [each for each in fake.objects() if "-probe-" not in each] == before
    assert probes(fake) == []


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGHUP])
def test_a_signal_ends_it_and_leaves_nothing(user: User, fake: FakeCluster, number: signal.Signals) -> None:
    """Unlike `up`, which leaves the job to its cluster."""

    def script(pod: Pod) -> None:
        pod.start()
        pod.say(f"{PASSED}epoch 1\n")
        pod.sleep()

    fake.pods_do(script)
    user.writes(**UNSIZED)
    running = user.starts("probe", "job.yaml", "--write").until("epoch 1", err=True)
    assert probes(fake)
    assert running.tell(number).end() == 130, running.words()
    assert probes(fake) == []
    assert running.out == b""
    assert not (user.folder / "job.lock.yaml").exists()


def test_a_script_that_fails_is_explained_and_removed(user: User, fake: FakeCluster) -> None:
    """Its own words, the cause, and what to do; exit 1."""
    fake.pods_do(prints(PASSED.rstrip(), "ModuleNotFoundError: No module named 'torch'", code=1))
    user.writes(**UNSIZED)
    done = user.starts("probe", "job.yaml")
    assert done.end() == 1, done.words()
    assert "TL728" in done.out.decode()
    assert "TL664" in done.said
    assert probes(fake) == []


def test_what_the_api_refuses_runs_nothing(user: User, fake: FakeCluster) -> None:
    """Exit 3 with its words."""
    fake.forbid("create", "jobs")
    user.writes(**UNSIZED)
    done = user.starts("probe", "job.yaml")
    assert done.end() == 3, done.words()
    assert probes(fake) == []
