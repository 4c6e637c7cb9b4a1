"""Whole scripts under probe, with real torch: what is found of one with a defect, and that ordinary ones are silent."""

from __future__ import annotations

import pytest

from tests.inside.conftest import Inner, Ran

pytestmark = pytest.mark.docker

START = """
import random
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
from torch.utils.data import TensorDataset, random_split

class Base(Dataset):
    def __len__(self): return 128

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)

def step(inputs):
    optimizer.zero_grad()
    model(inputs.float().reshape(len(inputs), -1).mean(1, keepdim=True).expand(-1, 4)).mean().backward()
    optimizer.step()

def train(loader, val=None, epochs=2):
    for epoch in range(epochs):
        model.train()
        for batch in loader:
            step(batch[0] if isinstance(batch, (list, tuple)) else batch)
        if val is not None:
            model.eval()
            with torch.no_grad():
                for batch in val: model(batch[0][:, :4])
"""
OWN = "class D(Base):\n    def __init__(self): self.rng = np.random.default_rng(0)\n"
DRAWS = "    def __getitem__(self, i): return torch.tensor([self.rng.random()])\n"
GLOBAL = "class D(Base):\n    def __getitem__(self, i): return np.random.randint(1, 10000)\n"
SEED = "def seed(worker): get_worker_info().dataset.rng = np.random.default_rng(torch.initial_seed())\n"
STREAM = "class D(IterableDataset):\n    def __iter__(self):\n"


def findings(inside: Inner, script: str, batches: int = 4) -> set[str]:
    """Return the defects that probe reports of a script, all of whose checks ran."""
    ran: Ran = inside(START + script, batches=batches)
    assert ran.code == 0, ran.err
    assert ran.of("off") == []
    assert {each["place"].split(":")[0] for each in ran.of("finding")} <= {"train.py"}
    return {each["defect"] for each in ran.of("finding")}


@pytest.mark.parametrize(
    ("script", "defects"),
    [
        (OWN + DRAWS + "train(DataLoader(D(), 8, num_workers=2))", {"repeated-augmentation", "repeated-epochs"}),
        (OWN + DRAWS + SEED + "train(DataLoader(D(), 8, num_workers=2, worker_init_fn=seed))", set()),
        (
            GLOBAL + "def init(worker): np.random.seed(torch.initial_seed() // 2**32 + worker)\n"
            "train(DataLoader(D(), 8, num_workers=2, worker_init_fn=init))",
            {"repeated-augmentation"},
        ),
        (GLOBAL + "train(DataLoader(D(), 8, num_workers=2))", set()),
        (
            STREAM + "        yield from map(float, range(100))\ntrain(DataLoader(D(), 8, num_workers=2))",
            {"unsharded-iterable"},
        ),
        (
            STREAM + "        info = get_worker_info()\n"
            "        yield from map(float, range(info.id, 100, info.num_workers))\n"
            "train(DataLoader(D(), 8, num_workers=2))",
            set(),
        ),
        (
            STREAM + "        for shard in [range(100)][get_worker_info().id :: 2]: yield from map(float, shard)\n"
            "train(DataLoader(D(), 8, num_workers=2))",
            {"idle-workers"},
        ),
        (
            "data = TensorDataset(torch.rand(65, 4))\ntrain(DataLoader(data, 8, shuffle=True))",
            {"batchnorm-last-batch"},
        ),
        ("data = TensorDataset(torch.rand(65, 4))\ntrain(DataLoader(data, 8, shuffle=True, drop_last=True))", set()),
        (
            "data = TensorDataset(torch.rand(64, 4))\nval = TensorDataset(torch.rand(30, 4))\n"
            "train(DataLoader(data, 8, shuffle=True, num_workers=2), DataLoader(val, 8, drop_last=True))",
            {"validation-drop-last"},
        ),
        (
            "train_set, val_set = random_split(TensorDataset(torch.rand(100, 4), torch.arange(100)), [64, 36])\n"
            "loader = DataLoader(train_set, 8, shuffle=True, num_workers=2, persistent_workers=True)\n"
            "train(loader, DataLoader(val_set, 8, num_workers=1))",
            set(),
        ),
        (
            "loader = DataLoader(TensorDataset(torch.rand(640, 4)), 8, shuffle=True, num_workers=2)\n"
            "for _ in range(8): step(next(iter(loader))[0])",
            {"iterators-rebuilt"},
        ),
        (
            "class D(Base):\n    file = None\n    def __getitem__(self, i):\n"
            "        if self.file is None: self.file = open(__file__, 'rb')\n"
            "        self.file.seek(i)\n        return float(self.file.read(1)[0])\ntrain(DataLoader(D(), 8))",
            set(),
        ),
    ],
    ids=[
        *("own generator", "seeded", "seed divided", "global generator", "unsharded", "sharded", "one shard"),
        *("one sample left", "it is dropped", "evaluation drops", "ordinary", "iterator each step"),
        "opened late",
    ],
)
def test_a_script_has_its_defect_and_no_other(inside: Inner, script: str, defects: set[str]) -> None:
    """Found while the script trains, from its own loaders."""
    assert findings(inside, script) == defects


def test_loops_that_probe_itself_cuts_are_not_left_by_the_script(inside: Inner) -> None:
    """With `--through` each of them ends after the batches that were asked for."""
    data = "TensorDataset(torch.rand(640, 4))"
    ran = inside(f"{START}train(DataLoader({data}, 8, num_workers=2), epochs=8)", batches=4, through=True)
    assert ran.code == 0, ran.err
    assert ran.findings("iterators-rebuilt") == []
    assert ran.one("batches")["passes"] == 8
