"""What the health check makes of the heartbeat's page, under each shell, and of a real DataLoader."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial

import pytest
from trainlaunch.container.preflight import MIN_LIVENESS_TIMEOUT, wrapper_words
from trainlaunch.plan.launch_plan import LaunchPlan

from tests.conftest import Runs
from tests.preflight.containers import StartsPrograms, program
from tests.preflight.plans import health_alone, plan, wrapper_alone

pytestmark = pytest.mark.docker

FOLDER = "/dev/shm/.trainlaunch"
UP = "$(cut -d. -f1 </proc/uptime)"
FIRST, STALL = 90, 30

# One that lives, whose name looks like more of /proc/PID/stat, and one that ended and was not waited for.
PROCESSES = """
cp "$(command -v dash)" '/tmp/x) Z 1 (y'; '/tmp/x) Z 1 (y' -c 'sleep 1000; :' & live=$!
sh -c '{ until grep -q sleep "/proc/$$/comm"; do :; done; } & echo $! >/tmp/ended; exec sleep 1000' & parent=$!
started() { stat=$(cat "/proc/$1/stat"); set -- ${stat##*) }; state=$1 start=${20}; }
until [ -s /tmp/ended ] && read -r dead </tmp/ended && started "$dead" && [ "$state" = Z ]; do sleep 0.1; done
ended=$start; until started "$live" && grep -q Z "/proc/$live/comm"; do sleep 0.1; done
"""


def watched(**health: object) -> LaunchPlan:
    return plan(healthcheck={"stall_after": f"{STALL}s", "start_period": f"{FIRST}s", **health})


Checked = Callable[..., list[tuple[int, str]]]


@pytest.fixture
def checked(start_programs: StartsPrograms) -> Checked:
    """Return the check's code and text under each shell, of a page with these lines; words are shell text."""
    return partial(_checked, start_programs)


def _checked(start_programs: StartsPrograms, *lines: str) -> list[tuple[int, str]]:
    wrote = "; ".join(f'printf "%-63s\\n" "{each}"' for each in lines) or ":"
    page = f"mkdir -m 700 {FOLDER}; {{ {wrote}; printf '%4096s' ''; }} >{FOLDER}/heartbeat"
    runs = "; ".join(f'{shell} -c "$0"; echo "$?"' for shell in ("dash", "busybox sh", "bash --posix"))
    script = f"{PROCESSES}\n{page}\n{runs}\nkill $live $parent"
    (ended,) = start_programs([program("sh", "-c", script, health_alone(watched()), user=1000)], "--shm-size=64m")
    assert ended.err == ""
    found = ended.out.splitlines()
    return [(int(code), said) for said, code in zip(found[::2], found[1::2], strict=True)]


def test_a_rank_that_waits_too_long_is_unhealthy(checked: Checked) -> None:
    """Named with how long, and how long it may."""
    for code, said in checked("$live $start 3 0 2", f"$live $start 7 $(({UP} - 45)) 2"):
        assert code == 1
        words = said.split()
        assert words[:5] == ["unhealthy:", "rank", "7", "has", "waited"]
        assert 45 <= int(words[5]) <= 60
        assert said.endswith(f"s for one batch, {STALL} s are allowed (stall_after)")


@pytest.mark.parametrize(
    ("lines", "longest"),
    [
        ((), "unknown"),
        (("$live $start 0 0 2",), "0"),
        ((f"$live $start 0 $(({UP} - 12)) 2",), "1"),
        ((f"$live $start 0 $(({UP} - 45)) 1", f"$live $start 0 $(({UP} - 45)) 0"), "4"),
        ((f"$live $start 0 $(({UP} + 500)) 2",), ""),
        (("99999 5 0 1 2",), "unknown"),
        ((f"$live $((start - 1)) 0 $(({UP} - 45)) 2",), "unknown"),
        ((f"$dead $ended 0 $(({UP} - 45)) 2",), "unknown"),
        (("$live $start 0 x 2", "$live 0", "x"), "unknown"),
    ],
    ids=["nobody", "trains", "waits", "first-batches", "other-clock", "dead", "later-process", "zombie", "garbage"],
)
def test_other_processes_are_healthy(checked: Checked, lines: tuple[str, ...], longest: str) -> None:
    """Who works, who waits less, who has not had two batches, and who ended while waiting."""
    for code, said in checked(*lines):
        assert code == 0, said
        assert said.startswith(f"longest_wait={longest}"), said
        assert " shm used=" in said


def test_first_batches_may_take_the_start_period(checked: Checked) -> None:
    """Workers start, caches are filled, files are opened."""
    for code, said in checked(f"$live $start 0 $(({UP} - {FIRST})) 1"):
        assert (code, said.rpartition(", ")[2]) == (1, f"{FIRST} s are allowed (stall_after)")


def test_a_page_that_is_missing_is_unknown(start_programs: StartsPrograms) -> None:
    """Python with -I, or another program, writes none; nothing is wrong then."""
    text = health_alone(watched())
    assert "tl_stall=" in text
    (ended,) = start_programs([program("sh", "-c", text)], "--shm-size=64m")
    assert (ended.code, ended.out.split()[0]) == (0, "longest_wait=unknown")


TRAIN = """
import time, torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self): return 64
    def __getitem__(self, index):
        if index == 40: time.sleep(1000)
        return torch.zeros(4)
if __name__ == "__main__":
    loader = DataLoader(Data(), batch_size=4, num_workers=WORKERS, multiprocessing_context=CONTEXT)
    for step, batch in enumerate(loader):
        print("step", step, flush=True)
"""


@pytest.mark.parametrize(
    ("workers", "context"),
    [
        (2, "fork"),
        *(pytest.param(*each, marks=pytest.mark.long) for each in ((0, None), (2, "spawn"), (1, "forkserver"))),
    ],
)
def test_a_worker_that_hangs_is_noticed(docker_run: Runs, torch_image: str, workers: int, context: str | None) -> None:
    """By what the wrapper delivers to uid 1000 on a read-only root, under each start method."""
    script = TRAIN.replace("WORKERS", str(workers)).replace("CONTEXT", repr(context))
    made = plan(
        healthcheck={"stall_after": "5s", "start_period": "90s"},  # workers under spawn start late on a busy machine
        read_only=True,
        command=["sh", "-c", f"printf %s {shlex.quote(script)} >/tmp/train.py; exec python /tmp/train.py"],
    )
    watching = (
        'sh -c "$0" trainlaunch "$@" & job=$!; for n in $(seq 100); do '
        f'said=$({shlex.join(["sh", "-c", health_alone(made)])}) || break; sleep 1; done; echo "$said"; kill $job'
    )
    flags = ("--shm-size=64m", "--user=1000", "--read-only", "--tmpfs=/tmp", "--env=HOME=/tmp")
    done = docker_run(
        *flags, torch_image, "sh", "-c", watching, wrapper_alone(made), *wrapper_words(made)[4:], *made.argv
    )
    assert "step 8" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith("unhealthy: rank 0 has waited "), done
    assert "trainlaunch: warning: " not in done.stderr
    assert " is off " not in done.stderr


def test_the_check_ends_in_time_on_a_twentieth_of_a_cpu_under_full_load(docker_run: Runs, base_image: str) -> None:
    """An exec probe runs in the job's own cgroup: a kubelet must end no job whose check is slow."""
    load = "for n in 1 2 3 4; do while :; do :; done & done"
    script = (
        f'{load}; for n in 1 2 3; do set -- $(cut -d. -f1 /proc/uptime); sh -c "$0" || exit 1; '
        "echo $(($(cut -d. -f1 /proc/uptime) - $1)); done; kill 0"
    )
    done = docker_run(
        "--cpus=0.05", "--shm-size=64m", base_image, "sh", "-c", script, health_alone(watched()), timeout=300
    )
    took = [int(line) for line in done.stdout.splitlines() if line.isdigit()]
    assert len(took) == 3, done
    assert max(took) < MIN_LIVENESS_TIMEOUT
