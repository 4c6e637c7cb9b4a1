"""`trainlaunch probe` on scripts that others had trouble with: each defect is found, and gone with its fix applied.

That each check finds its defect in real workers is shown by tests/inside, what is said of it by tests/measure/findings;
here one goes the whole way by default.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.conftest import ROOT, Runs

pytestmark = pytest.mark.docker

PACKAGES = "/usr/local/lib/python3.11/dist-packages"  # of the image

IMPORTS = """
import multiprocessing, os, random, sqlite3, sys, threading, time
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

weight = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], 0.01)

class Data(Dataset):
    def __len__(self): return 64

"""
TRAIN = """
if __name__ == "__main__":
    loader = make()
    for epoch in range(3):
        if hasattr(loader.dataset, "set_epoch"): loader.dataset.set_epoch(epoch)
        for batch in loader:
            if "keep" in globals(): keep(batch)
            optimizer.zero_grad()
            (weight * batch.float().mean()).sum().backward()
            optimizer.step()
"""


class Row(NamedTuple):
    """A defect, a script's part that has it, what stands there, and what to write instead."""

    defect: str
    script: str
    wrong: str
    right: str


SEED = "def seed(worker): get_worker_info().dataset.{path}.seed(torch.initial_seed() % 2**32)\n"
ROWS = {
    "a generator on the dataset": Row(
        "repeated-augmentation",
        "class D(Data):\n    def __init__(self): self.rng = np.random.RandomState(0)\n"
        "    def __getitem__(self, i): return self.rng.rand()\n"
        + SEED.format(path="rng")
        + "def make(): return DataLoader(D(), 8, num_workers=2{})",
        "",
        ", worker_init_fn=seed",
    ),
    "a pipeline's own generator": Row(
        "repeated-epochs",
        "class Compose:\n    def __init__(self): self.r = random.Random(137)\n"
        "    def __call__(self, x): return x + self.r.random()\n"
        "class D(Data):\n    def __init__(self): self.t = Compose()\n"
        "    def __getitem__(self, i): return self.t(float(i))\n"
        + SEED.format(path="t.r")
        + "def make(): return DataLoader(D(), 8, num_workers=2{})",
        "",
        ", worker_init_fn=seed",
    ),
    "a seed that is divided": Row(
        "repeated-augmentation",
        "class D(Data):\n    def __getitem__(self, i): return np.random.randint(1, 10000)\n"
        "def init(worker): np.random.seed(torch.initial_seed() {})\n"
        "def make(): return DataLoader(D(), 8, num_workers=2, worker_init_fn=init)",
        "// 2**32 + worker",
        "% 2**32",
    ),
    "a stream that is not shared out": Row(
        "unsharded-iterable",
        "class D(IterableDataset):\n    def __iter__(self):\n        info = get_worker_info()\n"
        "        return iter(range({}))\ndef make(): return DataLoader(D(), 8, num_workers=2)",
        "100",
        "info.id, 100, info.num_workers",
    ),
    "one shard for two workers": Row(
        "idle-workers",
        "class D(IterableDataset):\n    shards = [range(50), range(50, 100)][:{}]\n    def __iter__(self):\n"
        "        info = get_worker_info()\n"
        "        for shard in self.shards[info.id :: info.num_workers]: yield from shard\n"
        "def make(): return DataLoader(D(), 8, num_workers=2)",
        "1",
        "2",
    ),
    "a file that workers share": Row(
        "worker-dependent-samples",
        "class D(Data):\n    def __init__(self):\n        with open('/tmp/data', 'wb') as file:\n"
        "            for i in range(64): file.write(bytes([i]) * 65536)\n        self.file = {}\n"
        "    def __getitem__(self, i):\n        if self.file is None: self.file = open('/tmp/data', 'rb')\n"
        "        self.file.seek(i * 65536)\n        return float(sum(self.file.read(65536)))\n"
        "def make(): return DataLoader(D(), 8, num_workers=2)",
        "open('/tmp/data', 'rb')",
        "None",
    ),
    "a database that workers share": Row(
        "handle-in-init",
        "class D(Data):\n    def __init__(self): self.db = {}\n    def __getitem__(self, i):\n"
        "        if self.db is None: self.db = sqlite3.connect('/tmp/data.db')\n"
        "        return self.db.execute('select ?', (i,)).fetchone()[0]\n"
        "def make(): return DataLoader(D(), 8, num_workers=2)",
        "sqlite3.connect('/tmp/data.db')",
        "None",
    ),
    "an exception that torch can't raise again": Row(
        "sample-exception",
        "class Broken(Exception):\n    def __init__(self, a, b): super().__init__(a, b)\n"
        "class D(Data):\n    def __getitem__(self, i):\n        if i == {}: raise Broken(i, 'x')\n        return i\n"
        "def make(): return DataLoader(D(), 8, num_workers=2)",
        "63",
        "64",
    ),
    "a copy of the first epoch": Row(
        "stale-dataset",
        "class D(Data):\n    epoch = 0\n    def __len__(self): return 16\n"
        "    def set_epoch(self, epoch): self.epoch = epoch\n"
        "    def __getitem__(self, i): return self.epoch * 1000 + i\n"
        "def make(): return DataLoader(D(), 8, num_workers=2, persistent_workers={})",
        "True",
        "False",
    ),
    "a lambda that Python 3.14 can't send": Row(
        "unpicklable",
        "def double(x): return x * 2\n"
        "class D(Data):\n    def __init__(self): self.transform = {}\n"
        "    def __getitem__(self, i): return self.transform(i)\n"
        "def make(): return DataLoader(D(), 8, num_workers=2)",
        "lambda x: x * 2",
        "double",
    ),
    "batches that are kept": Row(
        "kept-batches",
        "kept = []\ndef keep(batch): kept.append({})\n"
        "class D(Data):\n    def __getitem__(self, i): return torch.full((4096,), i)\n"
        "def make(): return DataLoader(D(), 8, num_workers=2)",
        "batch",
        "batch.clone()",
    ),
}
# What torch has made right is nothing to report.
RIGHT = {
    "the global generator": "class D(Data):\n    def __getitem__(self, i): return np.random.randint(0, 10**6)\n"
    "def make(): return DataLoader(D(), 8, num_workers=2)",
    "plain": "class D(Data):\n    def __getitem__(self, i): return torch.full((3, 8, 8), i)\n"
    "def make(): return DataLoader(D(), 8, shuffle=True, num_workers=2, persistent_workers=True)",
}
Probed = Callable[[str], list[dict[str, Any]]]
SLOW_START = "TL720"  # of workers; on a busy machine it is so, though these scripts' epochs are meant to be short
WHOLE_WAY = "a generator on the dataset"


def by_default(rows: dict[str, Row], name: str) -> Any:
    """Return a row as a parameter, which is long but for one of them."""
    return pytest.param(rows[name], id=name, marks=[] if name == WHOLE_WAY else pytest.mark.long)


@pytest.fixture
def probed(trainlaunch: Runs, make_job: Callable[..., Path], torch_image: str, tmp_path: Path) -> Probed:
    """Return what probe finds of a script on Docker; every check has run."""

    def probe(script: str) -> list[dict[str, Any]]:
        (tmp_path / "train.py").write_text(IMPORTS + script + TRAIN)
        mount = {"type": "bind", "source": "./train.py", "target": "/job/train.py", "read_only": True}
        fields = {"shm_size": None, "data_loader": {}, "resources": {"cpus": 2, "memory": "2Gi"}, "mounts": [mount]}
        job = make_job(
            image=torch_image, command=["python3", "train.py"], image_entrypoint=[], working_dir="/job", **fields
        )
        done = trainlaunch("probe", str(job), "--batches", "4", "-o", "json")
        assert done.returncode in {0, 1}, done.stderr
        return found_in(done.stdout)

    return probe


def found_in(document: str) -> list[dict[str, Any]]:
    """Return the findings of probe's JSON."""
    read = json.loads(document)
    assert len(read["loaders"]) == 1
    assert [each for each in read["not_looked_for"] if not each.startswith("dataset at")] == []  # of what can't travel
    findings: list[dict[str, Any]] = read["findings"]
    return findings


@pytest.mark.parametrize("row", [by_default(ROWS, each) for each in ROWS])
def test_a_defect_is_found_at_its_loader_and_gone_with_its_fix(probed: Probed, row: Row) -> None:
    """With a code, the line of the script where the loader is built, and something to type."""
    script = row.script.replace("{}", row.wrong)
    found = [each for each in probed(script) if each["defect"] == row.defect]
    lines = (IMPORTS + script).split("\n")
    at = next(number for number, line in enumerate(lines, start=1) if "DataLoader(" in line)
    assert [each["place"] for each in found] == [f"train.py:{at}"]
    assert found[0]["code"].startswith("TL7")
    assert found[0]["message"]
    assert found[0]["fix"]
    assert [each for each in probed(row.script.replace("{}", row.right)) if each["code"] != SLOW_START] == []


@pytest.mark.long
@pytest.mark.parametrize("script", RIGHT.values(), ids=RIGHT)
def test_a_script_without_a_defect_is_silent(probed: Probed, script: str) -> None:
    """What is measured is what the installed torch does."""
    assert [each for each in probed(script) if each["code"] != SLOW_START] == []


@pytest.mark.long  # tests/local has it without torch
@pytest.mark.parametrize("name", ["a generator on the dataset", "one shard for two workers"])
def test_the_local_target_finds_the_same(docker_run: Runs, torch_image: str, tmp_path: Path, name: str) -> None:
    """As a process of a machine that has torch, which here is a container."""
    row = ROWS[name]
    for number, part in enumerate((row.wrong, row.right)):
        job = tmp_path / f"job-{number}"
        job.mkdir()
        (job / "train.py").write_text(IMPORTS + row.script.replace("{}", part) + TRAIN)
        fields = {"name": "own", "image": "none:1", "command": ["python3", "train.py"], "working_dir": "/job"}
        fields |= {"target": "local", "resources": {"cpus": 1, "memory": "1Gi"}, "data_loader": {}}
        fields["mounts"] = [{"type": "bind", "source": ".", "target": "/job"}]
        (job / "job.yaml").write_text(yaml.safe_dump(fields))
        mounts = [f"--volume={ROOT}:/checkout:ro", f"--volume={Path(yaml.__file__).parent}:{PACKAGES}/yaml:ro"]
        mounts += [f"--volume={job}:/work", "--workdir=/work", "--shm-size=1g", "--env=PYTHONPATH=/checkout/launcher"]
        argv = ["python3", "-m", "trainlaunch", "probe", "job.yaml", "--batches", "4", "-o", "json"]
        done = docker_run(*mounts, torch_image, *argv)
        assert done.returncode == (1 if number == 0 else 0), done.stderr
        assert (row.defect in {each["defect"] for each in found_in(done.stdout)}) == (number == 0)
