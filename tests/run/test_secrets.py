"""Secrets of every source and shape arrive byte for byte: through `up`, through the script, through Compose."""

from __future__ import annotations

import os
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render
from trainlaunch.run.docker.backend import DockerBackend
from trainlaunch.verify import verified

from tests.conftest import Runs
from tests.jobs import plan_with
from tests.planted import MARK, VARIABLES, expected_values, secret_fields, told_values
from tests.render.readers import compose
from tests.run.conftest import SMALL, docker, inspected

WRITTEN = ("WRITTEN", "WRITTEN_TOO")
IN_CONTAINER = {name: f"/run/secrets/{name}" for name in (*WRITTEN, "BOUND")}
OTHER_USER = {"user": "1000:1000", "read_only": True}
USERS = [
    pytest.param(OTHER_USER, id="uid 1000, read-only root"),
    pytest.param({}, id="root", marks=pytest.mark.long),
]
MakeJob = Callable[..., Path]


def assert_seen(output: str) -> None:
    """Assert that a job saw each secret as planted, where a container has it, and written ones for itself alone."""
    values, paths, modes = told_values(output)
    assert values == expected_values()
    assert paths == IN_CONTAINER
    assert {name: modes[name] for name in WRITTEN} == {name: ["0o400", True] for name in WRITTEN}


@pytest.mark.docker
@pytest.mark.parametrize("user", [{}, OTHER_USER], ids=["root", "uid 1000, read-only root"])
def test_secrets_arrive_through_up(trainlaunch: Runs, make_job: MakeJob, tmp_path: Path, user: dict[str, Any]) -> None:
    """The SDK's container; the job prints nothing that is planted, so nothing planted is anywhere in what we say."""
    job = make_job(**secret_fields(tmp_path), **user)
    done = trainlaunch("up", str(job), env=VARIABLES)
    assert done.returncode == 0, done.stderr
    assert_seen(done.stdout)
    assert MARK not in done.stdout + done.stderr


@pytest.mark.docker
@pytest.mark.parametrize("user", USERS)
def test_secrets_arrive_through_the_script(fields: dict[str, Any], tmp_path: Path, user: dict[str, Any]) -> None:
    """The rendered text alone, with values in the shell's environment and in files beside the job."""
    plan = plan_with(tmp_path, **{**fields, **secret_fields(tmp_path), **user})
    done = run_script(plan, tmp_path, VARIABLES)
    assert done.returncode == 0, done.stderr
    assert_seen(done.stdout)


@pytest.mark.docker
@pytest.mark.parametrize("user", USERS)
def test_secrets_arrive_through_compose(fields: dict[str, Any], tmp_path: Path, user: dict[str, Any]) -> None:
    """The real Compose v2: files are its own secrets, also where the root is read-only."""
    plan = plan_with(tmp_path, "compose", **{**fields, **secret_fields(tmp_path), **user})
    text = verified(plan, render(plan))
    try:
        done = compose("up", "--no-log-prefix", "--exit-code-from", plan.name, text=text, cwd=tmp_path, env=VARIABLES)
    finally:
        compose("down", "--volumes", "--timeout", "0", text=text, cwd=tmp_path, env=VARIABLES)
    assert done.returncode == 0, done.stderr
    assert_seen(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert MARK not in done.stdout + done.stderr


def run_script(plan: LaunchPlan, folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a job's docker text in its folder."""
    return subprocess.run(
        ["sh"],
        input=verified(plan, render(plan)),
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


BROKEN = {
    "variable not set": {"env": "NOT_SET"},
    "file not there": {"file": "./nowhere"},
    "file not there, as a file": {"file": "./nowhere", "as": "file"},
    "empty file": {"file": "./empty"},
    "empty file, as a file": {"file": "./empty", "as": "file"},
    "only line breaks": {"file": "./breaks"},
    "a folder": {"file": "."},
    "a folder, as a file": {"file": ".", "as": "file"},
}


@pytest.mark.docker
@pytest.mark.parametrize("source", BROKEN.values(), ids=BROKEN)
def test_a_source_that_is_not_there_is_125_before_anything_starts(
    trainlaunch: Runs, make_job: MakeJob, job_name: str, tmp_path: Path, source: dict[str, str]
) -> None:
    """Both ways: `up` says TL507, the script its sentence, and no container was made."""
    (tmp_path / "empty").touch()
    (tmp_path / "breaks").write_text("\n\n")
    job = make_job(secrets={"TOKEN": source})
    done = trainlaunch("up", str(job))
    assert (done.returncode, done.stdout) == (125, "")
    assert "error[TL507]: secret TOKEN has no value: the " in done.stderr
    script = run_script(plan_with(tmp_path, **{**SMALL, "name": job_name, "secrets": {"TOKEN": source}}), tmp_path, {})
    assert script.returncode == 125
    assert "secret TOKEN: " in script.stderr
    assert docker("ps", "--all", "--quiet", f"--filter=name={job_name}") == ""


@pytest.mark.docker
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user here")
@pytest.mark.parametrize("shape", ["env", "file"])
def test_a_file_that_the_caller_cannot_read_is_125(fields: dict[str, Any], tmp_path: Path, shape: str) -> None:
    """Whoever may talk to the engine could read it through a container; that is no way to pass a secret."""
    (tmp_path / "token").write_text("of-root-alone")
    (tmp_path / "token").chmod(0o400)
    plan = plan_with(tmp_path, **{**fields, "secrets": {"TOKEN": {"file": str(tmp_path / "token"), "as": shape}}})
    text = verified(plan, render(plan))
    done = subprocess.run(["sh"], input=text, capture_output=True, text=True, check=False, user=12345, timeout=60)
    assert done.returncode == 125
    assert "can't be read, or is empty" in done.stderr
    assert docker("ps", "--all", "--quiet", f"--filter=name={plan.name}") == ""


@pytest.mark.docker
def test_a_file_that_the_jobs_user_cannot_read_stops_the_preflight(
    trainlaunch: Runs, make_job: MakeJob, tmp_path: Path
) -> None:
    """A bind keeps the owner that the file has on this host: 78, with the uid that lacks it."""
    (tmp_path / "token").write_text("of-root-alone")
    (tmp_path / "token").chmod(0o400)
    secrets = {"TOKEN": {"file": "./token", "as": "file"}}
    done = trainlaunch("up", str(make_job(secrets=secrets, user="1000")))
    assert done.returncode == 78
    assert "uid 1000 can't read /run/secrets/TOKEN" in done.stderr


@pytest.mark.docker
def test_a_value_read_on_the_host_needs_no_permission_in_the_container(
    trainlaunch: Runs, make_job: MakeJob, tmp_path: Path
) -> None:
    """A file as a variable is read by who starts the job, whatever uid the job has."""
    (tmp_path / "token").write_text("of-root-alone\n")
    (tmp_path / "token").chmod(0o400)
    job = make_job(secrets={"TOKEN": {"file": "./token"}}, user="1000", script='test "$TOKEN" = "of-root-alone"')
    done = trainlaunch("up", str(job))
    assert done.returncode == 0, done.stderr


@pytest.fixture
def image_with_secrets_folder(base_image: str) -> Iterator[str]:
    """Return an image that has a folder /run/secrets of its own, as no user but root can write to it."""
    made = f"trainlaunch-test:{uuid.uuid4().hex[:12]}"
    container = docker("create", base_image, "true")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "secrets").mkdir(mode=0o755)
        docker("cp", f"{folder}/secrets", f"{container}:/run/")
    docker("commit", container, made)
    docker("rm", container)
    yield made
    docker("image", "rm", "--force", made)


@pytest.mark.docker
def test_an_images_own_folder_of_secrets_is_named(
    trainlaunch: Runs, make_job: MakeJob, image_with_secrets_folder: str
) -> None:
    """runc gives a tmpfs the mode of the folder that it hides; what the preflight then can't write is said."""
    fields = {"secrets": {"TOKEN": {"env": "TOKEN", "as": "file"}}, "image": image_with_secrets_folder}
    env = {"TOKEN": "pl4nted-token"}
    done = trainlaunch("up", str(make_job(**fields, user="1000")), env=env)
    assert done.returncode == 78
    assert "uid 1000 can't write /run/secrets/TOKEN; remove its folder from the image" in done.stderr
    assert trainlaunch("up", str(make_job(**fields, script='test -s "$TOKEN_FILE"')), env=env).returncode == 0


@pytest.mark.docker
def test_a_secret_that_is_gone_when_another_attempt_starts_is_told(
    trainlaunch: Runs, make_job: MakeJob, tmp_path: Path
) -> None:
    """Each attempt reads it anew; the job is not started without it, and the last attempt's code is the run's."""
    (tmp_path / "token").write_text("pl4nted-first")
    job = make_job(
        secrets={"TOKEN": {"file": "./token"}},
        mounts=[{"type": "bind", "source": ".", "target": "/job"}],
        restart={"max_attempts": 2},
        script="rm /job/token; exit 3",
    )
    done = trainlaunch("up", str(job))
    assert done.returncode == 3
    assert "attempt 1 of 2 ended with exit code 3" in done.stderr
    assert "attempt 2 can't be started: TL507: secret TOKEN has no value: the file" in done.stderr


@pytest.mark.docker
def test_inspect_shows_variables_and_no_file(fields: dict[str, Any], tmp_path: Path) -> None:
    """The engine's own view, as the docs say: a value passed as a variable, and never that of a mounted file."""
    plan = plan_with(tmp_path, **{**fields, **secret_fields(tmp_path)})
    backend = DockerBackend()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in VARIABLES.items():
            patch.setenv(name, value)
        container = backend.create(plan, "0123abcd", 1)
    backend.close()
    found = inspected(container)
    env = found["Config"].pop("Env")
    assert f"RENAMED={VARIABLES['HOST_RENAMED']}" in env
    assert f"{MARK}bound" not in str(env)
    assert MARK not in str(found)
