"""Inside an allocation of Slurm a run has what the allocation has, and the tasks of a step stand beside each other."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from trainlaunch.run.base.slurm import SlurmTask, slurm_task
from trainlaunch.run.local.process_spec import local_findings

from tests.conftest import ROOT
from tests.jobs import plan_with, write_job
from tests.slurm.conftest import Srun

OURS = [sys.executable, "-m", "trainlaunch"]
SHOWS = (
    "import os; print(os.environ['SLURM_PROCID'], os.environ['TRAINLAUNCH_RUN_ID'], "
    "os.environ['OMP_NUM_THREADS'], os.environ['TRAINLAUNCH_CLEAN_SHM'], flush=True)"
)


def test_two_tasks_are_two_ranks_with_a_cpu_each(srun: Srun, tmp_path: Path) -> None:
    """Nothing here enforces one CPU, and they share a job's name; rank 0 alone speaks, and codes are their own."""
    code = f"{SHOWS}; raise SystemExit(3 * (os.environ['SLURM_PROCID'] == '1'))"
    ran = srun("-n", "2", "-c", "1", *OURS, "run", "--name", "both", "--", "python3", "-c", code)
    assert ran.returncode == 3, ran.stderr
    told = sorted(each.split() for each in ran.stdout.splitlines())
    assert [(rank, *rest) for rank, _, *rest in told] == [("0", "1", "0"), ("1", "1", "0")]
    assert len({name for _, name, *_ in told}) == 2
    assert ran.stderr.count(" here, ") == 1
    assert ", 2 tasks, 1 CPU" in ran.stderr
    assert [ran.stderr.count(f"ended with {each} ") for each in (0, 3)] == [1, 1]
    write_job(tmp_path, target="local", name="both", image=None, command=["python3", "-c", SHOWS])
    ran = srun("-n", "2", "-c", "1", *OURS, "up", "job.yaml")
    assert ran.returncode == 0, ran.stderr
    assert len({each.split()[1] for each in ran.stdout.splitlines()}) == 2


def test_a_batch_script_has_what_the_job_has(srun: Srun, tmp_path: Path) -> None:
    """Its CPUs and memory, of which one run is all; a detached one would end with it."""
    line = shlex.join([*OURS, "run", "--name", "batch", "--", "python3", "-c", SHOWS])
    (tmp_path / "job.sh").write_text(f"#!/bin/sh\n{line}\n{line.replace(' run ', ' run -d ')}\necho code $?\n")
    ran = srun("-W", "-c", "3", "--mem", "512", "-o", "out", "job.sh", by="sbatch")
    out = (tmp_path / "out").read_text()
    assert ran.returncode == 0, out
    assert "3 CPUs" in out or "2 CPUs" in out  # what this host has is less
    assert "a detached run would end with this task" in out
    assert "code 2" in out


def test_the_documented_batch_script_runs(srun: Srun, tmp_path: Path) -> None:
    """Its first block, as it stands, with two tasks of a CPU each."""
    shown = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "docs/slurm.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "job.sh").write_text(shown[0])
    (tmp_path / "train.py").write_text(SHOWS)
    program = tmp_path / "trainlaunch"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(OURS)} "$@"\n')
    program.chmod(0o755)
    ran = srun("-W", f"--export=ALL,PATH={tmp_path}:{os.environ['PATH']}", "job.sh", by="sbatch")
    (out,) = (each.read_text() for each in tmp_path.glob("train-*.out"))
    assert ran.returncode == 0, out
    ranks = sorted(line.split()[0] for line in out.splitlines() if re.match(r"[01] ", line))
    assert ranks == ["0", "1"], out


STEP = {
    "SLURM_JOB_ID": "7",
    "SLURM_NODEID": "1",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "3",
    "SLURM_STEP_NUM_TASKS": "5",
}
SHARE = {"SLURM_STEP_TASKS_PER_NODE": "2(x2),1", "SLURM_CPUS_ON_NODE": "8", "SLURM_MEM_PER_NODE": "4096"}
MIB = 1 << 20


@pytest.mark.parametrize(
    ("env", "task"),
    [
        ({**STEP, **SHARE}, SlurmTask("7", 3, 5, 2, 4, 2048 * MIB)),
        ({**STEP, **SHARE, "SLURM_CPUS_PER_TASK": "2"}, SlurmTask("7", 3, 5, 2, 2, 2048 * MIB)),
        ({**STEP, **SHARE, "SLURM_CPUS_PER_TASK": "64"}, SlurmTask("7", 3, 5, 2, 4, 2048 * MIB)),
        (
            {**STEP, "SLURM_CPUS_PER_TASK": "3", "SLURM_MEM_PER_CPU": "100", "SLURM_MEM_PER_NODE": "0"},
            SlurmTask("7", 3, 5, 1, 3, 300 * MIB),
        ),
        (STEP, SlurmTask("7", 3, 5, 1, None, None)),
        (
            {"SLURM_JOB_ID": "7", "SLURM_NODEID": "0", "SLURM_PROCID": "0", **SHARE, "SLURM_NTASKS": "5"},
            SlurmTask("7", 0, 1, 1, 8, 4096 * MIB),
        ),
        ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "5"}, None),  # a shell of salloc on a login node
        ({}, None),
    ],
)
def test_a_tasks_share_is_read(env: dict[str, str], task: SlurmTask | None) -> None:
    """A batch script's CPUs per task are no more than the node's share; what nobody tells is unknown."""
    assert slurm_task(env) == task


def test_all_tasks_of_a_node_count_toward_its_shm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node's /dev/shm holds one task's batches, and not those of 10,000."""
    loader = {"num_workers": 2, "batch_size": 1, "batch_bytes": {"size": "8Mi", "tensors": 1}}
    plan = plan_with(tmp_path, "local", data_loader=loader)
    assert local_findings(plan) == ()
    for name, value in {**STEP, "SLURM_TASKS_PER_NODE": "1,10000"}.items():
        monkeypatch.setenv(name, value)
    (found,) = local_findings(plan)
    assert (found.code, "for each of 10000 tasks here" in found.message) == ("TL517", True)
