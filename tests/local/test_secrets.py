"""Secrets on this host: the same values as in a container, and no copy of one on a disk."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.run.local.state import RunFolder

from tests.conftest import Runs
from tests.local.conftest import MakeJob, Start
from tests.planted import MARK, READERS, VARIABLES, expected_values, secret_fields, told_values
from tests.run.keeper_contract import until
from tests.run.test_up import ended, read_until
from tests.runners import run_started


def test_secrets_of_every_kind_arrive(trainlaunch: Runs, make_job: MakeJob, tmp_path: Path) -> None:
    """A file's own path where there is a file, else one that lies in memory, for this user alone."""
    done = trainlaunch("up", str(make_job(**secret_fields(tmp_path))), env=VARIABLES)
    assert done.returncode == 0, done.stderr
    values, paths, modes = told_values(done.stdout)
    # A shell's own variables are a local job's too; those that it gets as files are taken out.
    assert values == expected_values()
    assert paths["BOUND"] == str(tmp_path / "bound, $1")
    assert all(paths[name].startswith("/proc/") for name in ("WRITTEN", "WRITTEN_TOO"))
    assert modes["WRITTEN"] == modes["WRITTEN_TOO"] == ["0o400", True]
    assert MARK not in done.stdout + done.stderr


def test_a_child_reads_the_file_too_and_it_is_gone_at_the_end(make_job: MakeJob) -> None:
    """A rank or a worker is another process, without the open files of the first; `up` holds it open to its own end."""
    child = (
        "import os; open_file = open(os.environ['TOKEN_FILE']); print(open_file.read()[::-1], os.environ['TOKEN_FILE'])"
    )
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    job = make_job(command=["python3", "-c", code], secrets={"TOKEN": {"env": "TOKEN", "as": "file"}})
    done = run_started("up", str(job), env={"TOKEN": "of several characters"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sretcarahc lareves fo /proc/")
    place = Path(done.stdout.split()[-1])
    until(lambda: not is_ours(place))  # the keeper's last moment


def is_ours(place: Path) -> bool:
    """Return whether a process still holds this file; a dead one's are nobody's, and another may have its number."""
    try:
        return "memfd:trainlaunch" in str(place.readlink())
    except OSError:
        return False


def test_an_argument_below_run_secrets_is_the_files_own_path(
    trainlaunch: Runs, make_job: MakeJob, tmp_path: Path
) -> None:
    """As an argument below a bind's target is mapped to its source."""
    (tmp_path / "key").write_text("of a file")
    job = make_job(command=["rev", "/run/secrets/KEY"], secrets={"KEY": {"file": "./key", "as": "file"}})
    assert trainlaunch("up", str(job)).stdout == "elif a fo"


def test_what_a_job_prints_of_a_secret_is_on_no_disk(
    trainlaunch: Runs, make_job: MakeJob, tmp_path: Path, job_name: str
) -> None:
    """Its log is a file of trainlaunch's; a value may come in pieces, and what only begins like one is all shown."""
    code = (
        "import os, sys, time; key = os.environ['KEY']; print('token ' + key[:4], end='', flush=True); time.sleep(0.2)"
    )
    code += "; print(key[4:] + ' of many'); print('sk-no secret ' + key[:4], flush=True)"
    code += "; time.sleep(0.3); raise SystemExit('RuntimeError: ' + key)"
    job = make_job(command=["python3", "-c", code], secrets={"KEY": {"env": "KEY"}})
    done = trainlaunch("up", str(job), env={"KEY": "sk-no-words"})
    assert done.stdout == "token [secret KEY] of many\nsk-no secret sk-n\n"
    assert "RuntimeError: [secret KEY]" in done.stderr
    told = [trainlaunch(*words, job_name) for words in READERS]  # no variable of this shell has it any more
    assert not [each.args for each in told if "sk-no-words" in each.stdout + each.stderr]
    assert [each.returncode for each in told if "RuntimeError: [secret KEY]" in each.stdout + each.stderr] != []
    kept = [each for each in (tmp_path / "state").rglob("*") if each.is_file()]
    assert {each.name for each in kept} >= {"log", "plan", "notes", "run.json"}
    assert not [each for each in kept if b"sk-no-words" in each.read_bytes()]


@pytest.mark.parametrize(
    "source", [{"env": "NOT_SET"}, {"env": "NOT_SET", "as": "file"}, {"file": "./gone"}, {"file": ".", "as": "file"}]
)
def test_a_source_that_is_not_there_is_125(
    trainlaunch: Runs, make_job: MakeJob, state: Path, source: dict[str, str]
) -> None:
    """Nothing was made."""
    done = trainlaunch("up", str(make_job(secrets={"TOKEN": source})))
    assert done.returncode == 125
    assert "error[TL507]: secret TOKEN has no value: the " in done.stderr
    assert list(state.glob("*/*")) == []


def test_bytes_that_are_no_text_arrive_and_a_nul_does_not(trainlaunch: Runs, make_job: MakeJob, tmp_path: Path) -> None:
    """A variable of this host holds any bytes but NUL."""
    (tmp_path / "bytes").write_bytes(b"\xff\xfe of 4\n")
    tell = "import os; print(os.environb[b'KEY'].hex())"
    job = make_job(command=["python3", "-c", tell], secrets={"KEY": {"file": "./bytes"}})
    assert trainlaunch("up", str(job)).stdout == b"\xff\xfe of 4".hex() + "\n"
    (tmp_path / "bytes").write_bytes(b"a\0b")
    done = trainlaunch("up", str(job))
    assert done.returncode == 125
    assert "secret KEY holds a NUL byte" in done.stderr
    assert "as: file" in done.stderr


def test_nothing_planted_is_on_disk_or_in_a_process_list(
    start: Start, make_job: MakeJob, tmp_path: Path, run_folder: Callable[[], RunFolder]
) -> None:
    """While it runs: the state folder, every process's arguments, the shared memory of the host."""
    fields = secret_fields(tmp_path)
    fields["command"] = ["/bin/sh", "-c", f"echo ready; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"]
    process = start("up", str(make_job(**fields)), **VARIABLES)
    read_until(process, b"ready\n")
    kept = b"".join(each.read_bytes() for each in run_folder().path.iterdir())
    listed = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, check=False).stdout
    shm = b"".join(
        each.read_bytes() for each in Path("/dev/shm").iterdir() if each.is_file() and os.access(each, os.R_OK)
    )
    (tmp_path / "go").touch()
    code, out, err = ended(process)
    assert code == 0
    for text in (kept, listed, shm, (out + err).encode()):
        assert MARK.encode() not in text
