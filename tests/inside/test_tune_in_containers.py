"""What `tune` times inside a script with real torch: which loader, which settings, and what the script notices."""

from __future__ import annotations

from typing import Any

import pytest

from tests.inside.conftest import Inner, Ran

pytestmark = pytest.mark.docker

EACH = 0.5
SPACE = {"workers": [0, 2], "prefetch": [], "pinning": False, "enough": 1, "threads": None}
DATA = """
import time, torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
class Data(Dataset):
    def __len__(self):
        return 400
    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.zeros(8), torch.tensor(0)
class Stream(IterableDataset):
    def __iter__(self):
        return (Data()[each] for each in range(400))
class Worse(Data):
    def __getitem__(self, index):
        if get_worker_info() is not None:
            raise ValueError("a handle that no worker has")
        return super().__getitem__(index)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def train(loader, steps=10 ** 6):
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if step == steps:
            break
"""


# Once the main thread is where a rank waits for its launcher, and still there a while later.
KILLED_WHILE_IT_WAITS = """
import os, sys, threading
def waits(): return sys._current_frames()[threading.main_thread().ident].f_code.co_name == "_end"
def kill():
    seen = 0
    while seen < 20:
        time.sleep(0.1)
        seen = seen + 1 if waits() else 0
    os.kill(os.getpid(), 9)
threading.Thread(target=kill, daemon=True).start()
"""


def tuned(inside: Inner, script: str, **task: Any) -> Ran:
    """Run a script with settings of half a second each."""
    return inside(DATA + script, "tune", **{"each": EACH, "seconds": 90.0, "space": SPACE, **task})


def settings(ran: Ran) -> list[int]:
    """Return the numbers of workers in the order in which they were timed."""
    return [each["setting"][0] for each in ran.of("tune-setting")]


def test_settings_change_under_the_loop_of_the_loader_that_trains(inside: Inner) -> None:
    """Not the first loader, and not one that is evaluated; the first setting is timed again at the end."""
    script = """
for batch in DataLoader(Data(), 2):
    if batch[0].sum() == 0:
        break
checked = DataLoader(Data(), 2, num_workers=1)
with torch.no_grad():
    for step, batch in enumerate(checked):
        if step == 60:
            break
for epoch in range(100):
    train(DataLoader(Data(), 2, shuffle=True))
print("the script ended")
"""
    ran = tuned(inside, script, each=1.0)
    loader = ran.one("tune-loader")
    assert (ran.code, ran.out) == (0, ""), ran.err
    assert loader["at"].startswith("train.py:")
    assert (loader["setting"], loader["batch_size"], loader["changes_in_place"]) == ([0, 2, None, None], 2, True)
    assert settings(ran) == [0, 2, 1, 2, 0]  # what lies between, the best once more
    assert ran.of("tune-end")[0]["reason"] == "done"
    none, two = ran.of("tune-setting")[:2]
    assert 1.1 < two["rate"] / none["rate"] < 2.6  # the data sleeps: twice as many batches at once, less beside others
    assert none["wait_share"] > 0.8
    assert two["shm_peak"] > none["shm_peak"]
    assert two["batches"] >= 8
    assert two["seconds"] >= 1.0
    assert {"cpus_used", "worker_cpus", "startup_seconds", "steady_rate"} <= two.keys()


def test_what_there_is_no_time_for_is_told(inside: Inner) -> None:
    """The search says that it is not all; that it ends with the first setting is shown in tests/measure."""
    space = {**SPACE, "workers": list(range(40)), "enough": 40}
    ran = tuned(inside, "train(DataLoader(Data(), 2))", seconds=1.0, space=space)
    assert ran.one("tune-end")["reason"] == "time"
    assert 3 <= len(settings(ran)) < 40


def test_a_setting_that_raises_is_none_to_take_and_the_script_goes_on(inside: Inner) -> None:
    """Its error is reported, and the next setting is timed."""
    ran = tuned(inside, "train(DataLoader(Worse(), 2))")
    failed = next(each for each in ran.of("tune-setting") if each["setting"][0] == 2)
    assert (ran.code, failed["rate"]) == (0, 0.0)
    assert "a handle that no worker has" in failed["error"]
    assert settings(ran) == [0, 2, 1, 0]


def test_a_short_epoch_begins_again_and_counts_its_start(inside: Inner) -> None:
    """The loop never ends meanwhile; workers that start with each epoch cost what they cost."""
    ran = tuned(inside, "train(DataLoader(torch.utils.data.Subset(Data(), range(24)), 2))\nprint('ended')")
    none, two = ran.of("tune-setting")[:2]
    assert (ran.out, none["batches"] >= 8, two["batches"] >= 8) == ("", True, True)
    assert two["rate"] < two["steady_rate"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("train(DataLoader(Stream(), 2))", "the dataset is a stream"),
        (
            "class Own(torch.utils.data.SequentialSampler): pass\ntrain(DataLoader(Data(), 2, sampler=Own(Data())))",
            "Own may keep a state",
        ),
        (
            "class Loader(DataLoader):\n    def _get_iterator(self):\n        return super()._get_iterator()\n"
            "train(Loader(Data(), 2))",
            "Loader builds iterators of its own",
        ),
        ("import sys\nsys.modules['lightning'] = torch\ntrain(DataLoader(Data(), 2))", "lightning runs the loop"),
    ],
    ids=["stream", "sampler", "loader", "library"],
)
def test_where_the_loop_has_a_state_one_setting_is_timed(inside: Inner, script: str, reason: str) -> None:
    """And the next process gets another one, on the loader that the first one named."""
    first = tuned(inside, script)
    loader = first.one("tune-loader")
    assert (loader["changes_in_place"], loader["reason"], settings(first)) == (False, reason, [0])
    assert first.one("tune-end")["reason"] == "seconds"
    other = tuned(inside, script, setting=[2, 4, None, None], loader=loader["key"])
    assert other.one("tune-setting")["setting"] == [2, 4, None, None]
    assert other.one("tune-loader")["setting"] == [0, 2, None, None]  # the script's own
    assert other.code == first.code == 0


def test_a_loader_that_is_built_for_each_epoch_is_one(inside: Inner) -> None:
    """Also where its settings can't change under the loop."""
    ran = tuned(inside, "while True:\n    train(DataLoader(Stream(), 2), 12)", each=2.0)
    assert (ran.code, settings(ran)) == (0, [0])
    assert ran.one("tune-setting")["batches"] > 12


def test_a_script_that_ends_by_itself_says_so(inside: Inner) -> None:
    """With what was timed until then, and its own exit code."""
    ran = tuned(inside, "train(DataLoader(Data(), 2), 9)\nprint('ended')\nraise SystemExit(3)", each=60.0)
    assert (ran.code, ran.out) == (3, "ended\n")
    assert ran.one("tune-end")["reason"] == "script"
    assert ran.one("tune-setting")["script_ended"]
    nothing = tuned(inside, "print(len(DataLoader(Data(), 2)))")
    assert nothing.records == []  # as of a helper that only imports torch


def test_only_the_first_rank_reports_and_it_waits_for_the_launcher(inside: Inner) -> None:
    """Its end would break the collective calls of the others."""
    script = f"{KILLED_WHILE_IT_WAITS}train(DataLoader(Data(), 2))"
    first = tuned(inside, script, env={"RANK": "0", "WORLD_SIZE": "2"})
    assert (first.code, first.one("tune-loader")["reason"]) == (137, "several ranks step together")
    assert first.one("tune-end")["reason"] == "seconds"
    second = tuned(inside, "train(DataLoader(Data(), 2), 20)", env={"RANK": "1", "WORLD_SIZE": "2"})
    assert (second.code, second.records) == (0, [])


THREADS = """
class Watched(torch.optim.SGD):
    def step(self, *args):
        print("threads", torch.get_num_threads(), flush=True)
        return super().step(*args)
optimizer = Watched(model.parameters(), 0.1)
"""


def test_threads_are_set_beside_workers_and_told(inside: Inner) -> None:
    """Those of the plan, under the loop; a script that sets its own keeps them in every setting."""
    space = {"workers": [0, 2], "prefetch": [], "pinning": False, "enough": 2, "threads": [[0, 1], [2, 2]]}
    loader = "train(DataLoader(Data(), batch_size=2))"
    ran = inside(DATA + THREADS + loader, "tune", each=EACH, seconds=90.0, space=space)
    assert [each["setting"] for each in ran.of("tune-setting")][:2] == [[0, 2, None, 1], [2, 2, None, 2]]
    assert {"threads 1", "threads 2"} <= set(ran.out.splitlines())
    stated = "torch.set_num_threads(3)\n" + loader
    own = inside(DATA + THREADS + stated, "tune", each=EACH, seconds=30.0, space=space)
    assert {each["setting"][3] for each in own.of("tune-setting")} == {None}
    assert {each for each in own.out.splitlines() if "threads" in each} == {"threads 3"}
