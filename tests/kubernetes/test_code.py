"""The job's code on a cluster that has no claim of this user's: a ConfigMap that comes and goes with the run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.kubernetes.asking import apply, wait_until
from tests.kubernetes.contract.user import User
from tests.kubernetes.kinds import CONFIG_MAPS, JOBS, PODS
from tests.kubernetes.pods import Pod
from tests.kubernetes.processes import runs_its_command
from tests.kubernetes.role import documented_role
from tests.kubernetes.server import FakeCluster

CODE = [{"type": "code", "source": "./src", "target": "/workspace"}]
LOADED = "print('trains with', pkg.model.WIDTH)\n"


@pytest.fixture
def src(user: User) -> Path:
    """Return the job's folder of code: a script and a package below it."""
    package = user.folder / "src" / "pkg"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "model.py").write_text("WIDTH = 8\n")
    (package.parent / "train.py").write_text(f"import pkg.model\n{LOADED}")
    return package.parent


def job(**fields: Any) -> dict[str, Any]:
    """Return the fields of a job that runs the script."""
    return {"command": ["python3", "train.py"], "working_dir": "/workspace", "mounts": CODE, **fields}


def test_the_readmes_job_starts_on_a_cluster_without_a_claim(user: User, fake: FakeCluster) -> None:
    """As its text stands, with the script and the package that its user has beside it."""
    text = next(each for each in re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.S))
    (user.folder / "pkg").mkdir(parents=True)
    (user.folder / "pkg" / "model.py").write_text("WIDTH = 8\n")
    (user.folder / "train.py").write_text(f"import sys, pkg.model\nprint(sys.argv[1])\n{LOADED}")
    (user.folder / "job.yaml").write_text(text)
    fake.pods_do(runs_its_command)
    done = user.starts("up", "job.yaml", "--target", "kubernetes", "--set", "image_entrypoint=[]")
    assert done.end() == 0, done.words()
    assert done.lines == ["--workers", "trains with 8"]


def test_code_comes_with_the_run_and_goes_with_down(user: User, src: Path, fake: FakeCluster) -> None:
    """One immutable ConfigMap, which the Job owns."""
    fake.pods_do(runs_its_command)
    done = user.up(**job())
    assert done.end() == 0, done.words()
    assert done.lines == ["trains with 8"]
    (held,) = fake.store.all(CONFIG_MAPS, "team")
    (run,) = fake.store.all(JOBS, "team")
    assert held["immutable"] is True
    assert [each["uid"] for each in held["metadata"]["ownerReferences"]] == [run["metadata"]["uid"]]
    assert user.runs("down").process.returncode == 0
    assert fake.objects() == []


def test_code_goes_with_a_job_that_its_ttl_or_kubectl_removes(user: User, src: Path, fake: FakeCluster) -> None:
    """Nobody has to know of it."""
    fake.pods_do(runs_its_command)
    assert user.up(**job()).end() == 0
    (run,) = fake.store.all(JOBS, "team")
    fake.store.remove(JOBS, "team", run["metadata"]["name"])
    wait_until(lambda: fake.store.all(CONFIG_MAPS, "team") == [])


def test_edited_code_is_another_run(user: User, src: Path, fake: FakeCluster) -> None:
    """Neither the running Job nor what it mounts is changed under it."""
    fake.pods_do(runs_its_command)
    assert user.up(**job()).end() == 0
    (src / "pkg" / "model.py").write_text("WIDTH = 16\n")
    done = user.up(**job())
    assert done.end() == 0, done.words()
    assert done.lines == ["trains with 16"]
    assert len(fake.store.all(CONFIG_MAPS, "team")) == len(fake.store.all(JOBS, "team")) == 2


def test_another_attempt_of_a_pod_has_its_code_again(user: User, src: Path, fake: FakeCluster) -> None:
    """The first pod takes its ConfigMap with it."""

    def fails_once(pod: Pod) -> None:
        if len(seen) == 0:
            seen.append(pod.name)
            pod.start()
            pod.exit(3)
        else:
            runs_its_command(pod)

    seen: list[str] = []
    fake.pods_do(fails_once)
    done = user.up(**job(kubernetes={"kind": "pod"}, restart={"max_attempts": 2}))
    assert done.end() == 0, done.words()
    assert done.lines == ["trains with 8"]
    assert len(fake.store.all(PODS, "team")) == len(fake.store.all(CONFIG_MAPS, "team")) == 1


def test_who_may_not_hand_code_over_is_told_who_removes_it(user: User, src: Path, fake: FakeCluster) -> None:
    """The run itself lacks nothing."""
    fake.forbid("patch", "configmaps")
    fake.pods_do(runs_its_command)
    done = user.up(**job())
    assert done.end() == 0, done.words()
    assert "only `trainlaunch down` removes it" in done.said
    assert user.runs("down").process.returncode == 0
    assert fake.objects() == []


def test_who_may_not_make_configmaps_leaves_nothing(user: User, src: Path, fake: FakeCluster) -> None:
    """125 and the API server's words before anything runs."""
    fake.forbid("create", "configmaps")
    done = user.up(**job())
    assert done.end() == 125
    assert "configmaps" in done.said
    assert fake.objects() == []


def test_a_rendering_that_kubectl_applies_is_taken_down_whole(user: User, src: Path, fake: FakeCluster) -> None:
    """By its labels, since nothing owns the ConfigMap then."""
    user.writes(**job())
    apply(fake, bytes(user.runs("render").out).decode())
    assert any(each.startswith("ConfigMap/") for each in fake.objects())
    assert user.runs("down", "--owner", "any").process.returncode == 0
    assert fake.objects() == []


def test_the_documented_role_is_enough_for_code(user: User, src: Path, fake: FakeCluster) -> None:
    """The run owns its ConfigMap, and nothing is said of rights."""
    fake.grant(documented_role())
    assert user.up("-d", **job()).end() == 0
    (held,) = fake.store.all(CONFIG_MAPS, "team")
    assert held["metadata"]["ownerReferences"][0]["kind"] == "Job"
    down = user.runs("down")
    assert (down.process.returncode, "may" in down.said) == (0, False), down.words()
