"""Probe sees loaders of every kind: streams, whole batches, other libraries' classes, loaders in loaders."""

from __future__ import annotations

import pytest

from tests.inside.conftest import NO_CHECKS, Inner
from tests.inside.test_probe_loops import DATA, MIB, loader, loop

pytestmark = pytest.mark.docker

KINDS = (
    DATA
    + """
import dataclasses, json, numpy

class Stream(IterableDataset):
    def __iter__(self):
        for i in range(20): yield torch.full((2**18,), float(i))

@dataclasses.dataclass
class Batch:
    image: torch.Tensor
    names: list

class Mapped(Dataset):
    def __len__(self): return 40
    def __getitem__(self, i):
        if i >= 40: raise IndexError
        return {"image": torch.full((2**16,), float(i)), "label": i, "name": "n"}

class Inner(Dataset):
    "A dataset that reads through a loader of its own."
    def __len__(self): return 20
    def __getitem__(self, i):
        return sum(batch.mean() for batch in DataLoader(Numbers(4, 2**10), batch_size=2)) + torch.zeros(2**18)

def slices(samples): return torch.stack(samples + samples)[: len(samples)]
def arrays(samples): return numpy.stack([each.numpy() for each in samples])
def batch(samples): return Batch(torch.stack(samples), ["n"] * len(samples))

class Again(DataLoader):
    "A loader with an __iter__ of its own."
    def __iter__(self):
        for batch in super().__iter__(): yield batch

LOADERS = {
    "stream": lambda: DataLoader(Stream(), batch_size=2, num_workers=1),
    "stream of batches": lambda: DataLoader(Stream(), batch_size=None, num_workers=1),
    "no workers": lambda: DataLoader(Numbers(20), batch_size=2),
    "slices": lambda: DataLoader(Numbers(20), batch_size=2, num_workers=2, collate_fn=slices),
    "arrays": lambda: DataLoader(Numbers(20), batch_size=2, num_workers=2, collate_fn=arrays),
    "class": lambda: DataLoader(Numbers(20), batch_size=2, num_workers=2, collate_fn=batch),
    "list": lambda: DataLoader(Numbers(20), batch_size=2, num_workers=2, collate_fn=list),
    "mapping": lambda: DataLoader(Mapped(), batch_size=4, num_workers=2),
    "own iteration": lambda: Again(Numbers(20), batch_size=2, num_workers=2),
    "loader in workers": lambda: DataLoader(Inner(), batch_size=2, num_workers=2),
    "loader in the script": lambda: DataLoader(Inner(), batch_size=2),
}

def first_tensor(batch):
    if isinstance(batch, Batch): return batch.image
    if isinstance(batch, dict): return batch["image"]
    if isinstance(batch, list): return batch[0]
    return torch.as_tensor(batch)

def look(make):
    for batch in make(): step(first_tensor(batch).float())

if __name__ == "__main__":
    for name, make in LOADERS.items(): look(make)
"""
)
STORAGES: dict[str, list[int]] = {
    "stream": [2 * MIB],
    "stream of batches": [MIB],
    "no workers": [2 * MIB],
    "slices": [4 * MIB],
    "arrays": [],
    "class": [2 * MIB],
    "list": [MIB, MIB],
    "mapping": [MIB, 32],
    "own iteration": [2 * MIB],
    "loader in workers": [2 * MIB],
    "loader in the script": [2 * MIB],
}


def test_loaders_of_every_kind_are_measured(inside: Inner) -> None:
    """One after the other in one script; loaders that a dataset builds for itself are none of the script's."""
    ran = inside(KINDS, batches=6, through=True, seconds=170)
    assert (ran.code, ran.err, ran.of("off")) == (0, "", [])
    seen = [loader(ran, number) for number in range(len(ran.of("loader")))]
    assert {name: each["storages"] for name, each in zip(STORAGES, seen, strict=True)} == STORAGES
    assert all(each["count"] in range(5, 7) and each["trains"] is (number == 0) for number, each in enumerate(seen))
    arrays = seen[list(STORAGES).index("arrays")]
    assert arrays["pickled_bytes"] > 2 * MIB
    assert [each["iterable"] for each in seen[:3]] == [True, True, False]


def test_tensors_of_a_dataset_are_measured(inside: Inner) -> None:
    """What spawn would move to /dev/shm; arrays go through a pipe, and under fork nothing moves."""
    script = loop("step(batch)").replace(
        "    loader =", "    data = Numbers(24)\n    data.held = [torch.zeros(2**18), torch.zeros(3)]\n    loader ="
    )
    ran = inside(script.replace("DataLoader(Numbers(24)", "DataLoader(data"), batches=4, values=NO_CHECKS)
    assert {name: ran.one("dataset")[name] for name in ("tensor_bytes", "tensors")} == {
        **{"tensor_bytes": MIB + 4096, "tensors": 2},
    }


THREADED = """
    import queue, threading
    def ahead(loader):
        ready = queue.Queue(2)
        def fill():
            for batch in loader: ready.put(batch)
            ready.put(None)
        threading.Thread(target=fill, daemon=True).start()
        while (batch := ready.get()) is not None: yield batch
"""


def test_batches_that_a_thread_fetches_ahead_are_held(inside: Inner) -> None:
    """Two wait in its queue, one in its hand, one comes; the end is in that thread."""
    script = loop("time.sleep(0.2)\nstep(batch)").replace("import collections", "import collections, time")
    script = script.replace("in loader", "in ahead(loader)").replace("    kept", f"{THREADED}    kept")
    ran = inside(script, batches=10, values=NO_CHECKS)
    assert (ran.code, ran.one("end")["reason"]) == (0, "batches")
    assert loader(ran)["batches_held"] in {4, 5, 6}  # a most that came up once is given more


def test_a_batch_that_cannot_be_pickled_says_so(inside: Inner) -> None:
    """Without workers it works, and nothing could be measured."""
    script = loop("step(batch[0])", num_workers=0).replace(
        "    loader", "    def pair(b): return torch.stack(b), lambda: 0\n    loader", 1
    )
    ran = inside(script.replace("num_workers=0", "num_workers=0, collate_fn=pair"), batches=4, values=NO_CHECKS)
    seen = loader(ran)
    assert (ran.code, seen["count"], seen["storages"]) == (0, 4, None)
    assert "pickle" in seen["problem"]


def test_warnings_as_errors_change_nothing(inside: Inner) -> None:
    """Nothing of ours warns, also where the script's own object says what class it is."""
    command = ("python", "-W", "error::FutureWarning", "-W", "error::DeprecationWarning", "train.py")
    ran = inside(loop("step(batch)"), batches=4, command=command)
    assert (ran.code, ran.err, ran.of("off")) == (0, "", [])


def test_a_hook_that_fails_is_off_and_the_job_goes_on(inside: Inner) -> None:
    """As where a torch of the future names its parts differently."""
    script = loop("step(batch)", num_workers=0).replace("    kept", "    del loader.worker_init_fn\n    kept")
    ran = inside(script, batches=4)
    assert (ran.code, ran.out) == (0, "to the end\n")
    assert ran.err.startswith("trainlaunch: probe is off in process ")
    assert ran.err.count("\n") == 1


STATEFUL = f"""
{DATA}
from torchdata.stateful_dataloader import StatefulDataLoader
if __name__ == "__main__":
    loader = StatefulDataLoader(Numbers(24), batch_size=2, num_workers=2)
    for epoch in range(2):
        for batch in loader: step(batch)
"""


@pytest.mark.libraries
def test_a_stateful_loader_is_seen(inside: Inner, examples_image: str) -> None:
    """It never calls DataLoader.__init__: its place is where it is first iterated."""
    ran = inside(STATEFUL, batches=8, image=examples_image)
    seen = loader(ran)
    assert (seen["storages"], seen["count"], seen["batches_held"]) == ([2 * MIB], 8, 2)
    assert seen["class"].endswith("StatefulDataLoader")
    assert seen["at"].startswith("train.py:")


def test_a_loader_over_a_dataset_that_was_read_is_another_where_it_batches_otherwise(inside: Inner) -> None:
    """Train and val over the same tensors; a second loader that is alike is a library's copy, and none."""
    script = f"""
{DATA}
if __name__ == "__main__":
    numbers = Numbers(24)
    train = DataLoader(numbers, batch_size=2, shuffle=True)
    copy, val = DataLoader(numbers, batch_size=2, shuffle=True), DataLoader(numbers, batch_size=4)
    for batch in train: step(batch)
"""
    ran = inside(script, batches=4, values=NO_CHECKS)
    assert [each["batch_size"] for each in ran.of("loader")] == [2, 4]
    assert [each["storages"] for each in ran.of("batches")] == [[2 * MIB], [4 * MIB]]
    assert [each["epoch_batches"] for each in ran.of("loader")] == [12, 6]
    assert [each["kind"] for each in ran.records if each["kind"].endswith("end")] == ["batches-end", "end"]
