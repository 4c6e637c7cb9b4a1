"""Getting the image: pulled as pull_policy says, refused with the way out, its ENTRYPOINT never dropped in silence."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from trainlaunch.run.docker.image import Layers, unmentioned_entrypoint

from tests.conftest import Runs
from tests.jobs import plan_with
from tests.run.conftest import ROOT, docker
from tests.run.registry import image_of, registry_of

MakeJob = Callable[..., Path]
FRONT = ["/front", "a b", '"q"']
# The front of an image: marks that it ran, drops its own two arguments, becomes the rest.
FRONT_SCRIPT = b'#!/bin/sh\necho "front ran with $2"\nshift 2\nexec "$@"\n'


@pytest.fixture
def fronted_image(base_image: str, job_name: str) -> Iterator[str]:
    """Return an image whose ENTRYPOINT is FRONT, made from the base image."""
    container = docker("create", "--label=trainlaunch-test=front", base_image, "true")
    tag = f"trainlaunch-test:{job_name}"
    front = subprocess.run(
        ["docker", "cp", "-", f"{container}:/"], input=_tar({"front": FRONT_SCRIPT}), timeout=60, check=True
    )
    assert front.returncode == 0
    docker("commit", "--change", 'ENTRYPOINT ["/front", "a b", "\\"q\\""]', container, tag)
    docker("rm", container)
    yield tag
    docker("rmi", "--force", tag)


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def registry(base_image: str) -> Iterator[str]:
    """Return the reference of an image with a shell that no engine has yet."""
    shell = subprocess.run(
        ["docker", "run", "--rm", base_image, "cat", "/bin/busybox"], capture_output=True, timeout=60, check=True
    ).stdout
    image = image_of({"bin/sh": shell, "bin/echo": shell, "unique": uuid.uuid4().bytes}, {"Env": ["PATH=/bin"]})
    with registry_of(image) as host:
        yield f"{host}/trainer"
    for tag in docker("images", "--quiet", f"{host}/trainer").split():
        docker("rmi", "--force", tag)


@pytest.mark.docker
def test_a_missing_image_is_pulled_once(trainlaunch: Runs, make_job: MakeJob, registry: str) -> None:
    """With progress on stderr, and not again."""
    job = str(make_job(image=f"{registry}:1", command=["echo", "from the registry"], working_dir="/"))
    first, second = trainlaunch("up", job), trainlaunch("up", job)
    assert [each.stdout for each in (first, second)] == ["from the registry\n"] * 2, first.stderr
    assert f"trainlaunch: pulling {registry}:1" in first.stderr
    assert "pulled 1 layer" in first.stderr
    assert "pulling" not in second.stderr


@pytest.mark.docker
def test_a_pull_on_a_terminal_has_a_bar(make_job: MakeJob, registry: str) -> None:
    """One bar that is cleared at the end, and no line a layer."""
    master, slave = pty.openpty()
    argv = [sys.executable, "-m", "trainlaunch", "up", str(make_job(image=f"{registry}:2", command=["echo", "x"]))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "launcher"), "TERM": "xterm"}
    process = subprocess.Popen(argv, env=environment, stdin=slave, stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # Linux ends a terminal's output with EIO
        while data := os.read(master, 4096):
            shown += data
    os.close(master)
    assert process.wait(timeout=60) == 0, shown
    assert b"\x1b[2K" in shown
    assert b"pulled 1 layer" not in shown


@pytest.mark.docker
def test_an_absent_tag_is_refused_in_the_registrys_words(trainlaunch: Runs, make_job: MakeJob, registry: str) -> None:
    """TL503 with what the registry said and what to check."""
    done = trainlaunch("up", str(make_job(image=f"{registry}:absent")))
    assert done.returncode == 125
    assert f"error[TL503]: docker: pull image {registry}:absent" in done.stderr
    assert "docker login" in done.stderr


@pytest.mark.docker
def test_an_unreachable_registry_says_that_a_retry_may_help(trainlaunch: Runs, make_job: MakeJob) -> None:
    """Nothing listens there."""
    done = trainlaunch("up", str(make_job(image="127.0.0.1:9/trainer:1")))
    assert done.returncode == 125
    assert "error[TL503]" in done.stderr
    assert "retry" in done.stderr


@pytest.mark.docker
def test_never_pull_is_never(trainlaunch: Runs, make_job: MakeJob) -> None:
    """The policy is named, and so is the way to get the image."""
    done = trainlaunch("up", str(make_job(image="127.0.0.1:9/trainer:1", pull_policy="never")))
    assert done.returncode == 125
    assert "is not on this engine and pull_policy is never" in done.stderr
    assert "docker pull 127.0.0.1:9/trainer:1" in done.stderr


@pytest.mark.docker
def test_an_entrypoint_is_never_dropped_in_silence(trainlaunch: Runs, make_job: MakeJob, fronted_image: str) -> None:
    """TL509 prints the line to add; with that line the ENTRYPOINT runs in front, with [] it doesn't."""
    command = ["/bin/echo", "trained"]
    done = trainlaunch("up", str(make_job(image=fronted_image, command=command)))
    assert done.returncode == 125
    assert "error[TL509]" in done.stderr
    line = done.stderr.partition("add `")[2].partition("`")[0]
    assert yaml.safe_load(line) == {"image_entrypoint": FRONT}
    done = trainlaunch("up", str(make_job(image=fronted_image, command=command, **yaml.safe_load(line))))
    assert done.stdout == 'front ran with "q"\ntrained\n', done.stderr
    done = trainlaunch("up", str(make_job(image=fronted_image, command=command, image_entrypoint=[])))
    assert done.stdout == "trained\n"


def test_a_shell_form_entrypoint_is_never_advised_in_front(tmp_path: Path) -> None:
    """It drops what stands behind it: measured, the job never runs and the code is 0."""
    plan = plan_with(tmp_path)
    assert '["/bin/sh", "-c"' not in unmentioned_entrypoint(plan, ["/bin/sh", "-c", "exec serve"]).fix
    assert "`image_entrypoint: []`" in unmentioned_entrypoint(plan, ["/bin/sh", "-c", "exec serve"]).fix
    assert '`image_entrypoint: ["/bin/sh", "/front"]`' in unmentioned_entrypoint(plan, ["/bin/sh", "/front"]).fix


def test_progress_counts_complete_layers_and_bytes() -> None:
    """Events as the engine sends them; a layer that was there already has no size."""
    layers = Layers()
    events: list[dict[str, Any]] = [
        {"status": "Pulling from trainer", "id": "1"},
        {"status": "Already exists", "id": "aa"},
        {"status": "Downloading", "id": "bb", "progressDetail": {"current": 1 << 20, "total": 8 << 20}},
        {"status": "Downloading", "id": "cc", "progressDetail": {"current": 1 << 20, "total": 2 << 20}},
        {"status": "Download complete", "id": "cc"},
    ]
    assert [layers.take(each) for each in events] == [False] * 5
    assert (layers.received, layers.total) == (3 << 20, 10 << 20)
    assert layers.take({"status": "Pull complete", "id": "cc"})
    assert layers.line() == "pulled 1 layer, 3.0 MiB"
    assert layers.error == ""
    layers.take({"error": "manifest unknown"})
    assert layers.error == "manifest unknown"
