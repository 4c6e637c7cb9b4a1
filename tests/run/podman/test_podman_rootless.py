"""`run --image` on a Podman without root: as a user of this host with subordinate ids, on storage of the test's own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.engine import images
from tests.users import as_user, python_for

pytestmark = [pytest.mark.docker, pytest.mark.long]
CONF = '[engine]\ncgroup_manager = "cgroupfs"\nruntime = "runc"\nevents_logger = "file"\n'


class User(NamedTuple):
    """Who runs it, and the variables of that user."""

    uid: int
    env: dict[str, str]
    folder: Path


@pytest.fixture
def user(engine: str) -> Iterator[User]:
    """Return a user whose Podman has the base image, and a folder of that user's."""
    known = Path("/etc/subuid").read_text().split() if Path("/etc/subuid").exists() else []
    names = {each.partition(":")[0] for each in known}
    found = [each for each in pwd.getpwall() if each.pw_name in names and each.pw_uid]
    if not found or os.geteuid() or not shutil.which("newuidmap"):
        pytest.skip("no user here has subordinate ids for a rootless Podman (`useradd -m NAME`, package uidmap)")
    folder = Path(f"/tmp/rootless-{os.getpid()}")  # Podman takes short paths only
    config = folder / "config/containers"
    for each in (config, folder / "run", folder / "f"):
        each.mkdir(parents=True)
    (config / "containers.conf").write_text(CONF)
    uid = found[0].pw_uid
    subprocess.run(["chown", "-R", str(uid), folder], check=True)
    (folder / "run").chmod(0o700)
    env = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run"), "XDG_CONFIG_HOME": str(folder / "config")}
    env |= {"USER": found[0].pw_name, "LOGNAME": found[0].pw_name}
    archive = folder / "image.tar"
    subprocess.run(["docker", "save", "-o", archive, images.base_image()], check=True)
    archive.chmod(0o644)
    loaded = as_user(uid, ["podman", "load", "-q", "-i", str(archive)], **env)
    assert loaded is not None
    assert loaded.returncode == 0, loaded.stderr
    archive.unlink()
    yield User(uid, env, folder / "f")
    as_user(uid, ["podman", "system", "reset", "--force"], **env)
    shutil.rmtree(folder, ignore_errors=True)


def test_what_it_writes_is_the_callers_and_no_limit_is_dropped(user: User) -> None:
    """Docker's socket is root's: the error offers Podman, and Podman says which limits it would ignore."""
    image = f"localhost/{images.BASE_IMAGE}"
    shows = "import os; print(os.getuid(), os.getcwd()); open('made', 'w')"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        start = f'cd {user.folder} && exec "$@"'
        argv = ["sh", "-c", start, "sh", python_for(user.uid), "-m", "trainlaunch", "run", "--image", image, *words]
        done = as_user(user.uid, [*argv, "--", "python3", "-c", shows], **user.env)
        assert done is not None
        return done

    done = run("--target", "podman")
    assert (done.returncode, done.stdout) == (0, f"{user.uid} {user.folder}\n"), done.stderr
    assert (user.folder / "made").stat().st_uid == user.uid
    done = run()
    assert (done.returncode, "use `--target podman`" in done.stderr) == (125, True), done.stderr
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        done = run("--target", "podman", "--memory", "512Mi")
        assert (done.returncode, "resources.memory is set and this engine can't enforce it" in done.stderr) == (
            125,
            True,
        )
