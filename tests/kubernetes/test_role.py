"""The documented Role names what is asked for and nothing else; what may be left out of it may be."""

from __future__ import annotations

import signal
import time

import pytest

from tests.kubernetes.contract.user import GIVES_UP_SOON, SPEED, User, once
from tests.kubernetes.kinds import REVIEWS, SELF_REVIEWS
from tests.kubernetes.pods import Pod
from tests.kubernetes.processes import PASSED, runs_its_command
from tests.kubernetes.role import allowed, documented_role
from tests.kubernetes.scripts import cannot_mount, prints
from tests.kubernetes.server import FakeCluster
from tests.kubernetes.statuses import not_on_node

NODES = {"nnodes": 2, "nproc_per_node": 1}


def test_the_role_is_what_is_asked_for(user: User, fake: FakeCluster) -> None:
    """One node, and two with their code, replaced, killed by a second Ctrl-C, read past a 404 of its node."""

    def looked_into(pod: Pod) -> None:
        pod.say(PASSED)
        while not fake.asked("get", "pods/exec"):
            pod.sleep(0.1)
        pod.exit(4)

    fake.grant(documented_role())
    fake.pods_do(looked_into)
    user.speed = GIVES_UP_SOON
    assert user.up(command=["true"]).end() == 4
    user.speed = SPEED
    fake.pods_do(runs_its_command)
    fake.fail("get", "pods/log", answer=not_on_node("digits", "log"))
    for verb in ("logs", "status", "wait", "down"):
        user.runs(verb)
    (user.folder / "src").mkdir()
    (user.folder / "src" / "train.py").touch()
    code = [{"type": "code", "source": "./src", "target": "/workspace"}]
    assert user.up("-d", script="sleep 3600", torchrun=NODES, mounts=code).end() == 0
    assert user.starts("up", "job.yaml", "--replace", "-d").end() == 0
    assert user.runs("down").process.returncode == 0
    fake.pods_do(cannot_mount("mount-0", "the disk does not answer"))
    user.up(command=["false"]).until("the disk does not answer", err=True).tell(signal.SIGINT).end()
    user.runs("down")
    fake.pods_do(runs_its_command)
    up = user.up("--stop-on-interrupt", script="trap '' TERM; echo ready; sleep 3600", stop_grace_period="30s")
    up.until("ready").tell(signal.SIGINT).until("stopping", err=True)
    while "killing it" not in up.said:  # within one second it is the same press
        time.sleep(0.1)
        up.tell(signal.SIGINT)
    assert up.end() != 0, up.words()
    mine = {(each.verb, each.what) for each in fake.requests if each.resource not in (REVIEWS, SELF_REVIEWS)}
    served = {(verb, what) for verb, what in mine if fake.api.may(verb, _group(what), what)}
    assert served | {("create", "pods/exec")} == allowed(documented_role())


def _group(what: str) -> str:
    return "batch" if what == "jobs" else ""


def test_ps_says_in_one_line_what_it_did_not_look_at(user: User, fake: FakeCluster) -> None:
    """Where it found nothing, and not where it found something."""
    fake.grant(documented_role())
    user.writes()
    ps = user.starts("ps", "--target", "kubernetes")
    assert ps.end() == 0, ps.words()
    assert once(ps.said, "you may not list")
    assert user.up("-d", script="sleep 3600").end() == 0
    ps = user.starts("ps", "--target", "kubernetes")
    assert ps.end() == 0, ps.words()
    assert ps.said == ""


@pytest.mark.parametrize("part", ["events", "pods/exec", "services"])
def test_what_only_explains_or_serves_several_may_be_left_out(user: User, fake: FakeCluster, part: str) -> None:
    """A job of one node runs, and is removed."""
    role = documented_role()
    role["rules"] = [each for each in role["rules"] if part not in each["resources"]]
    fake.grant(role)
    fake.pods_do(prints("ready", pause=1, code=3))
    up = user.up(command=["true"])
    assert up.end() == 3, up.words()
    down = user.runs("down")
    assert down.process.returncode == 0, down.words()
    assert "may be left" not in down.said


def test_a_service_that_can_not_be_removed_is_said(user: User, fake: FakeCluster) -> None:
    """Somebody with more rights made it; who takes the Job down may not see it."""
    assert user.up("-d", script="sleep 3600", torchrun=NODES).end() == 0
    role = documented_role()
    role["rules"] = [each for each in role["rules"] if "services" not in each["resources"]]
    fake.grant(role)
    down = user.runs("down")
    assert down.process.returncode == 0, down.words()
    assert once(down.said, "services of it may be left")
