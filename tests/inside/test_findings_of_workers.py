"""Whole scripts with real torch under probe: workers that hang, threads at the fork, kept batches, stale datasets."""

from __future__ import annotations

import pytest

from tests.inside.conftest import Inner, Ran
from tests.inside.test_findings_of_datasets import DEFECTS

pytestmark = pytest.mark.docker

IMPORTS = """
import threading, time
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset
weight = torch.zeros(1, requires_grad=True)
def step(batch): (weight * batch.float().mean()).sum().backward()
"""
# Holds a lock nearly always, as a client library's thread may.
LOCKED = """
lock = threading.Lock()
def report():
    while True:
        with lock: time.sleep(0.05)
class Locked(Dataset):
    def __len__(self): return 8
    def __getitem__(self, i):
        with lock: return i
if __name__ == "__main__":
    threading.Thread(target=report, name="reporter", daemon=True).start()
    time.sleep(0.02)
    for batch in DataLoader(Locked(), num_workers=2, STATED): step(batch)
"""


def defects(ran: Ran) -> set[str]:
    """Return those of DEFECTS that were found; none of their checks may be off."""
    assert [each for each in ran.of("off") if each["defect"] in DEFECTS] == []
    return {each["defect"] for each in ran.of("finding")} & set(DEFECTS)


def test_a_worker_that_hangs_in_a_lock_is_shown_with_its_stack(inside: Inner) -> None:
    """The loader's own timeout ends the script, with its own exit code; the thread that had the lock is named."""
    script = IMPORTS + LOCKED
    ran = inside(script.replace("STATED", "timeout=5"))
    assert (ran.code, defects(ran)) == (1, {"worker-hang", "threads-before-fork"})
    assert {each["reason"] for each in ran.of("off")} == {"it starts workers, and this loader's hang"}
    hang, threads = ran.findings("worker-hang")[0], ran.findings("threads-before-fork")[0]
    line = script[: script.index("with lock: return i")].count("\n") + 1
    assert (hang["at"], hang["function"]) == (f"train.py:{line}", "__getitem__")
    assert (hang["waited"], hang["batches"], hang["threads"], hang["worker"]) == (5.0, 0, ["reporter"], 0)
    assert hang["stack"][0] == f"train.py:{line} in __getitem__"
    assert [each["name"] for each in threads["threads"]] == ["reporter"]
    assert threads["threads"][0]["at"].startswith("train.py:")


def test_a_worker_that_hangs_until_the_probe_ends_is_shown_too(inside: Inner) -> None:
    """Most loaders have no timeout: the seconds of the probe end the script."""
    sooner = (
        "from trainlaunch_inside.probe import ending\nending._GRACE = 0.5\n"
        "from trainlaunch_inside.probe.checks import worker_failures\nworker_failures.MAX_WAIT_SECONDS = 1.0\n"
    )
    ran = inside((IMPORTS + sooner + LOCKED).replace("STATED", ""), seconds=2)
    assert (ran.code, ran.one("end")["reason"]) == (0, "seconds")
    assert defects(ran) == {"worker-hang", "threads-before-fork"}
    hang = ran.findings("worker-hang")[0]
    assert hang["waited"] >= 1
    assert hang["function"] == "__getitem__"


@pytest.mark.long
def test_a_forkserver_neither_hangs_nor_has_threads(inside: Inner) -> None:
    """The way out that the findings name."""
    ran = inside((IMPORTS + LOCKED).replace("STATED", 'timeout=60, multiprocessing_context="forkserver"'))
    assert (ran.code, defects(ran)) == (0, set())


@pytest.mark.parametrize(
    "thread",
    [
        "pass",
        "other = iter(DataLoader(TensorDataset(torch.zeros(8, 1)), num_workers=1))",
        "import concurrent.futures as f\npool = f.ThreadPoolExecutor(2)\npool.submit(len, 'a').result()",
        "torch.randn(600, 600) @ torch.randn(600, 600)",
    ],
    ids=["none", "another loader's", "idle pool", "OpenMP"],
)
def test_threads_of_libraries_that_stand_a_fork_are_no_finding(inside: Inner, thread: str) -> None:
    """Those of torch, of queues, and of a pool that waits for work."""
    body = "for (batch,) in DataLoader(TensorDataset(torch.randn(64, 20)), 8, num_workers=2): step(batch)"
    ran = inside(f"{IMPORTS}\n{thread}\n{body}\n", env={"OMP_NUM_THREADS": "2"})
    assert (ran.code, defects(ran)) == (0, set())


KEPT = """
def run(loader):
    outputs = []
    for (batch,) in loader:
        step(batch)
        KEEP
    return len(outputs)
class Model:
    def __init__(self): self.outputs = []
    def run(self, loader):
        for (batch,) in loader:
            step(batch)
            self.outputs.append({"x": batch})
if __name__ == "__main__":
    loader = DataLoader(TensorDataset(torch.randn(640, 300)), 16, num_workers=2)
    CALL
"""


@pytest.mark.parametrize(
    ("keep", "call", "name"),
    [
        ("outputs.append(batch)", "run(loader)", "outputs"),
        ("outputs.append(batch.numpy())", "run(loader)", ""),
        ("pass", "Model().run(loader)", "self.outputs"),
        ("pass", "step(torch.cat([batch for (batch,) in loader]))", ""),
        ("outputs.append(batch.clone())", "run(loader)", None),
        ("outputs = [*outputs, batch][-3:]", "run(loader)", None),
        ("outputs.append(float(batch.mean()))", "run(loader)", None),
    ],
    ids=["list", "arrays", "attribute", "comprehension", "clone", "window", "numbers"],
)
@pytest.mark.parametrize("batches", [32, pytest.param(100, marks=pytest.mark.long)], ids=["stopped", "whole epoch"])
def test_batches_that_are_kept_are_found_by_what_keeps_them(
    inside: Inner, keep: str, call: str, name: str | None, batches: int
) -> None:
    """With the variable's name where there is one; copies, numbers and a window of the last few are silent."""
    ran = inside(IMPORTS + KEPT.replace("KEEP", keep).replace("CALL", call), batches=batches)
    assert ran.code == 0, ran.err
    assert defects(ran) == (set() if name is None else {"kept-batches"})
    if name is not None:
        kept = ran.findings("kept-batches")[0]
        assert (kept["name"], kept["bytes"]) == (name, 16 * 300 * 4)
        assert kept["held"] >= 0.9 * kept["batches"] >= 28


def test_a_part_of_every_batch_that_is_kept_is_found_by_its_files(inside: Inner) -> None:
    """The labels alone, for a metric: little of the bytes, and a file, a page and a descriptor of each batch."""
    script = """
if __name__ == "__main__":
    loader = DataLoader(TensorDataset(torch.randn(640, 300), torch.arange(640)), 16, num_workers=2)
    labels = []
    for x, y in loader:
        step(x)
        labels.append(y)
"""
    ran = inside(IMPORTS + script)
    (kept,) = ran.findings("kept-batches")
    assert (kept["name"], kept["held"], kept["batches"]) == ("labels", 32, 32)
    assert 32 <= kept["storages"] <= 34
    assert kept["held_bytes"] < 32 * 3 * 4096 < kept["bytes"] * 32
    copied = inside(IMPORTS + script.replace("append(y)", "append(y.clone())"))
    assert defects(copied) == set()


def test_a_dataset_that_the_script_changes_under_persistent_workers(inside: Inner) -> None:
    """Both values; without persistent workers each epoch gets the new one."""
    script = """
class Epochs(Dataset):
    def __init__(self): self.level = 0
    def __len__(self): return 8
    def __getitem__(self, i): return float(self.level * 1000 + i)
if __name__ == "__main__":
    dataset = Epochs()
    loader = DataLoader(dataset, 2, num_workers=2, persistent_workers=KEPT)
    for dataset.level in range(3):
        for batch in loader: step(batch)
"""
    ran = inside(IMPORTS + script.replace("KEPT", "True"))
    assert (ran.code, defects(ran)) == (0, {"stale-dataset"})
    stale = ran.findings("stale-dataset")[0]
    assert (stale["path"], stale["first"], stale["now"], stale["method"]) == ("dataset.level", 0, 2, "")
    assert defects(inside(IMPORTS + script.replace("KEPT", "False"))) == set()


def test_the_true_exception_of_a_script_that_dies_of_it(inside: Inner) -> None:
    """Its own traceback and exit code stay; the record has what a worker's copy loses."""
    script = """
class Two(Exception):
    def __init__(self, a, b): super().__init__(f"{a} {b}")
class Broken(Dataset):
    def __len__(self): return 2
    def __getitem__(self, i): raise Two(i, "x")
if __name__ == "__main__":
    for batch in DataLoader(Broken(), num_workers=1): step(batch)
"""
    ran = inside(IMPORTS + script)
    assert ran.code == 1
    assert "Traceback" in ran.err
    assert defects(ran) == {"sample-exception"}
    raised = ran.findings("sample-exception")[0]
    assert [raised[each] for each in ("index", "error", "message", "raised_again")] == [0, "Two", "0 x", False]
