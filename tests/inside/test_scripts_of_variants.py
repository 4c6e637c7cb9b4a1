"""Whole scripts under probe in other shapes than their first examples, and ordinary ones, with real torch."""

from __future__ import annotations

import pytest

from tests.inside.conftest import Inner
from tests.inside.test_findings_of_scripts import START, findings
from tests.sampling import every

pytestmark = pytest.mark.docker

MORE = """
import contextlib, itertools, logging, logging.handlers, multiprocessing, queue, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from torch.utils.data import ConcatDataset, SubsetRandomSampler, Subset

def pairs(samples): return torch.stack([x for x, _ in samples]), [y for _, y in samples]
class Vectors(Base):
    def __init__(self): self.x = torch.rand(128, 4)
    def __getitem__(self, i): return self.x[i], i % 3
"""

DEFECTS = {
    "dataset replaces its list": (
        "class D(Base):\n    def __init__(self): self.order = list(range(128))\n"
        "    def set_epoch(self, epoch): random.Random(epoch).shuffle(self.order)\n"
        "    def __getitem__(self, i): return torch.rand(4), self.order[i]\n"
        "train(DataLoader(D(), 64, num_workers=2, persistent_workers={}))",
        "True",
        "False",
        {"stale-dataset"},
    ),
    "script replaces a transform": (
        "class D(Vectors):\n    def __init__(self): super().__init__(); self.transform = torch.abs\n"
        "    def __getitem__(self, i): return self.transform(self.x[i]), i\n"
        "data = D()\nloader = DataLoader(data, 64, num_workers=2, persistent_workers={})\n"
        "train(loader, epochs=1)\ndata.transform = torch.neg\ntrain(loader, epochs=1)",
        "True",
        "False",
        {"stale-dataset"},
    ),
    "a timer's thread": (
        "def report(): time.sleep(60)\n{}\ntrain(DataLoader(Vectors(), 8, num_workers=2))",
        "t = threading.Timer(0, report); t.daemon = True; t.start(); time.sleep(0.2)",
        "",
        {"threads-before-fork"},
    ),
    "a pool at work": (
        "pool = ThreadPoolExecutor(2)\n{}\ntrain(DataLoader(Vectors(), 8, num_workers=2))\n",
        "pool.submit(lambda: time.sleep(8)); time.sleep(0.2)",
        "pool.submit(int).result()",
        {"threads-before-fork"},
    ),
    "drop_last of a batch_sampler": (
        "from torch.utils.data import BatchSampler, SequentialSampler\nval = Subset(Vectors(), range(30))\n"
        "sampler = BatchSampler(SequentialSampler(val), 8, {})\n"
        "train(DataLoader(Vectors(), 8, shuffle=True), DataLoader(val, batch_sampler=sampler))",
        "True",
        "False",
        {"validation-drop-last"},
    ),
    "steps that are cut": (
        "loader = DataLoader(Vectors(), 8, shuffle=True, num_workers=2)\n"
        "def few():\n    for _ in range(6): yield from {}\ntrain(few(), epochs=1)",
        "itertools.islice(loader, 1)",
        "loader",
        {"iterators-rebuilt"},
    ),
    "batches kept though pinned": (
        "kept = {{}}\nloader = DataLoader(Vectors(), 8, collate_fn=pairs, num_workers=2, pin_memory=True)\n"
        "def keep():\n    for n, (x, y) in enumerate(loader):\n        kept[n] = (x{}, y)\n        yield x\n"
        "train(keep(), epochs=1)",
        "",
        ".clone()",
        {"kept-batches"},
    ),
}
BATCHES = {"batches kept though pinned": 100, "script replaces a transform": 3, "dataset replaces its list": 3}


@pytest.mark.parametrize("name", every(5, DEFECTS))
def test_a_defect_is_found_and_gone_with_its_fix(inside: Inner, name: str) -> None:
    """And nothing else is said of either."""
    script, wrong, right, defects = DEFECTS[name]
    batches = BATCHES.get(name, 4)
    assert findings(inside, MORE + script.format(wrong), batches) == defects
    assert findings(inside, MORE + script.format(right), batches) == set()


ORDINARY = {
    "short epochs of a stream": "class D(IterableDataset):\n    def __iter__(self):\n        info = get_worker_info()\n"
    "        for i in range(info.id, 32, info.num_workers): yield torch.rand(4) + i, i\n"
    "train(DataLoader(D(), 8, num_workers=2), epochs=8)",
    "one line for two splits": "data = Vectors()\nparts = {'train': range(96), 'val': range(96, 128)}\n"
    "made = {name: DataLoader(data, 8, sampler=SubsetRandomSampler(part)) for name, part in parts.items()}\n"
    "train(made['train'], made['val'])",
    "queue of log records": "lines = queue.Queue()\n"
    "listener = logging.handlers.QueueListener(lines)\nlistener.start()\n"
    "logging.getLogger().addHandler(logging.handlers.QueueHandler(lines))\n"
    "train(DataLoader(Vectors(), 8, shuffle=True, num_workers=2))\nlistener.stop()",
    "one sample": "train(DataLoader(Subset(Vectors(), [3]), 1, num_workers=1), epochs=0)\nmodel.eval()\n"
    "for x, y in DataLoader(Subset(Vectors(), [3]), 1, num_workers=1): model(x)",
    "no sample": "train(DataLoader(Subset(Vectors(), []), 8, num_workers=1))",
    "evaluation only": "model.eval()\nwith torch.no_grad():\n"
    "    outputs = [(model(x).tolist(), y.tolist()) for x, y in DataLoader(Vectors(), 8, num_workers=2)]",
    "accumulation": "it = iter(DataLoader(Vectors(), 8, shuffle=True, num_workers=2, drop_last=True))\n"
    "for _ in range(3):\n    optimizer.zero_grad()\n"
    "    for x, y in itertools.islice(it, 4): model(x).mean().backward()\n"
    "    optimizer.step()",
    "built by a function": "def made(): return DataLoader(Vectors(), 8, shuffle=True, num_workers=1)\n"
    "for _ in range(2): train(made(), epochs=1)",
    "own class of loader": "class Mine(DataLoader):\n"
    "    def __init__(self, data): super().__init__(data, 8, shuffle=True,"
    " num_workers=2, persistent_workers=True, collate_fn=self.made)\n"
    "    def made(self, samples): return torch.utils.data.default_collate(samples)\ntrain(Mine(Vectors()))",
    "shared lock and value": "class D(Vectors):\n    def __init__(self):\n        super().__init__()\n"
    "        self.lock, self.seen = multiprocessing.Lock(), multiprocessing.Value('i', 0)\n"
    "    def __getitem__(self, i):\n        with self.lock: self.seen.value += 1\n"
    "        return super().__getitem__(i)\n"
    "train(DataLoader(D(), 8, shuffle=True, num_workers=2))",
    "opened after a look": "class D(Vectors):\n    file = None\n    def __getitem__(self, i):\n"
    "        if self.file is None: self.file = open(__file__, 'rb')\n        self.file.seek(i)\n"
    "        return self.x[i], self.file.read(1)[0]\ntrain(DataLoader(D(), 8, shuffle=True, num_workers=2))",
    "seeded by worker": "class D(Vectors):\n    rng = None\n    def __getitem__(self, i):\n"
    "        info = get_worker_info()\n"
    "        if self.rng is None: self.rng = np.random.default_rng(info.seed % 2**32)\n"
    "        return self.x[i] + self.rng.normal(size=4).astype('float32'), i\n"
    "train(DataLoader(D(), 8, shuffle=True, num_workers=2))",
    "two tasks at once": "one, two = (DataLoader(Vectors(), 8, shuffle=True, num_workers=1) for _ in range(2))\n"
    "train(((a[0] + b[0]) for a, b in zip(one, two)), epochs=1)",
}


@pytest.mark.parametrize("name", every(6, ORDINARY))
def test_ordinary_scripts_are_silent(inside: Inner, name: str) -> None:
    """Whatever their loaders and datasets look like."""
    assert findings(inside, MORE + ORDINARY[name], 32) == set()


def test_loaders_of_one_line_that_share_a_dataset_are_two(inside: Inner) -> None:
    """By samplers that choose other samples, iterated or not; one that takes the place of another is none."""
    script = f"{START}{MORE}{ORDINARY['one line for two splits']}"
    for through in (True, False):
        ran = inside(script, batches=4, through=through)
        assert [each["loader"] for each in ran.of("loader")] == [0, 1]
        assert [each["trains"] for each in ran.of("loader")] == [True, False]


@pytest.mark.long  # its worker imports torch, and so do those of all checks
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_spawned_worker_that_hangs_shows_its_stack(inside: Inner, method: str) -> None:
    """And one of a server of forks; the wait begins when the worker, which imports torch first, is there."""
    script = (
        "import os, time, torch\nfrom torch.utils.data import DataLoader, Dataset\n"
        "class Slow(Dataset):\n    def __len__(self): return 8\n"
        "    def __getitem__(self, i):\n        open('there', 'w').close()\n"
        "        while not os.path.exists('over'): time.sleep(0.1)\n        return i\n"
        "if __name__ == '__main__':\n    try:\n"
        f"        it = iter(DataLoader(Slow(), num_workers=1, timeout=3, multiprocessing_context='{method}'))\n"
        "        while not os.path.exists('there'): time.sleep(0.1)\n        next(it)\n"
        "    except RuntimeError:\n        open('over', 'w').close()\n        raise\n"
    )
    ran = inside(script)
    assert ran.code == 1
    (hang,) = ran.findings("worker-hang")
    assert (hang["at"], hang["function"], hang["start_method"]) == ("train.py:7", "__getitem__", method)


def test_a_script_that_nobody_ends_ends_by_itself(inside: Inner) -> None:
    """Before its first batch too, some time after its deadline; processes that it starts end with it."""
    ran = inside("import time, torch\ntime.sleep(600)\n", deadline=2)
    assert (ran.code, ran.one("end")["reason"]) == (0, "deadline")
