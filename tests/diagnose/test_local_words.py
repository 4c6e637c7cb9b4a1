"""On target local no symptom speaks of an engine, an image or a limit that a host does not have."""

from __future__ import annotations

import pytest
from trainlaunch.diagnose import explain_end, explain_hang
from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.units import GIB

FULL = "RuntimeError: unable to allocate shared memory(shm) for file </torch_8_1_0>: No space left on device (28)"
KILLED = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed."
FILES = "RuntimeError: received 0 items of ancdata"
SOCKET = "OSError: AF_UNIX path too long"
FEEDER = f'Traceback (most recent call last):\n  File "multiprocessing/queues.py", line 1, in _feed\n{FULL}'
WORDS = ("engine", "image", "container", "OOMKilled true", "shm_size to", "resources.memory to", "ulimits:", "mounts")


@pytest.mark.parametrize(
    ("code", "log", "name"),
    [
        (1, FULL, "shm-exhausted"),
        (135, "", "shm-exhausted"),
        (1, KILLED, "oom-killed-worker"),
        (1, FILES, "fd-limit"),
        (1, SOCKET, "tmpdir-unusable"),
        (127, "sh: 1: trian: not found", "command-not-started"),
        (137, "", "killed-from-outside"),
        (143, "", "killed-from-outside"),
    ],
)
def test_no_symptom_names_what_a_host_lacks(code: int, log: str, name: str) -> None:
    """Cause, evidence and way out."""
    evidence = Evidence(exit_code=code, log=log, target="local", private_shm=False, ipc_mode="host", shm_size=GIB)
    (found,) = explain_end(evidence)
    assert found.symptom == name
    said = f"{found.sentence} {found.saw.removeprefix(log)} {found.fix}"
    assert [word for word in WORDS if word in said] == []


def test_a_stop_is_by_trainlaunch() -> None:
    """`down` from another shell."""
    (found,) = explain_end(Evidence(exit_code=143, signals=(15,), target="local"))
    assert found.sentence == "someone through trainlaunch stopped the job"


def test_a_hang_is_told_with_the_hosts_way_out() -> None:
    """While it is followed."""
    found = explain_hang(Evidence(exit_code=None, log=FEEDER, target="local"))
    assert found is not None
    assert "mount -o remount" in found.fix
