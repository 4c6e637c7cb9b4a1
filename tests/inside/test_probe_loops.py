"""What probe measures of loops over loaders, with real torch in a container, and how it ends a script."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from tests.inside.conftest import NO_CHECKS, SHORT, Inner, Ran

pytestmark = pytest.mark.docker

MIB = 2**20
DATA = """
import collections, torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

class Numbers(Dataset):
    def __init__(self, n, size=2**18): self.n, self.size = n, size
    def __len__(self): return self.n
    def __getitem__(self, i):
        if not 0 <= i < self.n: raise IndexError(i)
        return torch.full((self.size,), float(i))

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)

def step(batch):
    optimizer.zero_grad()
    (weight * batch.mean()).sum().backward()
    optimizer.step()
"""


def loop(body: str, **loader: object) -> str:
    """Return a script that trains with one loader, whose loop has this body."""
    stated = ", ".join(f"{name}={value!r}" for name, value in {"batch_size": 1, "num_workers": 2, **loader}.items())
    lines = "\n".join(f"            {line}" for line in body.splitlines())
    return f"""{DATA}
if __name__ == "__main__":
    loader = DataLoader(Numbers(24), {stated})
    kept = collections.deque(maxlen=3)
    for epoch in range(2):
        for batch in loader:
{lines}
    print("to the end")
"""


@pytest.fixture
def inside(inside: Inner) -> Inner:
    """Run a script as all tests of this folder do, but for the checks at its end, which are not what these are of."""
    return partial(inside, values=NO_CHECKS)


def loader(ran: Ran, number: int = 0) -> dict[str, Any]:
    """Return all that was said of one loader."""
    found = [each for each in ran.of("loader") + ran.of("batches") if each["loader"] == number]
    assert len(found) == 2, (ran.records, ran.err)
    return {**found[0], **found[1]}


def test_a_script_ends_after_the_batches_of_the_loader_that_trains(inside: Inner) -> None:
    """Before its own end, with code 0 and all output; exact bytes, medians, place and how it was built."""
    ran = inside(loop("step(batch)\nprint(int(batch[0, 0]))", batch_size=3), batches=5)
    assert (ran.code, ran.out, ran.err) == (0, "0\n3\n6\n9\n12\n", "")
    seen = loader(ran)
    assert {
        key: seen[key] for key in ("count", "storages", "largest_bytes", "batches_held", "trains", "iterators")
    } == {
        **{"count": 5, "storages": [3 * MIB], "largest_bytes": 3 * MIB},
        **{"batches_held": 2, "trains": True, "iterators": 1},
    }
    line = ran.records and (loop("")[: loop("").index("loader = DataLoader")].count("\n") + 1)
    assert (seen["at"], seen["class"], seen["dataset"]) == (
        f"train.py:{line}",
        "torch.utils.data.dataloader.DataLoader",
        "Numbers",
    )
    assert (seen["batch_size"], seen["num_workers"], seen["prefetch_factor"], seen["start_method"]) == (3, 2, 2, "fork")
    assert 0 < seen["collate_seconds"] < seen["fetch_seconds"] < 5 > seen["wait_seconds"] > 0 < seen["step_seconds"]
    assert (ran.one("end")["reason"], ran.records[-1]["kind"], ran.records[0]["kind"]) == ("batches", "end", "start")


BODIES = {
    "step(batch)": 2,
    "kept.append(batch)\nstep(batch)": 4,
    "kept.append(batch[:, :1].clone())\nstep(batch)": 2,
    "kept.append(batch[:, :1])\nstep(batch)": 4,
    "step(batch)\ndel batch": 1,
}


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_held_are_counted_by_what_is_still_alive(inside: Inner, workers: int) -> None:
    """The one that comes is one of them; a view holds its whole batch, a copy of a part holds none."""
    held = [loader(inside(loop(each, num_workers=workers), batches=12))["batches_held"] for each in BODIES]
    assert held == list(BODIES.values())


@pytest.mark.parametrize(
    ("how", "values"),
    [
        ("spawn", NO_CHECKS),
        *(pytest.param(each, SHORT, marks=pytest.mark.long) for each in ("fork", "spawn", "forkserver")),
    ],
    ids=["spawn-unchecked", "fork", "spawn", "forkserver"],
)
def test_what_workers_measure_comes_back_under_every_start_method(
    inside: Inner, how: str, values: Mapping[str, object]
) -> None:
    """Persistent ones too, and in checks at the script's end; the method is named."""
    script = loop("step(batch)", multiprocessing_context=how, persistent_workers=True, batch_size=2)
    ran = inside(script, batches=30, seconds=170, values=values)
    seen = loader(ran)
    assert (seen["storages"], seen["start_method"], seen["iterators"], seen["passes"]) == ([2 * MIB], how, 1, 2)
    assert seen["measured"] >= seen["count"] == 24
    assert (ran.one("end")["reason"], ran.of("finding")) == ("script", [])


def test_loaders_that_were_not_reached_are_fetched_directly(inside: Inner) -> None:
    """Whether they are alive beside others was not seen; one whose dataset was iterated through another is none."""
    script = loop("step(batch)").replace(
        "    kept",
        "    val = DataLoader(Numbers(9), batch_size=4, num_workers=1)\n    kept",
    )
    ran = inside(script.replace("    kept", "    same = DataLoader(loader.dataset)\n    kept", 1), batches=4)
    val = loader(ran, 1)
    assert len(ran.of("loader")) == 2
    assert (val["order"], val["count"], val["storages"], val["together_with"]) == (None, 0, [4 * MIB], [])
    assert (val["trains"], val["batches_held"]) == (False, 2)


IN_TURN = (
    DATA
    + """
if __name__ == "__main__":
    first, train, val = (DataLoader(Numbers(n), batch_size=b, num_workers=2) for n, b in ((9, 1), (24, 2), (30, 3)))
    with torch.no_grad():
        for batch in first: pass
    for epoch in range(2):
        for batch in train: step(batch)
        with torch.no_grad():
            for held_out in val: pass
    print("to the end")
"""
)


def test_through_cuts_every_loop_and_lets_the_script_end(inside: Inner) -> None:
    """So that the order of loaders is seen; loops that follow each other are not together."""
    ran = inside(IN_TURN, batches=4, through=True)
    assert (ran.code, ran.out, ran.one("end")["reason"]) == (0, "to the end\n", "script")
    seen = [loader(ran, number) for number in range(3)]
    assert [(each["count"], each["passes"], each["order"], each["trains"]) for each in seen] == [
        (4, 1, 0, False),
        (8, 2, 1, True),
        (8, 2, 2, False),
    ]
    assert [each["together_with"] for each in seen] == [[], [], []]
    assert [(each["ended"], each["whole_epochs"]) for each in seen] == [(1, 0), (2, 0), (2, 0)]
    assert [each["storages"] for each in seen] == [[MIB], [2 * MIB], [3 * MIB]]


def test_a_loader_that_does_not_train_ends_nothing(inside: Inner) -> None:
    """A first pass without gradients is longer than the batches asked for, and the script goes on to training."""
    seen = loader(inside(IN_TURN, batches=4), 1)
    assert (seen["count"], seen["trains"]) == (4, True)


def test_evaluation_inside_an_epoch_is_together(inside: Inner) -> None:
    """Either loader names the other."""
    script = IN_TURN.replace(
        "        for batch in train: step(batch)\n        with",
        "        for batch in train:\n          step(batch)\n          with",
    ).replace("            for held_out", "              for held_out")
    ran = inside(script, batches=4)
    seen = [loader(ran, number) for number in range(3)]
    assert [each["together_with"] for each in seen] == [[], [2], [1]]


def test_a_script_that_raises_is_reported_and_keeps_its_code(inside: Inner) -> None:
    """What was seen until then, and the script's own traceback."""
    ran = inside(loop("step(batch)\nif batch[0, 0] == 3: raise ValueError('mine')"), batches=12)
    assert (ran.code, loader(ran)["count"], ran.one("end")["reason"]) == (1, 4, "script")
    assert ran.err.endswith("ValueError: mine\n")


@pytest.mark.parametrize("body", ["import time; time.sleep(600)", "pass"], ids=["asleep", "endless"])
def test_the_time_is_limited(inside: Inner, body: str) -> None:
    """Whether the script asks for batches and doesn't train, or asks for none."""
    sooner = (
        "from trainlaunch_inside.probe import ending\nending._GRACE = 0.5\nending._CHECKS_TIMEOUT_SECONDS = 600.0\n"
    )
    script = sooner + loop(body).replace("range(2)", "range(10**6)")
    ran = inside(script, batches=4, seconds=3)
    assert (ran.code, ran.one("end")["reason"]) == (0, "seconds")
    assert loader(ran)["storages"] == [MIB]


def test_a_loader_that_is_built_again_each_epoch_is_one(inside: Inner) -> None:
    """With as many iterators as it was built."""
    script = loop("step(batch)").replace("in loader", "in DataLoader(Numbers(24), batch_size=1, num_workers=2)")
    script = script.replace("    loader = DataLoader(Numbers(24), batch_size=1, num_workers=2)\n", "")
    ran = inside(script, batches=4, through=True)
    assert (len(ran.of("loader")), loader(ran)["passes"], loader(ran)["iterators"]) == (1, 2, 2)


def test_every_process_of_a_job_reports_with_its_rank(inside: Inner) -> None:
    """Loaders that weren't reached are the first rank's."""
    script = loop("step(batch)").replace("    kept", "    val = DataLoader(Numbers(9))\n    kept")
    script = script.replace("torch\n", "torch, trainlaunch_inside.probe.checks as checks\nchecks.CHECKS = ()\n", 1)
    command = ("torchrun", "--nproc-per-node=2", "--standalone", "train.py")
    ran = inside(script, batches=4, command=command)
    assert ran.code == 0
    assert sorted((each["rank"], each["loader"]) for each in ran.of("batches")) == [(0, 0), (0, 1), (1, 0)]
    assert sorted(each["world"] for each in ran.of("start")) == [2, 2]


def test_a_process_that_is_forked_has_loaders_of_its_own(inside: Inner) -> None:
    """Ranks that the script starts itself, after it has iterated one loader."""
    script = loop("step(batch)").replace(
        "    print",
        """    def rank(index):
        for batch in DataLoader(Numbers(6), batch_size=2, num_workers=1): step(batch)
    ranks = [torch.multiprocessing.get_context("fork").Process(target=rank, args=(i,)) for i in range(2)]
    [each.start() for each in ranks]
    [each.join() for each in ranks]
    print""",
    )
    ran = inside(script, batches=100)
    counts = {each["pid"]: (each["count"], each["storages"]) for each in ran.of("batches")}
    assert sorted(counts.values(), key=str) == [(3, [2 * MIB]), (3, [2 * MIB]), (48, [MIB])]


def test_what_is_kept_after_a_loop_is_what_the_next_workers_inherit(inside: Inner) -> None:
    """One batch where a variable of the module holds it, none where the loop stands in a function."""
    in_functions = IN_TURN.replace(
        "        with torch.no_grad():\n            for held_out in val: pass\n",
        "        look(val)\n",
    ).replace("if __name__", "def look(loader):\n    for batch in loader: pass\n\nif __name__")
    kept = [
        [loader(ran, number)["batches_kept"] for number in range(3)]
        for ran in (inside(script, batches=4, through=True) for script in (IN_TURN, in_functions))
    ]
    assert kept == [[1, 1, 1], [1, 1, 0]]


def test_an_abandoned_queue_beside_a_loader_holds_nothing_of_it(inside: Inner) -> None:
    """As after Lightning's sanity check: the other's workers have made their batches, and nobody takes them."""
    script = IN_TURN.replace("        for batch in first: pass\n", "        rest = iter(first); next(rest)\n")
    ran = inside(script, batches=4)
    first, train = (loader(ran, number) for number in (0, 1))
    assert (first["together_with"], first["batches_held"], train["batches_held"]) == ([1], 1, 2)


def test_a_loader_that_a_library_builds_for_each_evaluation_is_one(inside: Inner) -> None:
    """Also while the old ones wait for Python's garbage collection."""
    script = IN_TURN.replace("in val:", "in again(val.dataset):").replace(
        "if __name__",
        """kept_alive = []
def again(dataset):
    kept_alive.append(DataLoader(dataset, batch_size=3, num_workers=2))
    return kept_alive[-1]

if __name__""",
    )
    ran = inside(script, batches=4, through=True)
    assert [each["iterators"] for each in ran.of("batches")] == [1, 2, 2]


def test_a_most_that_came_up_once_is_given_a_standard_deviation_more(inside: Inner) -> None:
    """As of a shuffle buffer, whose most is a draw; one that comes again and again is exact."""
    body = "kept.append(batch)\ndel batch\nsize = next(sizes)\nwhile len(kept) > size: kept.popleft()\nstep(kept[-1])"
    held = []
    for sizes in ("[1, 2, 3, 4, 5, 6, 1, 1, 1, 1, 1, 1]", "[1, 2, 3, 4, 5, 6, 6, 6, 1, 1, 1, 1]"):
        script = loop(body).replace("maxlen=3", "").replace("if __name__", f"sizes = iter({sizes} * 4)\nif __name__")
        held.append(loader(inside(script, batches=12))["batches_held"])
    assert held == [9, 7]
