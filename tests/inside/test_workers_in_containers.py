"""`inject: num_workers` on real DataLoaders, in a container with torch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.inside.conftest import Inner, Ran

pytestmark = pytest.mark.docker

HEAD = """
import sys, torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
class Data(Dataset):
    def __init__(self, count=64): self.count = count
    def __len__(self): return self.count
    def __getitem__(self, index): return torch.zeros(2)
class Endless(IterableDataset):
    def __iter__(self): return iter(torch.zeros(100, 2))
def show(loader):
    print(type(loader).__name__, getattr(loader, "num_workers", None), sum(1 for _ in loader), flush=True)
"""
ONE = [{"batch_size": None, "num_workers": None}]


def train(inside: Inner, script: str, planned: list[dict[str, Any]] | None = None, **more: Any) -> Ran:
    """Run a script with the part, for 2 automatic workers."""
    variables = {"TRAINLAUNCH_NUM_WORKERS": "2", "TRAINLAUNCH_WORKERS": json.dumps(ONE if planned is None else planned)}
    return inside(HEAD + script, "workers", env={**variables, **more.pop("env", {})}, **more)


def told(ran: Ran) -> list[str]:
    """Return what was said of loaders."""
    return [each.removeprefix("trainlaunch: ") for each in ran.err.splitlines() if each.startswith("trainlaunch: ")]


LINE = HEAD.count("\n") + 1


def test_a_loader_that_states_no_workers_gets_them(inside: Inner) -> None:
    """Its place is the script's own line, and it trains with them."""
    ran = train(inside, "show(DataLoader(Data(), 1))")
    assert (ran.code, ran.out) == (0, "DataLoader 2 64\n"), ran.err
    assert told(ran) == [f"train.py:{LINE} num_workers 0 → 2; random numbers differ from a run without workers"]


LEFT = {
    "stated": ("DataLoader(Data(), 1, num_workers=0)", 0, "it states num_workers 0; write num_workers=2 there"),
    "stated-by-position": ("DataLoader(Data(), 1, False, None, None, 1)", 1, "it states num_workers 1"),
    "short": ("DataLoader(Data(63), 1)", 0, "it has 63 batches, fewer than 64"),
    "short-by-batches": ("DataLoader(Data(640), 11)", 0, "it has 59 batches, fewer than 64"),
    "dropped-last": ("DataLoader(Data(127), 2, drop_last=True)", 0, "it has 63 batches"),
    "iterable": ("DataLoader(Endless())", 0, "its dataset is iterable, and each worker would read all of it"),
    "worker-init": ("DataLoader(Data(), worker_init_fn=print)", 0, "worker_init_fn is stated"),
    "batch-sampler": ("DataLoader(Data(), batch_sampler=[[0]] * 9)", 0, "it has 9 batches"),
    "no-length": ("DataLoader(Data(), batch_sampler=iter([[1]]))", 0, "its length is unknown"),
}


@pytest.mark.parametrize(("loader", "workers", "reason"), LEFT.values(), ids=LEFT)
def test_a_loader_with_something_against_it_is_left_alone(
    inside: Inner, loader: str, workers: int, reason: str
) -> None:
    """It runs as it is, and one line says why."""
    ran = train(inside, f"show({loader})")
    assert ran.code == 0, ran.err
    assert ran.out.startswith(f"DataLoader {workers} ")
    (line,) = told(ran)
    assert line.startswith(f"train.py:{LINE} left alone: {reason}")


GUARDED = """
import numpy, threading
class Holds(Data):
    def __init__(self, **held): super().__init__(); self.held = held
if __name__ == "__main__":
    torch.multiprocessing.set_start_method("METHOD")
    for each in (Holds(key=[1, lambda: 1]), Holds(lock=threading.Lock()), Holds(labels=torch.zeros(1 << 20))):
        show(DataLoader(each))
    show(DataLoader(Holds(images=numpy.broadcast_to(numpy.zeros(1), (1 << 27) + 1))))
    sparse = torch.eye(2).to_sparse()
    show(DataLoader(Holds(weights=torch.zeros(3), sparse=sparse, queue=torch.multiprocessing.Queue())))
"""


@pytest.mark.parametrize("method", ["forkserver", pytest.param("spawn", marks=pytest.mark.long)])
def test_workers_that_are_new_pythons_get_what_can_be_pickled(inside: Inner, method: str) -> None:
    """forkserver is the default of Python 3.14. What can't is named, as are tensors that move to /dev/shm."""
    ran = train(inside, GUARDED.replace("METHOD", method))
    left = "DataLoader 0 64\n" * 4
    assert (ran.code, ran.out) == (0, left + "DataLoader 2 64\n"), ran.err
    key, lock, labels, images, given = (each.partition(" ")[2] for each in told(ran))
    begins = f"left alone: workers start by {method}, and "
    assert key.startswith(f"{begins}dataset.held['key'][1] (<lambda>) can't be pickled: ")
    assert lock.startswith(f"{begins}dataset.held['lock'] (lock) can't be pickled: ")
    assert labels.startswith(f"{begins}4 MiB of tensors in its dataset would move to /dev/shm, unplanned")
    assert images.startswith(f"{begins}each would copy 1024 MiB of arrays")
    assert given.startswith("num_workers 0 → 2; ")


def test_a_script_that_new_pythons_would_run_again_is_left_alone(inside: Inner) -> None:
    """They import it; a guard elsewhere in it says nothing of this loader."""
    script = (
        "torch.multiprocessing.set_start_method('spawn')\nif __name__ == '__main__': pass\nshow(DataLoader(Data()))"
    )
    ran = train(inside, script)
    assert (ran.code, ran.out) == (0, "DataLoader 0 64\n")
    assert "left alone: workers start by spawn, and the script has no `if __name__" in told(ran)[0]


FORCED = {
    "stated": ("DataLoader(Data(), 1, num_workers=8)", 2, "num_workers 8 → 2; random numbers differ from a run with 8"),
    "by-position": ("DataLoader(Data(), 1, False, None, None, 1, None, True)", 2, "num_workers 1 → 2; random numbers "),
    "none": ("DataLoader(Data(), 1)", 2, "num_workers 0 → 2; random numbers differ from a run without workers"),
    "as-planned": ("DataLoader(Data(), 1, num_workers=2)", 2, "num_workers 2, as planned"),
    "iterable": ("DataLoader(Endless(), num_workers=1)", 1, "left alone: its dataset is iterable"),
    "short, of more": ("DataLoader(Data(63), 1, num_workers=8)", 2, "num_workers 8 → 2; random numbers differ from"),
    "short": ("DataLoader(Data(63), 1, num_workers=1)", 1, "left alone: it has 63 batches, fewer than 64"),
}


@pytest.mark.parametrize(("loader", "workers", "said"), FORCED.values(), ids=FORCED)
def test_force_overrides_what_a_script_states(inside: Inner, loader: str, workers: int, said: str) -> None:
    """Under the other conditions, and each line is named."""
    ran = train(inside, f"show({loader})", env={"TRAINLAUNCH_FORCE_WORKERS": "1"})
    assert ran.code == 0, ran.err
    assert ran.out.startswith(f"DataLoader {workers} ")
    assert told(ran)[0].startswith(f"train.py:{LINE} {said}")


def test_force_to_none_leaves_what_torch_would_refuse(inside: Inner) -> None:
    """A stated prefetch_factor is an error without workers; a loader that states nothing of them gets none."""
    planned = [{"batch_size": 1, "num_workers": 0}, {"batch_size": 2, "num_workers": 0}]
    script = (
        "show(DataLoader(Data(), 1, num_workers=1, prefetch_factor=2))\nshow(DataLoader(Data(128), 2, num_workers=1))"
    )
    ran = train(inside, script, planned, env={"TRAINLAUNCH_FORCE_WORKERS": "1"})
    assert ran.out.splitlines() == ["DataLoader 1 64", "DataLoader 0 64"], ran.err
    assert told(ran)[0].endswith("left alone: 0 are planned, and torch refuses prefetch_factor without workers")
    assert "num_workers 1 → 0" in told(ran)[1]


def test_a_timeout_without_workers_is_torchs_own_error(inside: Inner) -> None:
    """No workers are given to it, so torch's words stay."""
    ran = train(inside, "show(DataLoader(Data(), timeout=5))")
    assert ran.code == 1
    assert "requires timeout == 0" in ran.err


def test_the_first_loader_of_a_place_gets_workers(inside: Inner) -> None:
    """One that is built each step would start workers each step."""
    ran = train(inside, "for _ in range(3):\n    show(DataLoader(Data()))", planned=ONE * 5)
    assert ran.out.splitlines() == ["DataLoader 2 64", "DataLoader 0 64", "DataLoader 0 64"]
    assert [each.partition(": ")[2] for each in told(ran)[1:]] == ["another loader was built there before"]


def test_no_more_loaders_get_workers_than_are_planned(inside: Inner) -> None:
    """/dev/shm is sized for those of the job file."""
    ran = train(inside, "show(DataLoader(Data()))\nshow(DataLoader(Data()))")
    assert ran.out.splitlines() == ["DataLoader 2 64", "DataLoader 0 64"]
    assert told(ran)[1].endswith("left alone: data_loader.loaders has no more; add this one")


def test_a_loader_that_probe_found_something_against_is_left_with_its_words(inside: Inner) -> None:
    """The plan hands them over."""
    planned = [{"batch_size": None, "num_workers": 0, "why": "probe found handle-in-init"}]
    ran = train(inside, "show(DataLoader(Data()))", planned)
    assert (ran.out, told(ran)) == ("DataLoader 0 64\n", [f"train.py:{LINE} left alone: probe found handle-in-init"])


def test_loaders_are_told_apart_by_batch_size(inside: Inner) -> None:
    """Each has its own number; a size that nobody planned for has none."""
    planned = [{"batch_size": 4, "num_workers": 1}, {"batch_size": 2, "num_workers": None}]
    script = "".join(f"show(DataLoader(Data(1000), {size}))\n" for size in (2, 8, 4))
    ran = train(inside, script, planned)
    assert [each.split()[1] for each in ran.out.splitlines()] == ["2", "0", "1"]
    assert told(ran)[1].endswith("left alone: /dev/shm is not sized for its batch_size 8; state it in data_loader")


def test_planned_zero_leaves_it_alone(inside: Inner) -> None:
    """The preflight lowers an automatic number where CPUs or /dev/shm are few."""
    ran = train(inside, "show(DataLoader(Data()))", env={"TRAINLAUNCH_NUM_WORKERS": "0"})
    assert (ran.out, told(ran)[0].partition(": ")[2]) == ("DataLoader 0 64\n", "0 workers are planned")


def test_subclasses_and_early_imports_are_seen(inside: Inner) -> None:
    """A subclass calls torch's own `__init__`; its signature is still torch's."""
    script = (
        "import inspect\nclass Mine(DataLoader):\n    def __init__(self, dataset): super().__init__(dataset, 1)\n"
        "show(Mine(Data()))\nassert 'num_workers' in inspect.signature(DataLoader.__init__).parameters"
    )
    ran = train(inside, script)
    assert (ran.code, ran.out) == (0, "Mine 2 64\n"), ran.err


def test_wrong_arguments_are_torchs_own_error(inside: Inner) -> None:
    """As without trainlaunch."""
    ran = train(inside, "DataLoader(Data(), no_such=1)")
    assert ran.code == 1
    assert ran.err.strip().endswith("TypeError: DataLoader.__init__() got an unexpected keyword argument 'no_such'")


def test_it_works_for_any_user_on_a_read_only_root(inside: Inner) -> None:
    """uid 1000, /tmp alone writable."""
    flags = ("--user=1000", "--read-only", "--tmpfs=/tmp")
    assert train(inside, "show(DataLoader(Data()))", flags=flags).out == "DataLoader 2 64\n"


def test_ranks_say_it_once(inside: Inner) -> None:
    """The first rank speaks."""
    ran = train(inside, "show(DataLoader(Data()))", env={"RANK": "1"})
    assert (ran.out, told(ran)) == ("DataLoader 2 64\n", [])


def test_an_installed_program_is_named_by_its_own_file(inside: Inner) -> None:
    """`python -m` of a package beside torch has no file that is the job's alone."""
    program = HEAD + "if __name__ == '__main__': show(DataLoader(Data()))\n"
    place = (
        "import sys, sysconfig, pathlib; pathlib.Path(sysconfig.get_path('purelib'), 'mine.py').write_text(sys.argv[1])"
    )
    command = ("sh", "-c", 'python -c "$0" "$1" && exec python -m mine', place, program)
    ran = train(inside, "", command=command, alone=True)
    assert ran.out == "DataLoader 2 64\n", ran.err
    assert f"/mine.py:{LINE} num_workers 0 → 2" in told(ran)[0]


PACKAGE = """
from torch.utils.data import DataLoader, TensorDataset
import torch
def main():
    data = TensorDataset(torch.zeros(128, 2))
    train = DataLoader(data, batch_size=1)
    val = DataLoader(data, batch_size=2)
    print(train.num_workers, val.num_workers, flush=True)
"""


def test_loaders_of_a_console_script_are_told_apart(inside: Inner) -> None:
    """pip writes its file, in which no loader is built: the package's own lines count."""
    write = (
        "import sys, sysconfig, pathlib as p; p.Path(sysconfig.get_path('purelib'), 'mine.py').write_text(sys.argv[1]);"
        "at = p.Path(sysconfig.get_path('scripts'), 'mytrain');"
        "at.write_text(f'#!{sys.executable}\\nimport mine\\nmine.main()\\n'); at.chmod(0o755)"
    )
    command = ("sh", "-c", 'python -c "$0" "$1" && exec mytrain', write, PACKAGE)
    ran = train(inside, "", ONE * 2, command=command, alone=True)
    assert ran.out == "2 2\n", ran.err
    assert [each.partition(" ")[0].rpartition("/")[2] for each in told(ran)] == ["mine.py:6", "mine.py:7"]


REBUILDS = """
from torch.utils.data import DataLoader
def again(loader):
    return DataLoader(loader.dataset, batch_size=loader.batch_size, num_workers=loader.num_workers)
def with_what_is_no_default(loader):
    return again(loader) if loader.num_workers else DataLoader(loader.dataset, batch_size=loader.batch_size)
"""
VENV = (
    "import sys, sysconfig, pathlib as p; p.Path(sysconfig.get_path('purelib'), 'rebuilds.py').write_text(sys.argv[1])"
)


@pytest.mark.parametrize(
    "in_venv", [pytest.param(False, marks=pytest.mark.long), True], ids=["beside-torch", "below-a-venv"]
)
def test_a_library_that_builds_them_again_is_not_spoken_of(inside: Inner, in_venv: bool) -> None:
    """Whether they have workers or not; a venv sees the image's packages, which are none of its own."""
    script = (
        "import rebuilds\nfor loader in (DataLoader(Data(), 1), DataLoader(Data(8), 1)):\n"
        "    show(rebuilds.with_what_is_no_default(rebuilds.again(loader)))\n"
    )
    run = "python -m venv --without-pip --system-site-packages /tmp/v && exec /tmp/v/bin/python train.py"
    command = ("sh", "-c", f'python -c "$0" "$1" && {run if in_venv else "exec python train.py"}', VENV, REBUILDS)
    ran = train(inside, script, ONE * 2, command=command, alone=True)
    assert ran.out.splitlines() == ["DataLoader 2 64", "DataLoader 0 8"], ran.err
    assert [each.partition(";")[0] for each in told(ran)] == [
        f"train.py:{LINE + 1} num_workers 0 → 2",
        f"train.py:{LINE + 1} left alone: it has 8 batches, fewer than 64",
    ]


def test_a_daemon_may_start_no_workers(inside: Inner) -> None:
    """As the processes of a pool, in which a loader works that has none."""
    script = (
        "import multiprocessing\ndef count(_): return sum(1 for _ in DataLoader(Data(), 1))\n"
        "with multiprocessing.get_context('fork').Pool(1) as pool: print(pool.map(count, [0]))\n"
    )
    ran = train(inside, script)
    assert (ran.code, ran.out) == (0, "[64]\n"), ran.err
    assert [each.partition(": ")[2] for each in told(ran)] == ["its process is a daemon, which may start none"]


def test_a_batch_sampler_has_a_batch_size_too(inside: Inner) -> None:
    """/dev/shm is sized for the planned one; a sampler that tells none may be any."""
    planned = [{"batch_size": 4, "num_workers": None}] * 2
    script = (
        "from torch.utils.data import BatchSampler\n"
        "for size in (8, 4): show(DataLoader(Data(), batch_sampler=BatchSampler(range(1000), size, False)))\n"
        "show(DataLoader(Data(), batch_sampler=[[0]] * 64))\n"
    )
    ran = train(inside, script, planned)
    assert [each.split()[1] for each in ran.out.splitlines()] == ["0", "0", "2"], ran.err
    assert told(ran)[0].endswith("left alone: /dev/shm is not sized for its batch_size 8; state it in data_loader")


@pytest.mark.parametrize(
    "odd",
    [
        "    def __hash__(self): return hash(self.missing)",
        "    def __eq__(self, other): raise ValueError('no')",
    ],
    ids=["hash", "eq"],
)
def test_a_loader_that_is_odd_itself_works_as_without_us(inside: Inner, odd: str) -> None:
    """Whatever its own methods raise is not asked for."""
    ran = train(inside, f"class Odd(DataLoader):\n{odd}\nshow(Odd(Data(), 1))\nshow(Odd(Data(), 1, num_workers=0))")
    assert (ran.code, ran.out) == (0, "Odd 2 64\nOdd 0 64\n"), ran.err


def test_a_place_is_named_from_where_the_script_began(inside: Inner) -> None:
    """As Hydra does, a script may change its folder, and even remove it."""
    leave = "import os; os.mkdir('/tmp/gone'); os.chdir('/tmp/gone'); os.rmdir('/tmp/gone')"
    ran = train(inside, f"{leave}\nshow(DataLoader(Data()))")
    assert ran.out == "DataLoader 2 64\n", ran.err
    assert told(ran)[0].startswith(f"train.py:{LINE + 1} num_workers 0 → 2")


@pytest.mark.parametrize(
    "command",
    [
        ("python", "-m", "train"),
        pytest.param(("env", "PYTHONSAFEPATH=1", "python", "train.py"), marks=pytest.mark.long),
        pytest.param(("sh", "-c", "PYTHONPATH=/job:$PYTHONPATH exec python /job/train.py"), marks=pytest.mark.long),
        ("torchrun", "--standalone", "--nproc-per-node=2", "train.py"),
    ],
    ids=["module", "safe-path", "longer-path", "torchrun"],
)
def test_every_way_to_start_a_script_has_them(inside: Inner, command: tuple[str, ...]) -> None:
    """Each rank has its own workers, and the first one says so."""
    ran = train(inside, "show(DataLoader(Data()))", command=command)
    ranks = 2 if command[0] == "torchrun" else 1
    assert (ran.code, ran.out) == (0, "DataLoader 2 64\n" * ranks), ran.err
    assert [each.partition(";")[0] for each in told(ran)] == [f"train.py:{LINE} num_workers 0 → 2"]


@pytest.mark.long  # tests/inside/test_site.py has them with a torch that is quick to import
@pytest.mark.parametrize(
    "command",
    [("sh", "-c", 'exec env -i PATH="$PATH" python train.py'), ("python", "-I", "train.py")],
    ids=["no-environment", "isolated"],
)
def test_a_python_that_is_cut_off_runs_as_it_is(inside: Inner, command: tuple[str, ...]) -> None:
    """Without a word, as docs/inject.md says."""
    ran = train(inside, "show(DataLoader(Data()))", command=command)
    assert (ran.code, ran.out, told(ran)) == (0, "DataLoader 0 64\n", []), ran.err
