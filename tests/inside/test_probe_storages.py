"""What probe weighs of a batch is what /dev/shm then holds of it, to the page."""

from __future__ import annotations

import json

import pytest

from tests.inside.conftest import Inner

pytestmark = pytest.mark.docker

# Each value goes through a real worker; what the file system holds afterwards is the truth.
SCRIPT = """
import collections, dataclasses, gc, json, os, threading, numpy, torch
from torch.utils.data import DataLoader, Dataset
from trainlaunch_inside.probe.base.transfer import weigh

Pair = collections.namedtuple("Pair", "x y")

@dataclasses.dataclass
class Batch:
    image: torch.Tensor
    name: str

class Slotted:
    __slots__ = ("x",)
    def __init__(self, x): self.x = x

class Sub(torch.Tensor): pass

def ramp(*shape): return torch.arange(float(torch.Size(shape).numel())).reshape(shape)

VALUES = {
    "one": lambda: ramp(1000, 1000),
    "one byte over a page": lambda: torch.zeros(4097, dtype=torch.uint8),
    "a slice of much": lambda: ramp(2000, 1000)[:10],
    "two views": lambda: (lambda t: (t[:, :-1], t[:, 1:]))(ramp(100, 1000)),
    "expanded": lambda: torch.zeros(1, 1000).expand(5000, 1000),
    "sparse rows": lambda: ramp(300, 300).to_sparse_csr(),
    "sparse": lambda: torch.eye(3000).to_sparse(),
    "nested": lambda: torch.nested.nested_tensor([ramp(500, 10), ramp(900, 10)]),
    "list": lambda: [ramp(3, 1000) for _ in range(50)],
    "mapping in mapping": lambda: {"a": {"b": ramp(10, 1000), "c": [ramp(7)]}},
    "named tuple": lambda: Pair(ramp(5000), ramp(9000)),
    "data class": lambda: Batch(ramp(5000), "n"),
    "slots": lambda: Slotted(ramp(50000)),
    "subclass": lambda: ramp(50000).as_subclass(Sub),
    "parameter": lambda: torch.nn.Parameter(ramp(50000)),
    "empty": lambda: torch.zeros(0),
    "array": lambda: numpy.zeros((1000, 1000)),
    "texts": lambda: ["a"] * 1000,
}

class One(Dataset):
    def __init__(self, name): self.name = name
    def __len__(self): return 1
    def __getitem__(self, i): return VALUES[self.name]()

def used():
    gc.collect()
    for each in threading.enumerate():  # a queue's own thread holds its semaphores, which are in /dev/shm too
        if each.name == "QueueFeederThread":
            each.join(60)
    gc.collect()
    found = os.statvfs("/dev/shm")
    return (found.f_blocks - found.f_bfree) * found.f_frsize

def same(batch): return batch

if __name__ == "__main__":
    weighed = {}
    for name, make in VALUES.items():
        before = used()
        batches = list(DataLoader(One(name), batch_size=None, num_workers=1, collate_fn=same))
        weight = weigh(make())
        weighed[name] = [weight.pages, used() - before, weight.pickled]
        del batches
    print(json.dumps(weighed))
"""


def test_weights_are_what_a_worker_puts_into_dev_shm(inside: Inner) -> None:
    """Slices drag whole storages, views share one, arrays and texts go through a pipe."""
    ran = inside(SCRIPT, seconds=170)
    weighed = json.loads(ran.out)
    nested = weighed.pop("nested")
    assert {name: each for name, each in weighed.items() if each[0] != each[1]} == {}
    assert nested[:2] == [69_632, 0]  # on its way only: the script's process gets a copy
    assert weighed["a slice of much"][0] == 8_003_584
    assert weighed["two views"][0] == 401_408
    assert (weighed["array"][0], weighed["array"][2] > 8_000_000) == (0, True)
    assert sum(pages > 0 for pages, _, _ in weighed.values()) == 14
