"""State of local runs: private, the caller's own, and refused a run at a time where it is damaged or another's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from trainlaunch.run.base.backend import Peak
from trainlaunch.run.base.private_files import UnusableState, private_folder, read_record, sealed
from trainlaunch.run.local.backend import LocalBackend
from trainlaunch.run.local.follow import frames_of
from trainlaunch.run.local.processes import marked
from trainlaunch.run.local.state import RunFolder

from tests.conftest import ROOT, Runs
from tests.local.conftest import MakeJob, Start
from tests.local.test_faults import OnlyRun, wait_until
from tests.run.contract import WAITS, MakePlan
from tests.run.test_up import ended, read_until
from tests.users import ELSE, PACKAGES, ROOT_ONLY, SOMEBODY, python_for, trainlaunch_as


@pytest.fixture
def backend(state: Path) -> tuple[LocalBackend, list[str]]:
    """Return the backend of this test's state, and what it says."""
    said: list[str] = []
    return LocalBackend(state, say=said.append), said


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_state_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    """Folders are 0700, also those above that were missing, and one that was open is closed."""
    opened = tmp_path / "trainlaunch"
    opened.mkdir()
    opened.chmod(0o777)
    before = os.umask(umask)
    try:
        folder = RunFolder(opened / "runs" / "job" / "aaaaaaaa-1")
        private_folder(opened)
        folder.make({"name": "x"})
        private_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    made = [opened, opened / "runs", opened / "runs" / "job", folder.path, tmp_path / "a", tmp_path / "a" / "b"]
    assert [oct(each.stat().st_mode & 0o777) for each in made] == ["0o700"] * len(made)
    assert {oct(each.stat().st_mode & 0o077) for each in folder.path.iterdir()} == {"0o0"}
    assert folder.description() == {"name": "x"}


def as_user(uid: int, state: Path, *words: str, owner: str = "") -> subprocess.CompletedProcess[str]:
    """Run a verb as another user of this host, with a state folder and no engine."""
    nowhere = "unix:///nonexistent"
    return trainlaunch_as(uid, *words, XDG_STATE_HOME=str(state), DOCKER_HOST=nowhere, TRAINLAUNCH_OWNER=owner)


@pytest.fixture
def shared(make_job: MakeJob) -> Iterator[tuple[Path, Path]]:
    """Return a state folder that every user may write to, and a job that all may read."""
    folder = Path(f"/tmp/trainlaunch-shared-{os.getpid()}-{time.monotonic_ns()}")
    folder.mkdir()
    folder.chmod(0o777)
    job = folder / "job.yaml"
    job.write_text(make_job(command=["sleep", "60"]).read_text())
    job.chmod(0o644)
    yield folder, job
    for run in LocalBackend(folder / "trainlaunch" / "runs")._folders():
        for pid in marked(run.path):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder)


@ROOT_ONLY
def test_users_with_one_state_root_leave_each_other_alone(shared: tuple[Path, Path], job_name: str) -> None:
    """The second one's local verbs refuse with whose it is, root's too, and its others go on; nothing is touched."""
    folder, job = shared
    started = as_user(SOMEBODY, folder, "up", "-d", str(job))
    assert started.returncode == 0, started.stderr
    first = f"{SOMEBODY}@{os.uname().nodename}"
    by_name = ("down", job_name, "--target", "local")
    tried = [(("up", "-d", str(job)), ""), (("down", str(job)), ""), (by_name, ""), (by_name, first)]
    for other in (ELSE, 0):
        for words, owner in tried:  # to call oneself another is no key
            done = as_user(other, folder, *words, owner=owner)
            assert done.returncode in {3, 125}, done
            assert f"is uid {SOMEBODY}'s and not yours (uid {other})" in done.stderr
    (run,) = (folder / "trainlaunch" / "runs").glob(f"{job_name}/*")
    assert marked(run) != []
    listed = as_user(SOMEBODY, folder, "ps", "-o", "json")
    assert json.loads(listed.stdout)["runs"][0]["owner"] == first
    assert as_user(SOMEBODY, folder, "down", job_name).returncode == 0
    assert marked(run) == []


@ROOT_ONLY
def test_no_command_of_a_planted_run_is_run(trainlaunch: Runs, make_job: MakeJob, job_name: str, state: Path) -> None:
    """`ps -o json` runs the health command of each run that runs: root's ran what another user had written there."""
    ps = ("ps", "--target", "local", "-o", "json")
    assert trainlaunch("up", "-d", str(make_job(command=["sleep", "60"]))).returncode == 0
    (folder,) = (RunFolder(each) for each in state.glob(f"{job_name}/*"))
    proof = state.parent / "proof"
    known = folder.description() or {}
    folder.describe({**known, "health": {**known["health"], "command": f"id > {proof}"}})
    assert trainlaunch(*ps).returncode == 0
    assert proof.exists()  # so it is what `ps` runs
    proof.unlink()
    for plant in (folder.path / "run.json", folder.path):
        os.chown(plant, SOMEBODY, SOMEBODY)
        time.sleep(0.5)  # a check of the run's own keeper may have begun before
        proof.unlink(missing_ok=True)
        done = trainlaunch(*ps)
        assert (done.returncode, folder.id in done.stdout) == (0, False)
        assert f"local run {folder.id} is left out: " in done.stderr or "is left out" in done.stderr
        assert not proof.exists()
        os.chown(plant, 0, 0)
    (folder.path / "run.json").chmod(0o666)
    assert folder.id not in trainlaunch(*ps).stdout
    assert not proof.exists()
    (folder.path / "run.json").chmod(0o600)
    assert trainlaunch("down", job_name).returncode == 0


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.long)])
def test_one_flipped_bit_leaves_out_one_run(
    make_plan_of: MakePlan, backend: tuple[LocalBackend, list[str]], step: int
) -> None:
    """Of every record and wherever it is: the other run is listed, and a sentence names the damaged one."""
    known, said = backend
    plan = make_plan_of(command=["true"])
    ids = [known.create(plan, run, 1) for run in ("aaaaaaaa",)]
    folder = RunFolder(known._root / ids[0])
    other = make_plan_of(command=["true"], name="other")
    whole = known.create(other, "bbbbbbbb", 1)
    folder.end(0, 1.0)
    folder.note_peak(Peak(1 << 20, 2))
    for name in ("run.json", "end", "peak"):
        data = (folder.path / name).read_bytes()
        for at in range(0, len(data.rstrip()), step):
            for bit in (0x01, 0x20, 0x80):
                changed = bytearray(data)
                changed[at] ^= bit
                (folder.path / name).write_bytes(bytes(changed))
                said.clear()
                listed = {each.id for each in known.runs()}
                assert whole in listed
                assert folder.id in listed or any(folder.id in each for each in said)
        (folder.path / name).write_bytes(data)
    assert {each.id for each in known.runs()} == {folder.id, whole}


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b"1" * 5_000,
        b'{"checksum": ' + b"1" * 5_000 + b', "record": {}}',
        b"{}",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b"x" * (2 << 20),
        sealed({"name": "only"}),
        sealed({"host": os.uname().nodename}),
    ],
)
def test_alien_records_leave_out_one_run(
    make_plan_of: MakePlan, backend: tuple[LocalBackend, list[str]], data: bytes
) -> None:
    """Deep nesting, 5,000 digits, another layout, megabytes: said in a sentence, in no time."""
    known, said = backend
    folder = RunFolder(known._root / known.create(make_plan_of(command=["true"]), "aaaaaaaa", 1))
    (folder.path / "run.json").write_bytes(data)
    before = time.monotonic()
    assert known.runs() == ()
    assert time.monotonic() - before < 2
    (sentence,) = said
    assert sentence.startswith(f"local run {folder.id} is left out: ")
    assert f"rm -r {folder.path}" in sentence
    known.create(make_plan_of(command=["true"]), "bbbbbbbb", 1)  # and `up` goes on
    assert len(known.runs()) == 1


@pytest.mark.parametrize("name", ["run.json", "started.json", "end", "peak", "log"])
def test_a_fifo_or_a_link_is_no_state(
    make_plan_of: MakePlan, backend: tuple[LocalBackend, list[str]], name: str
) -> None:
    """A FIFO would be waited for, a link lead to another's file; the verb goes on at once."""
    known, _ = backend
    folder = RunFolder(known._root / known.create(make_plan_of(command=["true"]), "aaaaaaaa", 1))
    for linked in (False, True):
        (folder.path / name).unlink(missing_ok=True)
        if linked:
            (folder.path / name).symlink_to("/etc/passwd")
        else:
            os.mkfifo(folder.path / name)
        known.runs()
        assert b"root:" not in b"".join(each.data for each in frames_of(folder, follow=False))
        if name != "log":
            with pytest.raises(UnusableState):
                read_record(folder.path / name)


def test_a_damaged_log_ends_where_it_is_damaged(tmp_path: Path) -> None:
    """A length of gigabytes is not waited for."""
    folder = RunFolder(tmp_path / "job" / "aaaaaaaa-1")
    folder.make({})
    folder.log.write_bytes(b"\x01\0\0\0\0\0\0\x06hello\n\x01\0\0\0\xff\xff\xff\xff garbage")
    found = list(frames_of(folder, follow=False))
    assert found[0].data == b"hello\n"
    assert found[1].stderr
    assert b"the log is damaged" in found[1].data


def test_a_removed_state_folder_is_noticed(start: Start, make_job: MakeJob, run_folder: OnlyRun) -> None:
    """`up` says so and goes on with the job; Ctrl-C still stops it."""
    process = start("up", str(make_job(command=["/bin/sh", "-c", WAITS])))
    read_until(process, b"ready\n")
    folder = run_folder()
    shutil.rmtree(folder.path)
    wait_until(lambda: b"was removed, and with it log and exit code" in read_some(process))
    assert marked(folder.path) != []
    process.send_signal(signal.SIGINT)
    code, _, _ = ended(process)
    assert code == 125
    wait_until(lambda: marked(folder.path) == [])


def read_some(process: subprocess.Popen[bytes]) -> bytes:
    """Return what stderr has now; the whole of it, gathered in the process object."""
    assert process.stderr is not None
    os.set_blocking(process.stderr.fileno(), False)
    gathered: bytes = getattr(process, "gathered", b"")
    gathered += process.stderr.read() or b""
    process.gathered = gathered  # type: ignore[attr-defined]
    os.set_blocking(process.stderr.fileno(), True)
    return gathered


@ROOT_ONLY
def test_down_on_a_state_that_is_read_only_does_not_say_removed(shared: tuple[Path, Path], job_name: str) -> None:
    """TL514 with the system's words; the run is still listed."""
    folder, _ = shared
    job = folder / "short.yaml"
    job.write_text((folder / "job.yaml").read_text().replace("sleep", "true"))
    job.chmod(0o644)
    assert as_user(SOMEBODY, folder, "up", str(job)).returncode == 0
    runs = folder / "trainlaunch" / "runs"
    (run,) = runs.glob(f"{job_name}/*")
    mounted = f"mount --bind {runs} {runs} && mount -o remount,ro,bind {runs}"
    inside = f"{mounted} && exec setpriv --reuid {SOMEBODY} --regid {SOMEBODY} --clear-groups "
    inside += f"{python_for(SOMEBODY)} -m trainlaunch down {job_name} --target local"
    env = {**os.environ, "PYTHONPATH": f"{ROOT}/launcher:{PACKAGES}", "XDG_STATE_HOME": str(folder)}
    argv = ["unshare", "--mount", "/bin/sh", "-c", inside]
    done = subprocess.run(argv, env=env, cwd="/", capture_output=True, text=True, timeout=60, check=False)
    if "unshare failed" in done.stderr or "permission denied" in done.stderr:
        pytest.skip(f"no mount namespace may be made here: {done.stderr}")
    assert (done.returncode, "TL514" in done.stderr) == (3, True), done.stderr
    assert "removed" not in done.stderr
    assert run.exists()
