"""templates/live.sh itself, on this host: the same in each shell, whatever an image's options are."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from trainlaunch.run.base.live_snapshot import command, read_snapshot

SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}
NVIDIA_SMI = "#!/bin/sh\ncase $* in *query-gpu*) echo 'GPU-1, 0, 29, 1024, 81920' ;; esac\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_reads_the_same_of_this_process(shell: str, tmp_path: Path) -> None:
    """This very process, the GPU that nvidia-smi names, /dev/shm; with options that would end a careless script."""
    if shutil.which(SHELLS[shell][0]) is None:
        pytest.skip(f"{shell} is not installed")
    program = tmp_path / "nvidia-smi"
    program.write_text(NVIDIA_SMI)
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin", "SHELLOPTS": "nounset:errexit"}
    argv = [*SHELLS[shell], *command("/", [os.getpid()])[1:]]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    look = read_snapshot(done.stdout)
    assert look is not None, done.stderr
    (own,) = look.processes
    assert own.pid == os.getpid()
    assert own.state in {"S", "R"}
    assert own.open_files
    assert own.most_files
    assert own.cpus == len(os.sched_getaffinity(0))
    assert look.shm is not None
    assert look.shm.size == os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize
    assert [(each.number, each.busy) for each in look.gpus] == [("0", 29.0)]
    assert look.stacks == "py-spy is not installed"


def test_a_process_that_has_ended_is_left_out() -> None:
    """Between the list and the look."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    done = subprocess.run(command("/", [gone.pid, os.getpid()]), capture_output=True, text=True, check=False)
    look = read_snapshot(done.stdout)
    assert look is not None
    assert [each.pid for each in look.processes] == [os.getpid()]
