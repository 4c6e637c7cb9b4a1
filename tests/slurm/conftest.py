"""A Slurm of one node, of the test run's own: its daemons, keys and ports; the host's own Slurm is left alone."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

Srun = Callable[..., "subprocess.CompletedProcess[str]"]
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch")
CPUS, SECONDS = 4, 60.0
CONF = """\
ClusterName=trainlaunch-test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmctldPort={ctld}
SlurmdPort={slurmd}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@pytest.fixture(scope="session")
def slurm() -> Iterator[Path]:
    """Return the configuration of a Slurm whose node has CPUS, whatever this host has; no plugin enforces them."""
    missing = [each for each in PROGRAMS if shutil.which(each) is None]
    if missing or os.geteuid():
        pytest.skip(f"no Slurm here: {', '.join(missing)} missing" if missing else "only root can start a Slurm")
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    folder.chmod(0o755)
    started: list[subprocess.Popen[bytes]] = []
    try:
        munge = _munge(folder)
        started.append(munge)
        ports = [_free_port() for _ in range(2)]
        host = socket.gethostname().partition(".")[0]
        conf = folder / "slurm.conf"
        conf.write_text(CONF.format(host=host, folder=folder, ctld=ports[0], slurmd=ports[1], cpus=CPUS))
        for each in ("state", "spool"):
            (folder / each).mkdir()
        for program in ("slurmctld", "slurmd"):
            started.append(_daemon([program, "-D", "-f", str(conf)], folder / f"{program}.out"))
        _wait_for_idle(conf, folder)
        yield conf
    finally:
        for each in reversed(started):
            each.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                each.wait(timeout=20)
            each.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _munge(folder: Path) -> subprocess.Popen[bytes]:
    owner, own = pwd.getpwnam("munge"), folder / "munge"
    own.mkdir(mode=0o755)
    (own / "key").write_bytes(secrets.token_bytes(128))
    for each in (own, own / "key"):
        os.chown(each, owner.pw_uid, owner.pw_gid)
    (own / "key").chmod(0o400)
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    argv = ["munged", "--foreground", *(f"--{option}={own / name}" for option, name in files.items())]
    daemon = _daemon(argv, folder / "munged.out", user=owner.pw_uid, group=owner.pw_gid)
    _wait((own / "socket").is_socket, (folder / "munged.out").read_text)
    return daemon


def _daemon(argv: list[str], out: Path, **who: int) -> subprocess.Popen[bytes]:
    with out.open("wb") as log:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, extra_groups=[] if who else None, **who
        )


def _wait_for_idle(conf: Path, folder: Path) -> None:
    asks = ["sinfo", "--noheader", "--format=%t"]
    env = {**os.environ, "SLURM_CONF": str(conf)}
    _wait(
        lambda: subprocess.run(asks, env=env, capture_output=True, text=True, check=False).stdout.strip() == "idle",
        lambda: "".join(each.read_text() for each in sorted(folder.glob("*.log"))),
    )


def _wait(holds: Callable[[], bool], why: Callable[[], str]) -> None:
    until = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < until, why()
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.fixture
def srun(slurm: Path, tmp_path: Path) -> Srun:
    """Return what runs words in an allocation: `srun`, or another command of Slurm's."""
    env = {**os.environ, "SLURM_CONF": str(slurm), "PYTHONPATH": str(ROOT / "launcher")}
    env["XDG_STATE_HOME"] = str(tmp_path / "state")

    def run(*words: str, by: str = "srun") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [by, *words], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
        )

    return run
