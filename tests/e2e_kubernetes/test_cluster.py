"""Jobs on a real node, as a user starts them: what only a kubelet, a kernel and a training process can show.

Needs TRAINLAUNCH_E2E_KUBECONFIG and TRAINLAUNCH_E2E_IMAGE (tests/kubernetes/real.py). Nothing is mounted and nothing is
pulled: programs travel in a variable, and the image is one that the node has.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import Any

from tests.kubernetes.contract.things import everything
from tests.kubernetes.contract.user import Place, User, job_lines

# A last line that is looked at is slept on: some runtimes lose what a process prints just before it ends.
# The image's Python, whatever it is called, runs the program in $PROGRAM.
RUNS = ["/bin/sh", "-c", 'exec "$(command -v python3 || command -v python)" -u -c "$PROGRAM"']
ROOM = {"cpus": 0.5, "memory": "1Gi"}

LOADS = """
import os, torch
from torch.utils.data import DataLoader, Dataset
class Noise(Dataset):
    def __len__(self): return 64
    def __getitem__(self, index): return torch.full((256, 1024), float(index))
shm = os.statvfs("/dev/shm")
print("size", shm.f_blocks * shm.f_frsize)
workers = int(os.environ["TRAINLAUNCH_NUM_WORKERS"])
print("sum", sum(float(batch[:, 0, 0].sum()) for batch in DataLoader(Noise(), batch_size=8, num_workers=workers)))
import time; time.sleep(1)
"""
HANDLES = """
import signal, sys, time
def save(number, frame):
    print("checkpoint saved")
    time.sleep(1)
    sys.exit(9)
signal.signal(signal.SIGTERM, save)
print("ready")
time.sleep(600)
"""
REDUCES = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
value = torch.tensor([float(rank + 1)])
dist.all_reduce(value)
print(f"rank {rank} of {dist.get_world_size()} has {value.item()}")
dist.destroy_process_group()
import time; time.sleep(1)
"""


def program(text: str, **fields: Any) -> dict[str, Any]:
    """Return the fields of a job that runs a Python program."""
    return {"command": RUNS, "resources": ROOM, "env": {"PROGRAM": text}, **fields}


def test_dev_shm_has_the_size_of_the_plan_and_workers_fill_it(user: User) -> None:
    """The kubelet's tmpfs is the plan's, to the byte, and a DataLoader with workers trains through it."""
    sample = [{"shape": [256, 1024], "dtype": "float32"}]
    loader = {"batch_size": 8, "sample": sample, "num_workers": 2}
    fields = program(LOADS, data_loader=loader, shm_size="auto")
    user.writes(**fields)
    planned = user.starts("plan", "job.yaml", "-o", "json")
    assert planned.end() == 0, planned.words()
    up = user.starts("up", "job.yaml")
    assert up.end() == 0, up.words()
    size = json.loads(bytes(planned.out))["shm"]["size"]
    assert up.lines == [f"size {size}", f"sum {float(sum(range(64)))}"]
    assert "preflight passed" in bytes(up.out).decode()


def test_a_kill_for_memory_is_the_kernels_and_explained(user: User) -> None:
    """137 from the cgroup of the pod, and the value to type."""
    up = user.up(**program("block = b'x' * (3 << 30)"))
    assert up.end() == 137, up.words()
    assert "cause[TL6" in up.said
    assert "resources.memory" in up.said


def test_wrong_files_are_refused_inside_with_78(user: User) -> None:
    """podFailurePolicy: one pod, though two attempts are allowed; the preflight's own sentence is told."""
    wrong = {"PROGRAM": "print('trained')", "TMPDIR": "/no/such/folder"}
    up = user.up(**program("", env=wrong, restart={"max_attempts": 2}))
    assert up.end() == 78, up.words()
    assert up.words().count("preflight stopped (78)") >= 1
    assert bytes(up.out).decode().count("preflight stopped (78)") <= 1
    assert "trained" not in up.lines


def test_the_jobs_own_handler_runs_at_sigterm(user: User) -> None:
    """Within the grace period, in a training process that a pid 1 of its own would not protect."""
    up = user.up("--stop-on-interrupt", **program(HANDLES, stop_grace_period="60s")).until("ready")
    up.tell(signal.SIGINT)
    code = up.end()
    assert "checkpoint saved" in up.lines, up.words()
    assert code not in (0, 137), up.words()


def test_two_nodes_reduce_over_gloo(user: User, place: Place) -> None:
    """Two pods find each other by the cluster's DNS; each line carries its rank, and both see the sum."""
    up = user.up(**program(REDUCES, torchrun={"nnodes": 2, "nproc_per_node": 1}))
    assert up.end() == 0, up.words()
    told = [each for each in bytes(up.out).decode().splitlines() if "has 3.0" in each]
    assert sorted(told) == ["[0] rank 0 of 2 has 3.0", "[1] rank 1 of 2 has 3.0"], up.words()
    assert user.runs("down").process.returncode == 0
    assert not [each for each in everything(place) if user.name in each]


def test_a_followed_log_is_the_jobs_output_byte_for_byte(user: User) -> None:
    """In bursts and in drips, past the runtime's 16 KiB, and again from another terminal afterwards."""
    script = (
        'i=0; while [ "$i" -lt 40 ]; do seq "$((i * 500))" "$((i * 500 + 499))"; sleep 0.2; i=$((i + 1)); done; '
        "head -c 50000 /dev/zero | tr '\\0' z; echo; printf '\\316\\273\\t\\033[1mbold\\033[0m\\n'; sleep 1"
    )
    expected = [str(each) for each in range(20_000)] + ["z" * 50_000, "λ\t\033[1mbold\033[0m"]
    up = user.up(script=script, resources=ROOM)
    assert up.end() == 0, up.words()[-2000:]
    assert up.lines == expected
    assert job_lines(bytes(user.runs("logs").out)) == expected


def test_a_restart_of_the_api_server_loses_no_line(user: User, restart_api: str) -> None:
    """The job prints on meanwhile; every line is there once, and the code is the job's."""
    script = 'i=0; while [ "$i" -lt 300 ]; do echo "$i"; sleep 0.1; i=$((i + 1)); done; exit 7'
    up = user.up(script=script, resources=ROOM).until("50\n")
    subprocess.run(["/bin/sh", "-c", restart_api], check=True, timeout=120)
    assert up.end() == 7, up.words()
    assert up.lines == [str(each) for each in range(300)]


def test_down_leaves_nothing_of_a_running_job(user: User, place: Place) -> None:
    """Everything that up made is gone when down returns; what was there before is there."""
    before = everything(place)
    up = user.up(script="echo ready; sleep 600", resources=ROOM).until("ready")
    assert everything(place) > before
    down = user.runs("down")
    assert down.process.returncode == 0, down.words()
    assert everything(place) == before
    assert up.end() != 0


def test_a_job_survives_who_started_it(user: User) -> None:
    """The launcher is killed in the middle; another one follows to the end."""
    up = user.up(script="echo ready; sleep 8; echo done; sleep 1; exit 3", resources=ROOM).until("ready")
    up.tell(signal.SIGKILL)
    up.process.wait(30)
    time.sleep(1)
    followed = user.starts("logs", "-f", "job.yaml")
    assert followed.end() == 3, followed.words()
    assert followed.lines == ["ready", "done"]
