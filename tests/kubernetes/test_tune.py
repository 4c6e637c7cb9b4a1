"""`trainlaunch tune` in a cluster: a Job for each run, gone afterwards, with the task in the pod's own plan."""

from __future__ import annotations

import json
import re
import shlex
import signal
from typing import Any

import pytest
from trainlaunch.job.reserved import PLAN_VARIABLE

from tests.kubernetes.contract.user import User
from tests.kubernetes.pods import Pod
from tests.kubernetes.processes import PASSED
from tests.kubernetes.scripts import prints
from tests.kubernetes.server import FakeCluster
from tests.measure.spoken import spoken
from tests.measure.tune.spoken import answered

LOADER = {"batch_size": 8, "sample": [{"shape": [16], "dtype": "float32"}], "max_workers": 4}
FIELDS = {"data_loader": LOADER, "shm_size": None, "resources": {"cpus": 1, "memory": "2Gi"}}


def task_of(pod: Pod) -> dict[str, Any]:
    """Return what the plan in a pod's environment hands to the part inside."""
    (plan,) = (each["value"] for each in pod.containers[0]["env"] if each["name"] == PLAN_VARIABLE)
    found = re.search(r"export TRAINLAUNCH_TUNE=(.*)", plan)
    assert found
    return dict(json.loads(shlex.split(found[1])[0]))


def answers(pod: Pod, *, in_place: bool = True) -> None:
    """Report what the task asks for, and end."""
    records = spoken(*answered(task_of(pod), in_place=in_place)).split("\n")[:-1]
    prints(PASSED.rstrip(), "its own words", *records)(pod)


@pytest.mark.parametrize("in_place", [True, False], ids=["one-run", "a-run-each"])
def test_each_run_is_a_job_of_its_own_and_nothing_is_left(user: User, fake: FakeCluster, in_place: bool) -> None:
    """The fastest is found through the cluster's log, kept for its target and planned."""
    fake.pods_do(lambda pod: answers(pod, in_place=in_place))
    user.writes(**FIELDS)
    done = user.starts("tune", "job.yaml", "--budget", "90s", "--write", "-o", "json")
    assert done.end() == 0, done.words()
    assert "\x1e" not in done.words()
    assert "its own words" not in done.said
    found = json.loads(done.out)
    assert (found["target"], found["chosen"]["num_workers"], found["gain"]) == ("kubernetes", 2, 3.0)
    assert fake.objects() == []
    assert json.loads(user.runs("plan", "-o", "json").out)["num_workers"] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGHUP])
def test_a_signal_ends_it_and_leaves_nothing(user: User, fake: FakeCluster, number: signal.Signals) -> None:
    """In the middle of a setting; neither Job nor pod stays, and nothing is written."""

    def begins(pod: Pod) -> None:
        loader, start, timing, *_ = spoken(*answered(task_of(pod))).split("\n")
        pod.start()
        pod.say("\n".join((PASSED.rstrip(), loader, start, timing, "")))
        pod.sleep()

    fake.pods_do(begins)
    user.writes(**FIELDS)
    running = user.starts("tune", "job.yaml", "--write").until("      0        -", err=True)
    assert [each for each in fake.objects() if "-tune-" in each]
    assert running.tell(number).end() == 130, running.words()
    assert fake.objects() == []
    assert running.out == b""
    assert not (user.folder / "job.lock.yaml").exists()


def test_a_script_that_fails_is_shown_and_removed(user: User, fake: FakeCluster) -> None:
    """Its own last words."""
    fake.pods_do(prints(PASSED.rstrip(), "ModuleNotFoundError: No module named 'torch'", code=1))
    user.writes(**FIELDS)
    done = user.starts("tune", "job.yaml")
    assert done.end() == 1, done.words()
    assert "error[TL740]: the script ended with exit code 1" in done.said
    assert "No module named 'torch'" in done.said
    assert fake.objects() == []


def test_what_the_api_refuses_runs_nothing(user: User, fake: FakeCluster) -> None:
    """Exit 3 with its words."""
    fake.forbid("create", "jobs")
    user.writes(**FIELDS)
    done = user.starts("tune", "job.yaml")
    assert done.end() == 3, done.words()
    assert fake.objects() == []
