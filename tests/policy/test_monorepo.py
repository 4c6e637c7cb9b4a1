"""A repository of 30 jobs of three teams, under policies, profiles and two environments: what docs/policy.md shows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import plain_yaml
from tests.conftest import ROOT, Runs

MONOREPO = Path(__file__).parent / "monorepo"
TEAMS = ("vision", "nlp", "speech")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Return a copy of the repository, as a checkout has it."""
    shutil.copytree(MONOREPO, tmp_path / "repo")
    (tmp_path / "repo" / ".git").mkdir()
    return tmp_path / "repo"


def test_all_jobs_are_rendered_and_checked(trainlaunch: Runs, repo: Path) -> None:
    """30 jobs for two targets by the repository's own policy, and CI's check passes."""
    done = trainlaunch("render", *TEAMS, cwd=repo)
    assert done.returncode == 0, done.stderr
    assert "30 jobs, 60 rendered files: 60 written" in done.stderr
    checked = trainlaunch("check", "--strict", "--all-rendered", cwd=repo)
    assert checked.returncode == 0, checked.stderr
    assert "speech/trainlaunch-policy.yaml" in checked.stderr
    assert "checked 60 rendered files: 60 current" in checked.stderr


@pytest.mark.parametrize(("environment", "namespace"), [("staging", "staging"), ("prod", "training")])
def test_an_environment_is_a_policy_file(trainlaunch: Runs, repo: Path, environment: str, namespace: str) -> None:
    """The same jobs, other namespaces, deadlines and demands; each rendering names its policy and check uses it."""
    policy = f"environments/{environment}.yaml"
    done = trainlaunch("render", "vision", "nlp", "--policy", policy, "--set", "labels.team=x", cwd=repo)
    assert done.returncode == 0, done.stderr
    folder = repo / "deploy" / environment
    assert len(list(folder.iterdir())) == 20
    for path in folder.iterdir():
        *_, main = plain_yaml.load_all(path.read_text())
        assert main["metadata"]["namespace"] == namespace
        assert main["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpu"
    assert trainlaunch("check", "deploy", cwd=repo).returncode == 0


def test_a_profile_takes_the_place_of_repeated_blocks(trainlaunch: Runs, repo: Path) -> None:
    """Tolerations of the profile and of the organisation, the memory of the nearer file."""
    trainlaunch("render", "nlp", "--target", "kubernetes", cwd=repo)
    (job,) = plain_yaml.load_all((repo / "deploy" / "kubernetes" / "nlp-gpt.yaml").read_text())
    pod = job["spec"]["template"]["spec"]
    assert [each["key"] for each in pod["tolerations"]] == ["nvidia.com/gpu", "pool", "dedicated"]
    assert pod["containers"][0]["resources"]["limits"]["memory"] == "163840Mi"


@pytest.mark.parametrize(
    ("team", "line", "said"),
    [
        ("speech", "image: registry.example.com/ml/vision/asr:1", "the policy allows registry.example.com/ml/speech"),
        ("vision", "data_loader: {num_workers: 13, batch_size: 1}", "max.num_workers 12"),
        ("nlp", "kubernetes: {pod_security: privileged}", "the policy allows restricted and baseline"),
        ("nlp", "patches: {docker: {extra_args: [--privileged]}}", "no privileges beyond restricted and baseline"),
        ("nlp", "labels: {team: NLP}", "a value like [a-z]+"),
        ("nlp", "profile: b200", "is in no policy in force"),
    ],
)
def test_what_a_team_may_not_is_refused(trainlaunch: Runs, repo: Path, team: str, line: str, said: str) -> None:
    """By the nearest policy that says so, at the job's line."""
    path = next(each for each in sorted((repo / team).glob("*.yaml")) if each.name != "trainlaunch-policy.yaml")
    field = line.partition(":")[0]
    kept = [each for each in path.read_text().splitlines() if not each.startswith(f"{field}:")]
    path.write_text("\n".join([*kept, line, ""]))
    done = trainlaunch(
        "plan", str(path.relative_to(repo)), "--target", "docker" if "docker" in line else "kubernetes", cwd=repo
    )
    assert done.returncode == 1
    assert said in done.stderr, done.stderr


def test_a_program_renders_by_the_api() -> None:
    """The scheduler's example prints applicable manifests; what stands in `trainlaunch.api` is typed and listed."""
    from trainlaunch import api

    script = ROOT / "examples" / "scheduler" / "nightly.py"
    job = str(ROOT / "examples" / "quickstart" / "job.yaml")
    here = {**os.environ, "PYTHONPATH": str(ROOT / "launcher")}
    done = subprocess.run([sys.executable, script, job], capture_output=True, text=True, check=True, cwd=ROOT, env=here)
    named = [each["metadata"]["labels"]["trainlaunch.dev/job"] for each in plain_yaml.load_all(done.stdout) if each]
    assert named == ["nightly-digits", "nightly-letters"]
    assert all(getattr(api, name).__doc__ for name in api.__all__)
    assert (ROOT / "launcher" / "trainlaunch" / "py.typed").is_file()
    checked = list(api.check([ROOT / "k8s"]))
    assert {each.status for each in checked} == {"current"}
    plan = api.plan(api.read_job(Path(job), target="local"))
    with pytest.raises(ValueError, match="renders no file"):
        api.render(plan)
