"""What `tune` times inside scripts that aren't the example, with real torch: odd loaders, loops and processes."""

from __future__ import annotations

import pytest

from tests.inside.conftest import Inner
from tests.inside.test_tune_in_containers import SPACE, settings, tuned
from tests.sampling import every

pytestmark = pytest.mark.docker
LOADERS = {
    "own": "DataLoader(Data(), 2, shuffle=True, num_workers=1, persistent_workers=True, timeout=30, prefetch_factor=4,"
    " generator=torch.Generator().manual_seed(1), worker_init_fn=lambda worker: torch.manual_seed(worker))",
    "batch-sampler": "DataLoader(Data(), batch_sampler=BatchSampler(RandomSampler(Data()), 2, False))",
    "no-batches": "DataLoader(Pairs(), batch_size=None)",
    "one-of-many": "DataLoader(Data(), 2, sampler=DistributedSampler(Data(), num_replicas=1, rank=0))",
}
MORE = """
from torch.utils.data import BatchSampler, RandomSampler
from torch.utils.data.distributed import DistributedSampler
Data.__getitem__ = lambda self, index: (time.sleep(0.1), torch.zeros(8), torch.tensor(0))[1:]
class Pairs(Data):
    def __getitem__(self, index):
        time.sleep(0.2)
        return torch.zeros(2, 8), torch.zeros(2, dtype=torch.int64)
"""
PART = "def part(count):\n    return torch.utils.data.Subset(Data() if count <= 400 else Long(), range(count))\n"
PART = f"class Long(Data):\n    def __len__(self):\n        return 4000\n{PART}"
SOONER = "from trainlaunch_inside.tune import watched_loops\nwatched_loops.UNSEEN = ((50, 3.0), (4, 60.0))\n"
PERSISTENT = "loader = DataLoader(data, 2, num_workers=1, persistent_workers=True)\n"
SPAWN = "__import__('torch.multiprocessing').multiprocessing.set_start_method('spawn', force=True)"


@pytest.mark.parametrize("loader", every(2, LOADERS))
def test_arguments_of_a_loader_are_kept_under_other_settings(inside: Inner, loader: str) -> None:
    """Each is searched in one run, and two workers are faster than what it has."""
    ran = tuned(inside, f"{MORE}train({LOADERS[loader]})")
    assert ran.one("tune-loader")["changes_in_place"] is True, ran.err
    assert ran.one("tune-end")["reason"] in {"done", "time"}
    assert [each["setting"] for each in ran.of("tune-setting") if each.get("error")] == []
    rates = {each["setting"][0]: each["rate"] for each in ran.of("tune-setting")}
    assert rates[2] > 1.1 * rates[0]  # twice as many on an idle machine


@pytest.mark.parametrize(
    ("loop", "length"),
    [
        ("while True:\n    train(loader)", 3),
        pytest.param("while True:\n    train(loader)", 1, marks=pytest.mark.long),
        pytest.param(f"{PERSISTENT}while True:\n    train(loader)", 2, marks=pytest.mark.long),
        pytest.param("while True:\n    train(DataLoader(Data(), 2), 4)", 200, marks=pytest.mark.long),
        pytest.param(
            f"{PERSISTENT}while True:\n    train(loader, 12)\n    time.sleep(1.5)", 200, marks=pytest.mark.long
        ),
    ],
    ids=["three-batches", "one-batch", "persistent", "broken-off", "persistent-broken-off"],
)
def test_short_epochs_are_timed_with_more_workers_than_batches(inside: Inner, loop: str, length: int) -> None:
    """All of such an epoch is warm-up to some settings; none of them is timed for ever."""
    script = f"data = torch.utils.data.Subset(Data(), range({2 * length}))\nloader = DataLoader(data, 2)\n{loop}\n"
    ran = tuned(inside, script, space={**SPACE, "workers": [0, 1, 6]})
    assert ran.one("tune-end")["reason"] in {"done", "time"}, ran.err
    assert {*settings(ran)} >= {0, 1, 6}
    assert all(each["rate"] > 0 and each["cpus_used"] is not None for each in ran.of("tune-setting"))
    assert sum(each["seconds"] for each in ran.of("tune-setting")) < 40


def test_steps_that_gather_gradients_and_evaluations_within_an_epoch(inside: Inner) -> None:
    """The loader that is stepped on every fourth batch; two seconds of another one are none of its time."""
    script = """
checked = DataLoader(Data(), 2)
loader = DataLoader(part(300), 2)
for epoch in range(100):
    for step, (x, y) in enumerate(loader):
        torch.nn.functional.cross_entropy(model(x), y).backward()
        if step % 4 == 3:
            optimizer.step()
        if step % 12 == 11:
            with torch.no_grad():
                for count, batch in enumerate(checked):
                    if count == 50:
                        break
"""
    ran = tuned(inside, PART + script, space={**SPACE, "workers": [0]})
    loader = ran.one("tune-loader")
    assert (loader["length"], loader["stepped"]) == (150, True), ran.err
    assert 7 < ran.of("tune-setting")[0]["rate"] < 35  # 25 of two samples of 20 ms; 5 with the evaluation's time


def test_a_line_that_trains_and_validates_has_two_loaders(inside: Inner) -> None:
    """Both of one class; a process that is given a setting gives it to the one that trains, and times that alone."""
    script = """
loaders = {"train": DataLoader(part(128), 2, shuffle=True), "val": DataLoader(part(64), 2, shuffle=True)}
for epoch in range(100):
    for phase in ("val", "train"):
        for step, (x, y) in enumerate(loaders[phase]):
            if phase == "train":
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
            if step == 11:
                break
        print(phase, loaders[phase].num_workers)
"""
    first = tuned(inside, PART + script)
    assert (first.one("tune-loader")["changes_in_place"], first.one("tune-loader")["length"]) == (True, 64), first.err
    key = first.one("tune-loader")["key"]
    other = tuned(inside, PART + script, setting=[2, 2, None, None], loader=key, each=1.0)  # more than one epoch's time
    assert other.one("tune-setting")["setting"] == [2, 2, None, None]
    assert {*other.out.splitlines()} == {"val 0", "train 2"}


@pytest.mark.parametrize(
    "script",
    [
        "with torch.inference_mode():\n    for x, y in DataLoader(part(1200), 2):\n        model(x)",
        """for x, y in DataLoader(part(1200), 2):
    torch.nn.functional.cross_entropy(model(x), y).backward()
    with torch.no_grad():
        for each in model.parameters():
            each -= 0.1 * each.grad
            each.grad = None""",
    ],
    ids=["inference", "own-update"],
)
def test_a_script_without_an_optimizer_is_timed_after_a_while(inside: Inner, script: str) -> None:
    """Fifty batches and some seconds: what only infers too, where no optimizer is there to come later."""
    ran = tuned(inside, f"{PART}{SOONER}del optimizer\n{script}")
    assert ran.one("tune-loader")["stepped"] is False, ran.err
    assert ran.one("tune-end")["reason"] == "done"
    assert 2 in settings(ran)


def test_a_long_evaluation_before_training_is_not_what_is_timed(inside: Inner) -> None:
    """An optimizer is there that hasn't stepped yet."""
    script = (
        "with torch.no_grad():\n    for batch in DataLoader(part(240), 2):\n        pass\ntrain(DataLoader(Data(), 2))"
    )
    ran = tuned(inside, PART + SOONER + script)
    assert (ran.one("tune-loader")["length"], ran.one("tune-loader")["stepped"]) == (200, True), ran.err


@pytest.mark.long
def test_workers_that_are_spawned_end_without_a_word(inside: Inner) -> None:
    """Each is a Python of its own that has torch and this in it."""
    ran = tuned(inside, f"if __name__ == '__main__':\n    {SPAWN}\n    train(DataLoader(Data(), 2))")
    assert ran.one("tune-end")["reason"] in {"done", "time"}, ran.err  # each of them imports torch first
    assert settings(ran)[:2] == [0, 2]
    assert [each["setting"] for each in ran.of("tune-setting") if each.get("error")] == []


def test_a_script_without_a_main_guard_is_searched_by_one_process(inside: Inner) -> None:
    """Its spawned workers run it again: they end as they come to train, and that many workers are none to take."""
    ran = tuned(inside, f"{SPAWN}\ntrain(DataLoader(Data(), 2))")
    assert ran.code == 0, ran.err
    assert len({each["pid"] for each in ran.records}) == 1
    assert ran.one("tune-end")["reason"] in {"done", "time"}
    assert "a worker has come to train: the script has no main guard" in ran.err
    failed = [each for each in ran.of("tune-setting") if each["setting"][0]]
    assert failed
    assert all(each["rate"] == 0 and each["error"] for each in failed)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            f"if __name__ == '__main__':\n    {SPAWN}\n"
            "    train(DataLoader(Data(), 2, collate_fn=lambda each: torch.utils.data.default_collate(each)))",
            "pickle",
        ),
        (
            "import multiprocessing.process\nstart, begun = multiprocessing.process.BaseProcess.start, []\n"
            "def limited(self):\n    begun.append(self)\n    if len(begun) % 2 == 0:\n"
            "        raise BlockingIOError(11, 'no more processes')\n    start(self)\n"
            "multiprocessing.process.BaseProcess.start = limited\ntrain(DataLoader(Data(), 2))",
            "no more processes",
        ),
    ],
    ids=["unpicklable", "too-many-processes"],
)
def test_workers_that_do_not_start_are_none_to_take_and_the_script_goes_on(
    inside: Inner, script: str, words: str
) -> None:
    """Also where some of them had started: they end."""
    ran = tuned(inside, script)
    assert ran.one("tune-end")["reason"] == "done", ran.err
    failed = next(each for each in ran.of("tune-setting") if each["setting"][0] == 2)
    assert (failed["rate"], words in failed["error"]) == (0.0, True), failed
    assert settings(ran)[-1] == 0
    assert ran.of("tune-setting")[-1]["rate"] > 0


def test_helpers_that_import_torch_say_nothing_and_a_forked_script_is_timed(inside: Inner) -> None:
    """A command that asks for torch's version first; a script that trains in a process which it forks."""
    script = (
        "import multiprocessing, subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import torch'], check=True)\n"
        "child = multiprocessing.get_context('fork').Process(target=train, args=(DataLoader(Data(), 2),))\n"
        "child.start()\nchild.join()\nprint('joined')"
    )
    command = ("sh", "-c", "python -c 'import torch.utils.data' && python train.py")
    ran = tuned(inside, script, command=command, each=1.0)
    assert [each["reason"] for each in ran.of("tune-end")] == ["done"], ran.err
    assert settings(ran) == [0, 2, 1, 2, 0]
    assert ran.out == "joined\n"
