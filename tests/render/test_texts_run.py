"""The texts for tools of others, each run the way its tool runs it, on the real engine."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.verify import verified

from tests import plain_yaml
from tests.conftest import ROOT

SCRIPT = """import os, sys
free = os.statvfs("/dev/shm")
size = free.f_frsize * free.f_blocks >> 20
print("ran with", sys.argv[1:], os.path.samefile(".", "/workspace"), size, "MiB", os.environ["NOTE"])
"""
SAID = "ran with ['${{ x }}', '2'] True 96 MiB a \"b\" $c"


def tool(name: str) -> str:
    """Return a program of the test packages; skips without it, which CI takes for a failure."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None and os.environ.get("CI"):
        pytest.fail(f"{name} is not installed: pip install '.[test]'")
    if found is None:
        pytest.skip(f"{name} is not installed: pip install '.[test]'")
    return str(found)


def done(argv: list[str], folder: Path, timeout: int = 300, **kw: Any) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder."""
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=timeout, **kw)


def commit(folder: Path, *paths: str) -> None:
    """Make a repository of a folder, with these files in it."""
    user = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    for argv in (["init", "-q"], ["add", *paths], [*user, "commit", "-qm", "t"]):
        assert done(["git", *argv], folder).returncode == 0


@pytest.fixture
def repository(tmp_path: Path, torch_image: str) -> Path:
    """Return a git repository with a job whose script says what it sees."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(SCRIPT)
    (tmp_path / "src" / "requirements.txt").write_text("# nothing that a registry would be asked for\n")
    job = {
        "name": "texts",
        "image": torch_image,
        "command": ["python", "train.py", "${{ x }}", "{num_workers}"],
        "working_dir": "/workspace",
        "env": {"NOTE": 'a "b" $c'},
        "mounts": [{"type": "bind", "source": "./src", "target": "/workspace"}],
        "resources": {"cpus": 2, "memory": "1Gi"},
        "shm_size": "96Mi",
        "data_loader": {"num_workers": 2, "batch_bytes": {"size": "1Mi", "tensors": 1}},
    }
    (tmp_path / "job.yaml").write_text(plain_yaml.dump(job))
    commit(tmp_path, "-A")
    return tmp_path


def text_of(repository: Path, target: str) -> tuple[LaunchPlan, str]:
    """Return the plan and the proved text of the repository's job."""
    plan = plan_job(read_job(repository / "job.yaml", target=target))
    return plan, verified(plan, render(plan))


@pytest.fixture
def image() -> Iterator[str]:
    """Return the name of an image that is removed at the end."""
    name = f"trainlaunch-test-text:{uuid.uuid4().hex[:12]}"
    yield name
    subprocess.run(["docker", "image", "rm", "--force", name], capture_output=True, check=False)


@pytest.mark.docker
def test_the_dockerfile_builds_and_its_own_line_starts_it(repository: Path, image: str) -> None:
    """The preflight is in front, /dev/shm as the line says; the image's own health check is the plan's."""
    _, text = text_of(repository, "dockerfile")
    (repository / "Dockerfile").write_text(text)
    built = done(["docker", "build", "--tag", image, "."], repository, env={**os.environ, "DOCKER_BUILDKIT": "0"})
    assert built.returncode == 0, built.stdout + built.stderr
    line = shlex.split(re.findall(r"^# (docker run .*)$", text, re.MULTILINE)[0])
    ran = done([*line[:-1], image], repository)
    assert (ran.returncode, ran.stdout.strip()) == (0, SAID), ran.stderr
    assert "preflight passed: /dev/shm 96 MiB" in ran.stderr
    small = done(["docker", "run", "--rm", "--init", "--shm-size=1m", image], repository)
    assert (small.returncode, "preflight stopped (78)" in small.stderr) == (78, True)


def test_the_dockerfile_has_nothing_for_hadolint(tmp_path: Path) -> None:
    """Exec forms that run over lines included."""
    program = tool("hadolint")
    checked = done([program, str(ROOT / "tests" / "render" / "golden" / "ci" / "ci.Dockerfile")], tmp_path)
    assert (checked.returncode, checked.stdout) == (0, "")


@pytest.mark.docker
def test_a_github_job_runs_as_its_runner_runs_it(repository: Path) -> None:
    """The container from `container.options`, the clone where the job expects it, the step's exit code."""
    act = tool("act")
    _, text = text_of(repository, "github-actions")
    workflows = repository / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "texts.yaml").write_text(text)
    base = "ubuntu-24.04=trainlaunch-test:base"
    ran = done([act, "workflow_dispatch", "--rm", "--pull=false", "-P", base], repository, stdin=subprocess.DEVNULL)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert SAID in ran.stdout
    assert "preflight passed: /dev/shm 96 MiB" in ran.stdout
    (workflows / "texts.yaml").write_text(text.replace("--shm-size 96m", "--shm-size 1m"))
    stopped = done([act, "workflow_dispatch", "--rm", "--pull=false", "-P", base], repository, stdin=subprocess.DEVNULL)
    assert stopped.returncode != 0
    assert "exitcode '78'" in stopped.stdout


@pytest.mark.docker
def test_a_gitlab_job_runs_with_what_its_header_asks_of_the_runner(repository: Path) -> None:
    """The docker executor gives the script to the image's shell on stdin, in a container of the settings' size."""
    plan, text = text_of(repository, "gitlab-ci")
    ((_, job),) = plain_yaml.load(text).items()
    settings = dict(re.findall(r'^#     (\w+) = "?([^"\n]+)"?$', text, re.MULTILINE))
    flags = ["--shm-size", settings["shm_size"], "--memory", settings["memory"], "--cpus", settings["cpus"]]
    variables = [part for name, each in job["variables"].items() for part in ("--env", f"{name}={each['value']}")]
    clone = ["--volume", f"{repository}:/builds/p", "--env", "CI_PROJECT_DIR=/builds/p", "--workdir", "/builds/p"]
    argv = [
        "docker",
        "run",
        "--rm",
        "--interactive",
        "--entrypoint",
        "",
        *flags,
        *variables,
        *clone,
        plan.job.image,
        "sh",
    ]
    ran = done(argv, repository, input="set -e\n" + "\n".join(job["script"]))
    assert (ran.returncode, ran.stdout.strip()) == (0, SAID), ran.stderr


@pytest.mark.docker
def test_a_devcontainer_is_proved_when_it_starts(repository: Path, own_label: str) -> None:
    """Its runArgs and mounts make the container, which the editor keeps alive; postStartCommand is the preflight."""
    _, text = text_of(repository, "devcontainer")
    found = json.loads(re.sub(r"^//.*\n", "", text, flags=re.MULTILINE))
    mounts = [each.replace("${localWorkspaceFolder}", str(repository)) for each in found["mounts"]]
    flags = [*found["runArgs"], *(part for each in mounts for part in ("--mount", each))]
    flags += [part for name, value in found["containerEnv"].items() for part in ("--env", f"{name}={value}")]
    started = done(
        ["docker", "run", "--detach", "--init", "--label", own_label, *flags, found["image"], "sleep", "300"],
        repository,
    )
    assert started.returncode == 0, started.stderr
    inside = ["docker", "exec", "--workdir", found["workspaceFolder"], started.stdout.strip()]
    proved = done([*inside, *found["postStartCommand"]], repository)
    assert proved.returncode == 0, proved.stderr
    assert "preflight passed: /dev/shm 96 MiB" in proved.stderr
    ran = done([*inside, "python", "train.py", "${{ x }}", "2"], repository)
    assert ran.stdout.strip() == SAID


LINE = "docker run --gpus all pytorch/pytorch:2.4.0 python train.py --num-workers 8\n"


@pytest.mark.docker
def test_the_composite_action_runs_as_a_runner_runs_it(tmp_path: Path) -> None:
    """Installed from this checkout on the runner itself; a finding is an annotation and fails the job.

    The packages that it needs are those of the tests: CI's quickstart is what asks an index for them.
    """
    act = tool("act")
    listed = done(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT).stdout
    for each in filter(None, listed.split("\0")):
        if (ROOT / each).is_file() and not each.startswith("tests/"):
            (tmp_path / "action" / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / each, tmp_path / "action" / each)
    (tmp_path / "bad.sh").write_text(LINE)
    (tmp_path / "good.sh").write_text(LINE.replace("--gpus all", "--gpus all --shm-size=8g --memory=32g"))
    workflow = tmp_path / ".github" / "workflows" / "lint.yaml"
    workflow.parent.mkdir(parents=True)
    python = {"python": sys.executable}
    steps = [
        {"uses": "actions/checkout@v4"},
        {"uses": "./action", "with": {"lint": "good.sh", "check": "action/k8s", **python}},
        {"run": "echo the first passed"},
        {"uses": "./action", "with": {"lint": "bad.sh", **python}},
    ]
    own_packages = {"PYTHONPATH": sysconfig.get_path("purelib"), "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1"}
    job = {"runs-on": "ubuntu-latest", "env": own_packages, "steps": steps}
    workflow.write_text(plain_yaml.dump({"on": {"push": {}}, "jobs": {"a": job}}))
    commit(tmp_path, "-A")
    ran = done([act, "push", "-P", "ubuntu-latest=-self-hosted"], tmp_path, 600, stdin=subprocess.DEVNULL)
    assert "the first passed" in ran.stdout, ran.stdout[-3000:] + ran.stderr
    assert "::error file=bad.sh,line=1,title=TL301::" in ran.stdout
    assert ran.returncode != 0


def test_the_gitlab_template_runs_in_its_order(tmp_path: Path) -> None:
    """before_script, then script, in one shell that stops at an error; both jobs."""
    document = plain_yaml.load((ROOT / ".ci" / "gitlab.yml").read_text())
    base = document[".trainlaunch"]
    (tmp_path / "run.sh").write_text(LINE)
    program = tmp_path / "trainlaunch"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}/launcher" exec "{sys.executable}" -m trainlaunch "$@"\n')
    program.chmod(0o755)
    for name, path, code in (("trainlaunch-lint", "run.sh", 1), ("trainlaunch-check", str(ROOT / "compose"), 0)):
        assert document[name]["extends"] == ".trainlaunch"
        lines = [each.replace("/tmp/trainlaunch-ci/bin/trainlaunch", str(program)) for each in document[name]["script"]]
        env = {**os.environ, **base["variables"], "TRAINLAUNCH_PATHS": path}
        ran = done(["sh", "-e", "-c", "\n".join(lines)], tmp_path, env=env)
        assert ran.returncode == code, ran.stderr
    assert [each.split()[0] for each in base["before_script"]] == ["python3", "/tmp/trainlaunch-ci/bin/pip"]
