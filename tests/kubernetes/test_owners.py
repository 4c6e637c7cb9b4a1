"""Whose a run on a cluster is, and which one RUN means there."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from trainlaunch.run.kubernetes.runs import OWNER_KEY, owner_hash

from tests.kubernetes.asking import apply, wait_until
from tests.kubernetes.contract.user import Running, User
from tests.kubernetes.kinds import JOBS
from tests.kubernetes.pods import Pod
from tests.kubernetes.server import FakeCluster

HERE = ("--target", "kubernetes")
ME, BOB = "system:serviceaccount:team:trainer", "oidc:bob@example.org"


def verb(user: User, *words: str) -> Running:
    """Run a verb to its end."""
    done = user.starts(*words)
    done.end()
    return done


def waits(pod: Pod) -> None:
    """Run until the pod is deleted."""
    pod.stopping.wait(60)
    pod.exit(143)


def workloads(fake: FakeCluster) -> list[dict[str, Any]]:
    """Return the Jobs of the namespace."""
    return fake.store.all(JOBS, "team")


def test_up_writes_who_made_it_into_each_object(user: User, fake: FakeCluster) -> None:
    """The API server's own name for the user as annotation, its hash as label; no rendering has either."""
    torchrun = {"nnodes": 2, "nproc_per_node": 1}
    assert user.up("-d", script="sleep 3600", torchrun=torchrun).end() == 0
    made = [thing for key, thing in fake.store.everything() if key[1] in {"jobs", "services"} and key[2] == "team"]
    assert len(made) == 2
    for each in made:
        assert each["metadata"]["annotations"][OWNER_KEY] == ME
        assert each["metadata"]["labels"][OWNER_KEY] == owner_hash(ME)
    assert len(owner_hash(ME)) == 10
    assert OWNER_KEY not in bytes(verb(user, "render", "job.yaml").out).decode()
    assert user.runs("down").process.returncode == 0
    assert fake.objects() == []


def test_somebody_elses_run_is_left_alone(user: User, fake: FakeCluster) -> None:
    """By every verb, by --replace too, until --owner names whose it is."""
    fake.api.user = BOB
    assert user.up("-d", script="sleep 3600").end() == 0
    fake.api.user = ME
    before = fake.objects()
    for name, code in (("status", 3), ("logs", 3), ("wait", 125), ("down", 2)):
        done = user.runs(name)
        assert (done.process.returncode, BOB in done.said) == (code, True), done.words()
    assert user.runs("down", "--all").process.returncode == 3
    for option in ((), ("--replace",)):
        again = verb(user, "up", "job.yaml", *option)
        assert (again.process.returncode, "TL506" in again.said, BOB in again.said) == (125, True, True), again.words()
    assert fake.objects() == before
    assert user.runs("status", "--owner", BOB).process.returncode == 0
    assert user.runs("down", "--owner", "eve").process.returncode == 3
    assert user.runs("down", "--owner", "any").process.returncode == 0
    assert fake.objects() == []


def test_a_run_that_was_applied_by_hand_is_nobodys(user: User, fake: FakeCluster) -> None:
    """On a cluster it may be anybody's, so it is taken only where --owner says any."""
    user.writes(script="sleep 3600")
    apply(fake, bytes(verb(user, "render", "job.yaml").out).decode())
    done = user.runs("down")
    assert (done.process.returncode, "TL119" in done.said, "no owner" in done.said) == (2, True, True), done.words()
    assert user.runs("down", "--owner", "any").process.returncode == 0
    assert fake.objects() == []


def test_one_of_two_runs_goes_with_its_own_parts(user: User, fake: FakeCluster) -> None:
    """By its name or the start of its id; the other run's Service and pods stay."""
    fake.pods_do(waits)
    torchrun = {"nnodes": 2, "nproc_per_node": 1}
    assert user.up("-d", script="sleep 3600", torchrun=torchrun).end() == 0
    (first,) = [each["metadata"]["name"] for each in workloads(fake)]
    assert user.up("-d", script="sleep 3601", torchrun=torchrun).end() == 0
    (second,) = [each["metadata"]["name"] for each in workloads(fake) if each["metadata"]["name"] != first]
    refused = user.runs("down")
    assert refused.process.returncode == 2
    assert first.rpartition("-")[2] in refused.said
    assert second.rpartition("-")[2] in refused.said
    assert verb(user, "down", first.rpartition("-")[2][:6], *HERE).process.returncode == 0
    assert {f"Job/{second}", f"Service/{second}"} <= set(fake.objects())
    assert [each for each in fake.objects() if first in each] == []
    assert verb(user, "down", second, *HERE).process.returncode == 0
    assert fake.objects() == []


def test_what_a_gone_run_left_is_removed_by_its_owner(user: User, fake: FakeCluster) -> None:
    """Somebody who may not change a Service makes one that no Job owns, and the Job's ttl leaves it."""
    fake.forbid("patch", "services")
    assert user.up("-d", script="sleep 3600", torchrun={"nnodes": 2, "nproc_per_node": 1}).end() == 0
    (job,) = workloads(fake)
    fake.store.remove(JOBS, "team", job["metadata"]["name"])
    fake.api.user = BOB
    assert user.runs("down").process.returncode == 3
    fake.api.user = ME
    assert user.runs("down").process.returncode == 0
    assert [each for each in fake.objects() if each.startswith("Service/")] == []


def test_ps_tells_the_owner_within_80_columns(user: User, fake: FakeCluster) -> None:
    """The hash of the name is the run; --owner and --running leave others out."""
    assert user.up("-d", script="sleep 3600").end() == 0
    listed = bytes(verb(user, "ps", *HERE).out).decode().splitlines()
    assert listed[0].split() == ["JOB", "RUN", "OWNER", "STATE", "EXIT", "AGE", "SHM", "TARGET"]
    assert max(map(len, listed)) <= 80
    run = listed[1].split()[1]
    (job,) = workloads(fake)
    assert job["metadata"]["name"].endswith(f"-{run}")
    document = json.loads(bytes(verb(user, "ps", *HERE, "-o", "json").out))
    assert document["runs"][0]["owner"] == ME
    assert bytes(verb(user, "ps", *HERE, "--owner", BOB).out) == b""
    assert bytes(verb(user, "ps", *HERE, "--running", "-o", "names").out).split() == [user.name.encode(), run.encode()]
    assert user.runs("down").process.returncode == 0


def test_a_cluster_that_can_not_tell_who_asks(user: User, fake: FakeCluster) -> None:
    """Before Kubernetes 1.28 there is no such question: the run has no owner, and --owner any takes it down."""
    fake.forbid("create", "selfsubjectreviews")
    assert user.up("-d", script="sleep 3600").end() == 0
    assert user.runs("down").process.returncode == 2
    assert user.runs("down", "--owner", "any").process.returncode == 0
    assert fake.objects() == []


def test_a_malformed_run_deletes_nothing(user: User, fake: FakeCluster) -> None:
    """An empty name would be a selector for every job's objects."""
    assert user.up("-d", script="sleep 3600").end() == 0
    before = fake.objects()
    for typed in ("", "*", ",", "a=b"):
        assert verb(user, "down", typed, *HERE).process.returncode == 2
    assert fake.objects() == before
    assert user.runs("down").process.returncode == 0


@pytest.mark.parametrize("removed", [False, True], ids=["Ctrl-C", "removed"])
def test_wait_prints_no_document_of_a_run_that_goes_on_or_is_gone(user: User, fake: FakeCluster, removed: bool) -> None:
    """A script would take it for the run's end. The code is that of `wait` without `-o json`."""
    fake.pods_do(waits)
    assert user.up("-d", command=["true"]).end() == 0
    before = len(fake.asked("watch", "pods"))
    wait = user.starts("wait", "job.yaml", "-o", "json")
    wait_until(lambda: len(fake.asked("watch", "pods")) > before)
    if removed:
        assert user.runs("down").process.returncode == 0
    else:
        wait.tell(signal.SIGINT)
    assert wait.end() in ({125, 143} if removed else {130}), wait.words()  # 143 where the pod's end came before
    assert (bytes(wait.out), "TL510" in wait.said) == (b"", False), wait.words()


def test_all_without_a_run_takes_every_run_of_mine(user: User, fake: FakeCluster) -> None:
    """After a list of them, and none of somebody else's; without either it is a question."""
    assert user.up("-d", script="sleep 3600").end() == 0
    fake.api.user = BOB
    assert user.up("-d", script="sleep 3601").end() == 0
    assert verb(user, "down", *HERE).process.returncode == 2
    done = verb(user, "down", "--all", *HERE)
    assert (done.process.returncode, "removing 1 run" in done.said, BOB in done.said) == (0, True, True), done.words()
    assert [each["metadata"]["annotations"]["trainlaunch.dev/owner"] for each in workloads(fake)] == [ME]
    fake.api.user = ME
    assert verb(user, "down", "--all", *HERE).process.returncode == 0
    assert verb(user, "down", "--all", *HERE).process.returncode == 3
    assert fake.objects() == []


def test_replace_names_the_run_that_somebody_applied(user: User, fake: FakeCluster) -> None:
    """Not the ConfigMap of its code, which `down` knows no run of."""
    (user.folder / "src").mkdir(parents=True)
    (user.folder / "src" / "train.py").write_text("print(1)\n")
    user.writes(command=["true"], mounts=[{"type": "code", "source": "./src", "target": "/workspace"}])
    apply(fake, bytes(verb(user, "render", "job.yaml").out).decode())
    (job,) = workloads(fake)
    again = verb(user, "up", "job.yaml", "--replace")
    assert again.process.returncode == 125, again.words()
    assert f"trainlaunch down {job['metadata']['name']} --owner any" in again.said
    assert verb(user, "down", job["metadata"]["name"], "--owner", "any", *HERE).process.returncode == 0


def test_a_file_with_an_error_still_names_its_namespace(user: User, fake: FakeCluster) -> None:
    """Its runs are looked for where they are, not where the context points."""
    fake.add_namespace("lab")
    assert user.up("-d", script="sleep 3600", kubernetes={"namespace": "lab"}).end() == 0
    user.writes(script="sleep 3600", kubernetes={"namespace": "lab", "kind": "deployment"})
    done = user.runs("down")
    assert done.process.returncode == 0, done.words()
    assert fake.objects("lab") == []
