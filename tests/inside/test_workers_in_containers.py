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
    flags = tuple(f"--env={name}={value}" for name, value in {**variables, **more.pop("env", {})}.items())
    return inside(HEAD + script, "workers", flags=(*flags, *more.pop("flags", ())), **more)


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


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_another_start_method_is_left_alone(inside: Inner, method: str) -> None:
    """A script without a main guard would not run."""
    ran = train(inside, f"torch.multiprocessing.set_start_method('{method}'); show(DataLoader(Data()))")
    assert (ran.code, ran.out) == (0, "DataLoader 0 64\n")
    assert told(ran)[0].endswith(f"left alone: workers start by {method}, which not every script allows")


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
    ran = train(inside, "", command=command)
    assert ran.out == "DataLoader 2 64\n", ran.err
    assert f"/mine.py:{LINE} num_workers 0 → 2" in told(ran)[0]
