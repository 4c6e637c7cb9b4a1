"""The command line under a policy: where it is shown, kept in renderings, checked again, and said to whoever drafts."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests import plain_yaml
from tests.conftest import Runs
from tests.jobs import write_job

PORTABLE = {
    "image": "registry.example.com/ml/trainer:1",
    "resources": {"cpus": 16, "memory": "8Gi", "gpus": 1},
    "data_loader": {"batch_size": 8, "sample": {"shape": [3, 224, 224], "dtype": "float32"}},
}
POLICY = {
    "defaults": {"pull_policy": "always", "env": {"A": "1", "B": "2"}},
    "max": {"num_workers": 3},
    "allowed_registries": ["registry.example.com/ml"],
}


def write_policy(path: Path, **changes: object) -> Path:
    """Write POLICY with changes."""
    path.write_text(plain_yaml.dump({**POLICY, **changes}, sort_keys=False))
    return path


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Return a repository with repo/trainlaunch-policy.yaml, other.yaml and repo/jobs/job.yaml."""
    (tmp_path / ".git").mkdir()
    write_job(tmp_path / "repo" / "jobs", **PORTABLE, env={"B": "job"})
    write_policy(tmp_path / "repo" / "trainlaunch-policy.yaml")
    write_policy(tmp_path / "other.yaml", defaults={"pull_policy": "never"})
    return tmp_path


def test_plan_shows_what_the_policy_gives_and_caps(trainlaunch: Runs, kept: Path) -> None:
    """With file and line; a default that the job overrides isn't shown."""
    done = trainlaunch("plan", "jobs/job.yaml", "--why", cwd=kept / "repo")
    lines = {line.split()[0]: line for line in re.sub(r"\n +", " ", done.stdout).splitlines()}
    assert lines["policy"].endswith("= max.num_workers  (trainlaunch-policy.yaml)")
    assert lines["pull_policy"].split()[1] == "always"
    assert lines["pull_policy"].endswith("= default of the policy  (trainlaunch-policy.yaml:2 (policy))")
    assert lines["env.A"].endswith("(trainlaunch-policy.yaml:4 (policy))")
    assert "env.B" not in lines
    assert lines["num_workers"].split()[1] == "3"
    assert lines["num_workers"].endswith("(trainlaunch-policy.yaml:7 (policy))")


def test_plans_document_has_the_origin_of_every_value(trainlaunch: Runs, kept: Path) -> None:
    """Every stated value: policy, job, override, --set."""
    done = trainlaunch("plan", "jobs/job.yaml", "--set", "user=1000", "-o", "json", cwd=kept / "repo")
    document = json.loads(done.stdout)
    assert document["policies"] == ["trainlaunch-policy.yaml"]
    origins = document["origins"]
    assert origins["env.A"] == "trainlaunch-policy.yaml:4 (policy)"
    assert origins["env.B"] == "jobs/job.yaml:19"
    assert origins["user"] == "--set"
    assert origins["resources.cpus"].startswith("jobs/job.yaml:")


def test_a_found_policy_is_found_again(trainlaunch: Runs, kept: Path) -> None:
    """The rendering names its defaults and no option; check renders it again wherever it runs."""
    repo = kept / "repo"
    done = trainlaunch("render", "jobs/job.yaml", "--target", "all", "--write-to", "deploy", cwd=repo)
    assert done.returncode == 0, done.stderr
    text = (repo / "deploy" / "digits.compose.yaml").read_text()
    assert "# defaults of ../trainlaunch-policy.yaml: env.A, pull_policy\n" in text
    assert "# options:" not in text
    for cwd, path in ((repo, "deploy"), (kept, "repo"), (Path("/"), str(repo))):
        assert trainlaunch("check", path, cwd=cwd).returncode == 0
    moved = shutil.copytree(kept, kept / "moved")
    assert trainlaunch("check", cwd=moved).returncode == 0


def test_check_notices_a_changed_policy(trainlaunch: Runs, kept: Path) -> None:
    """A default, a ceiling that caps, a ceiling that is passed, a policy that is gone."""
    repo = kept / "repo"
    policy = repo / "trainlaunch-policy.yaml"
    trainlaunch("render", "jobs/job.yaml", "--target", "compose", "--write-to", "deploy", cwd=repo)
    write_policy(policy, defaults={"pull_policy": "never", "env": {"A": "1"}})
    assert "TL120" in trainlaunch("check", cwd=repo).stderr
    write_policy(policy, max={"num_workers": 2})
    assert "TL120" in trainlaunch("check", cwd=repo).stderr
    write_policy(policy, max={"num_workers": 3, "memory": "4Gi"})
    done = trainlaunch("check", cwd=repo)
    assert (done.returncode, "TL140" in done.stderr, "TL122" in done.stderr) == (1, True, True)
    write_policy(policy)
    assert trainlaunch("check", cwd=repo).returncode == 0
    policy.unlink()
    assert "TL120" in trainlaunch("check", cwd=repo).stderr


@pytest.mark.parametrize("write_to", [True, False])
def test_a_rendering_under_an_asked_policy_says_so(trainlaunch: Runs, kept: Path, write_to: bool) -> None:
    """The header has --policy as seen from the rendering, or from the job file's folder, and check takes it again."""
    repo = kept / "repo"
    asked = ("render", "jobs/job.yaml", "--target", "compose", "--policy", "../other.yaml")
    if write_to:
        trainlaunch(*asked, "--write-to", "deploy/here", cwd=repo)
        path = repo / "deploy" / "here" / "digits.compose.yaml"
        seen = "../../../other.yaml"
    else:
        path = repo / "jobs" / "digits.compose.yaml"
        path.write_text(trainlaunch(*asked, cwd=repo).stdout)
        seen = "../../other.yaml"
    assert f"\n# options: --policy {seen}\n" in path.read_text()
    for cwd, where in ((kept, "."), (repo, "."), (Path("/"), str(kept))):
        assert trainlaunch("check", where, cwd=cwd).returncode == 0
    write_policy(kept / "other.yaml", defaults={"pull_policy": "missing"})
    assert "TL120" in trainlaunch("check", cwd=kept).stderr
    (kept / "other.yaml").unlink()
    gone = trainlaunch("check", cwd=kept)
    assert (gone.returncode, "TL101" in gone.stderr) == (1, True)


def test_an_absolute_policy_stays_one(trainlaunch: Runs, kept: Path) -> None:
    """Where it is the machine's own, no folder of a checkout has a way to it that is the same everywhere."""
    repo, other = kept / "repo", str(kept / "other.yaml")
    job = repo / "jobs" / "job.yaml"
    for count, options in enumerate((("--policy", other), ())):
        if not options:
            job.write_text(f"{job.read_text()}policy: {other}\n")
        folder = repo / f"deploy-{count}"
        trainlaunch("render", str(job), "--target", "compose", *options, "--write-to", str(folder), cwd="/")
        text = (folder / "digits.compose.yaml").read_text()
        assert f"# defaults of {other}: pull_policy\n" in text
        assert (f"# options: --policy {other}\n" in text) == bool(options)
        deeper = shutil.copytree(repo, kept / "some" / "where" / str(count))
        for each in (repo, deeper):
            assert trainlaunch("check", str(each / f"deploy-{count}"), cwd="/").returncode == 0


def test_check_holds_all_renderings_to_an_asked_policy(trainlaunch: Runs, kept: Path) -> None:
    """As in CI: what another policy made differs, or breaks this one."""
    repo = kept / "repo"
    trainlaunch("render", "jobs/job.yaml", "--target", "compose", "--write-to", "deploy", cwd=repo)
    found = ("check", "--policy", "trainlaunch-policy.yaml")
    assert trainlaunch(*found, cwd=repo).returncode == 0
    trainlaunch(
        *("render", "jobs/job.yaml", "--target", "compose", "--overwrite"),
        *("--policy", "../other.yaml", "--write-to", "deploy"),
        cwd=repo,
    )
    assert trainlaunch("check", cwd=repo).returncode == 0
    assert "TL120" in trainlaunch(*found, cwd=repo).stderr
    assert trainlaunch(*found, "--fix", cwd=repo).returncode == 0
    assert "--policy" not in (repo / "deploy" / "digits.compose.yaml").read_text()
    strict = write_policy(kept / "strict.yaml", allowed_registries=["docker.io/library"])
    assert "TL142" in trainlaunch("check", "--policy", str(strict), cwd=repo).stderr


def test_a_run_is_found_whatever_the_policy_forbids(trainlaunch: Runs, kept: Path) -> None:
    """The verbs about runs take a job's name from its file: a stricter policy can't keep a run from being ended."""
    policy = write_policy(kept / "strict.yaml", max={"memory": "16Mi"}, require_digest=True)
    for verb in ("down", "status", "logs", "wait"):
        options = ("--policy", str(policy), "--target", "local")
        done = trainlaunch(verb, "repo/jobs/job.yaml", *options, cwd=kept, env={"XDG_STATE_HOME": str(kept / "state")})
        assert "TL510" in done.stderr, done.stderr


def test_init_warns_of_what_its_policy_asks(trainlaunch: Runs, kept: Path) -> None:
    """The draft is written all the same: labels and images are what its author fills in."""
    write_policy(kept / "repo" / "trainlaunch-policy.yaml", required_labels=["team"], max={"memory": "1Gi"})
    flags = ("--name", "new", "--image", "evil/trainer:1", "--cpus", "2", "--memory", "2Gi")
    done = trainlaunch("init", *flags, "--write-to", "jobs/new.yaml", cwd=kept / "repo")
    assert done.returncode == 0, done.stderr
    assert (kept / "repo" / "jobs" / "new.yaml").is_file()
    for code in ("TL140", "TL141", "TL142"):
        assert f"warning[{code}]" in done.stderr
    assert "/tmp" not in done.stderr.replace(str(kept), "")
    assert "warning" not in trainlaunch("init", *flags, cwd="/").stderr


def test_a_policy_with_errors_stops_every_verb_that_plans(trainlaunch: Runs, kept: Path) -> None:
    """Without it the job would be another one; its runs are found and ended all the same."""
    (kept / "repo" / "trainlaunch-policy.yaml").write_text("max: {memori: 1Gi}\n")
    for words in (("plan",), ("render",), ("lock",), ("up",)):
        done = trainlaunch(*words, "jobs/job.yaml", cwd=kept / "repo")
        assert done.returncode in {1, 125}
        assert "error[TL104]: unknown key memori in max\n  --> trainlaunch-policy.yaml:1:7" in done.stderr
    nothing = {"XDG_STATE_HOME": str(kept / "state")}
    done = trainlaunch("down", "jobs/job.yaml", "--target", "local", cwd=kept / "repo", env=nothing)
    assert "TL510" in done.stderr
    assert "is not a job that can run (TL104)" in done.stderr


def test_a_fifo_in_the_place_of_a_policy_is_said_at_once(trainlaunch: Runs, kept: Path) -> None:
    """To open it would be to wait for whoever writes it."""
    policy = kept / "repo" / "trainlaunch-policy.yaml"
    policy.unlink()
    os.mkfifo(policy)
    done = trainlaunch("plan", "jobs/job.yaml", cwd=kept / "repo")
    assert (done.returncode, "TL101" in done.stderr, "is a FIFO" in done.stderr) == (1, True, True)
