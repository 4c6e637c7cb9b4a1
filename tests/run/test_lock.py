"""`trainlaunch lock` on a real engine: digests of a real registry, and runs that are pinned by them."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trainlaunch.run.docker.image import _digest

from tests.conftest import Runs
from tests.job.test_lock import PROBE
from tests.run.conftest import docker
from tests.run.registry import Image, digest_of, image_of, registry_of

MakeJob = Callable[..., Path]
FRONT = ["/bin/front", "a b"]
FRONT_SCRIPT = b'#!/bin/sh\necho "front ran with $1"\nshift\nexec "$@"\n'


@pytest.fixture
def image(base_image: str) -> Image:
    """Return an image with a shell and an ENTRYPOINT that no engine has yet."""
    shell = subprocess.run(
        ["docker", "run", "--rm", base_image, "cat", "/bin/busybox"], capture_output=True, timeout=60, check=True
    ).stdout
    files = {"bin/sh": shell, "bin/echo": shell, "bin/front": FRONT_SCRIPT, "unique": uuid.uuid4().bytes}
    return image_of(files, {"Env": ["PATH=/bin"], "Entrypoint": FRONT})


@pytest.fixture
def reference(image: Image) -> Iterator[str]:
    """Serve it and return its reference; what the engine pulled of it is removed afterwards."""
    with registry_of(image) as host:
        yield f"{host}/trainer:1"
    for each in set(docker("images", "--quiet", f"{host}/trainer").split()):
        docker("rmi", "--force", each)


@pytest.mark.docker
def test_lock_asks_for_a_pull_and_pins_what_came(
    trainlaunch: Runs, make_job: MakeJob, image: Image, reference: str
) -> None:
    """Absent: exit 3 and the command to type. Pulled: digest and ENTRYPOINT in the lock; twice gives the same bytes."""
    job = make_job(image=reference, command=["echo", "hello"], working_dir="/")
    lock = job.with_name("job.lock.yaml")
    absent = trainlaunch("lock", str(job))
    assert absent.returncode == 3
    assert f"docker pull {reference}" in absent.stderr
    assert not lock.exists()
    docker("pull", "--quiet", reference)
    assert trainlaunch("lock", str(job)).returncode == 0
    text = lock.read_text()
    assert f'    digest: "{digest_of(image.manifest)}"\n    entrypoint:\n      - "/bin/front"\n      - "a b"\n' in text
    again = trainlaunch("lock", str(job))
    assert (again.returncode, lock.read_text()) == (0, text)
    assert "is current" in again.stderr


@pytest.mark.docker
def test_lock_asks_an_image_once_for_its_python(trainlaunch: Runs, make_job: MakeJob, base_image: str) -> None:
    """A container that is removed, and none where the lock knows it, or with --check; an image may have no Python."""
    shell = subprocess.run(
        ["docker", "run", "--rm", base_image, "cat", "/bin/busybox"], capture_output=True, timeout=60, check=True
    ).stdout
    says = b"#!/bin/sh\necho 3.14.0 2.14.1+cpu\n"
    files = {"bin/sh": shell, "bin/echo": shell, "bin/python": says, "unique": uuid.uuid4().bytes}
    with registry_of(image_of(files, {"Env": ["PATH=/bin"]})) as host:
        job = make_job(image=f"{host}/trainer:2", command=["echo", "hello"], working_dir="/")
        docker("pull", "--quiet", f"{host}/trainer:2")
        assert trainlaunch("lock", str(job)).returncode == 0
        lock = job.with_name("job.lock.yaml")
        text = lock.read_text()
        assert text.endswith('    entrypoint: []\n    python: "3.14.0"\n    torch: "2.14.1+cpu"\n')
        lock.write_text(text.replace("3.14.0", "3.13.9"))
        assert trainlaunch("lock", str(job)).returncode == 0
        assert "3.13.9" in lock.read_text()  # the image is the same, so nobody asked
        lock.write_text(text.split("    python:")[0])
        assert trainlaunch("lock", "--check", str(job)).returncode == 0
        assert docker("ps", "--all", "--quiet", f"--filter=ancestor={host}/trainer:2") == ""
        docker("rmi", "--force", f"{host}/trainer:2")


@pytest.mark.docker
def test_up_runs_what_the_lock_pins_with_its_entrypoint(
    trainlaunch: Runs, make_job: MakeJob, image: Image, reference: str
) -> None:
    """Without a lock the ENTRYPOINT stops it; with one it runs in front, and a fresh engine pulls by the digest."""
    job = make_job(image=reference, command=["echo", "hello"], working_dir="/")
    unlocked = trainlaunch("up", str(job))
    assert unlocked.returncode == 125
    assert "TL509" in unlocked.stderr
    trainlaunch("lock", str(job))
    docker("rmi", "--force", reference)
    done = trainlaunch("up", str(job))
    assert (done.returncode, done.stdout) == (0, "front ran with a b\nhello\n"), done.stderr
    assert f"pulling {reference}@{digest_of(image.manifest)}" in done.stderr


@pytest.mark.docker
def test_lock_check_says_when_a_lock_is_stale(trainlaunch: Runs, make_job: MakeJob, reference: str) -> None:
    """0 while it holds, 1 with a diff once it doesn't or where there is none; nothing is written."""
    job = make_job(image=reference, command=["echo", "hello"], working_dir="/")
    lock = job.with_name("job.lock.yaml")
    docker("pull", "--quiet", reference)
    missing = trainlaunch("lock", "--check", str(job))
    assert missing.returncode == 1
    assert "job.lock.yaml does not exist" in missing.stderr
    assert not lock.exists()
    trainlaunch("lock", str(job))
    assert trainlaunch("lock", "--check", str(job)).returncode == 0
    stale = lock.read_text().replace('"a b"', '"b"')
    lock.write_text(stale)
    done = trainlaunch("lock", "--check", str(job))
    assert done.returncode == 1
    assert '-      - "b"\n+      - "a b"\n' in done.stdout
    assert f"run `trainlaunch lock {job}`" in done.stderr
    assert lock.read_text() == stale


@pytest.mark.docker
def test_several_jobs_are_locked_and_other_parts_stay(trainlaunch: Runs, make_job: MakeJob, reference: str) -> None:
    """One call, a lock each; what a measuring verb wrote into one is kept, and --check is content with both."""
    job = make_job(image=reference, command=["echo", "hello"], working_dir="/")
    second = job.with_name("second.yaml")
    second.write_bytes(job.read_bytes())
    job.with_name("job.lock.yaml").write_text(f"version: 2\n{PROBE}")
    docker("pull", "--quiet", reference)
    done = trainlaunch("lock", str(job), str(second))
    assert done.returncode == 0, done.stderr
    first, other = (job.with_name(f"{each}.lock.yaml").read_text() for each in ("job", "second"))
    assert first.endswith(PROBE)
    assert first.split("version: 2\n")[1] == other.split("version: 2\n")[1] + PROBE
    assert trainlaunch("lock", "--check", str(job), str(second)).returncode == 0


@pytest.mark.docker
def test_an_image_that_no_registry_has_cannot_be_pinned(trainlaunch: Runs, make_job: MakeJob, base_image: str) -> None:
    """Exit 3 and the way out, for all images at once; no lock that pins nothing is written."""
    job = make_job(target_overrides={"compose": {"image": "registry.test/nowhere:1"}})
    done = trainlaunch("lock", str(job))
    assert done.returncode == 3
    assert f"error[TL515]: image {base_image} has no digest of a registry" in done.stderr
    assert "error[TL503]: image registry.test/nowhere:1 is not on this engine" in done.stderr
    assert not job.with_name("job.lock.yaml").exists()


def test_lock_names_the_missing_engine(trainlaunch: Runs, tmp_path: Path) -> None:
    """Exit 3, as every verb that needs one."""
    job = tmp_path / "job.yaml"
    job.write_text("name: digits\nimage: trainer:1\ncommand: [train]\n")
    done = trainlaunch("lock", str(job), env={"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
    assert done.returncode == 3
    assert "TL501" in done.stderr


A, B = ("sha256:" + each * 64 for each in "ab")


@pytest.mark.parametrize(
    ("image", "known", "digest"),
    [
        ("pytorch/pytorch:2.9.1", [f"pytorch/pytorch@{A}"], A),
        ("ubuntu", [f"ubuntu@{A}"], A),
        ("docker.io/library/ubuntu:24.04", [f"ubuntu@{A}"], A),
        ("ubuntu:24.04", [f"docker.io/library/ubuntu@{A}"], A),
        ("index.docker.io/pytorch/pytorch:1", [f"pytorch/pytorch@{A}"], A),
        ("host:5000/a/b:1", [f"other/b@{B}", f"host:5000/a/b@{A}"], A),
        ("host:5000/a", [f"host:5001/a@{A}"], None),
        ("a/b:1", [f"a/bb@{A}", f"b@{A}"], None),
        ("a:1", [f"a@{B}", f"a@{A}"], A),
        ("a:1", [], None),
        (f"a:1@{B}", [f"a@{A}"], B),
    ],
)
def test_the_digest_is_that_of_the_images_own_repository(image: str, known: list[str], digest: str | None) -> None:
    """One image may have come from several registries; another's digest can't be pulled under this name."""
    assert _digest(image, json.loads(json.dumps({"RepoDigests": known}))) == digest


def test_an_engine_that_tells_no_digests_is_read_as_none() -> None:
    """RepoDigests is null where an image was never pulled or pushed."""
    assert _digest("a:1", {"RepoDigests": None}) is None
