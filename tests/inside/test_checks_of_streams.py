"""Which iterable datasets give every worker all samples, or some workers none, with real torch."""

from __future__ import annotations

import pytest

from tests.inside.conftest import Inner
from tests.inside.probe_cases import told

pytestmark = pytest.mark.docker

SCRIPT = """
class Stream(IterableDataset):
    def __init__(self, n=100): self.n = n
    def __iter__(self): yield from range(self.n)

class Shared(Stream):
    def __iter__(self):
        info = get_worker_info()
        yield from range(info.id if info else 0, self.n, info.num_workers if info else 1)

class Shuffled(Stream):
    def __iter__(self): yield from torch.randperm(self.n).tolist()

class Equal(Stream):
    def __iter__(self):
        for _ in range(self.n): yield torch.zeros(4), 1

class Alternating(Stream):
    def __iter__(self):
        for i in range(self.n): yield i % 3

class Endless(Stream):
    def __iter__(self):
        while True: yield torch.rand(3)

class Seeded(Stream):
    def __iter__(self):
        rng = np.random.default_rng(0)
        while True: yield rng.random()

class Batches(Stream):
    def __iter__(self):
        for i in range(0, self.n, 4): yield torch.arange(i, i + 4)

class Shards(IterableDataset):
    def __init__(self, *shards): self.shards, self.num_shards = shards, len(shards)
    def __iter__(self):
        info = get_worker_info()
        for shard in self.shards[info.id :: info.num_workers] if info else self.shards: yield from shard

class Slice(Stream):
    def __init__(self): self.start, self.end = 0, 100
    def __iter__(self): return iter(range(self.start, self.end))

def slices(worker):
    dataset = get_worker_info().dataset
    dataset.start, dataset.end = worker * 25, worker * 25 + 25

class Map(Dataset):
    def __len__(self): return 3
    def __getitem__(self, i): return i

def case(name, dataset, **options):
    return name, DataLoader(dataset, **{"batch_size": 8, "num_workers": 2, **options}), {}

CASES = [
    case("unsharded", Stream()), case("small", Stream(10)), case("shuffled", Shuffled()), case("seeded", Seeded()),
    case("no workers", Stream(), num_workers=0), case("batches", Batches(), batch_size=None),
    case("shared", Shared()), case("equal", Equal()), case("alternating", Alternating()), case("endless", Endless()),
    case("slices", Slice(), num_workers=4, worker_init_fn=slices),
    case("tiny", Stream(3)), case("map", Map(), num_workers=4),
    case("one shard", Shards(range(100)), num_workers=3), case("two shards", Shards(range(9), range(9, 50))),
    case("one shard, no workers", Shards(range(100)), num_workers=0),
]
"""


def test_streams_that_repeat_and_workers_without_samples_are_found_and_no_others(inside: Inner) -> None:
    """By what two workers really yield; samples that are all alike tell nothing."""
    found = told(inside, SCRIPT, "unsharded-iterable", "idle-workers")
    repeating = [name for name, (unsharded, _) in found.items() if unsharded]
    assert repeating == ["unsharded", "small", "shuffled", "seeded", "no workers", "batches"]
    assert found["shuffled"][0] == [{"samples": 100, "ended": True, "num_workers": 2, "part": None}]
    assert found["seeded"][0][0]["ended"] is False
    assert found["seeded"][0][0]["samples"] >= 100
    assert {name: idle for name, (_, idle) in found.items() if idle} == {
        "one shard": [{"idle": [1, 2], "busy": 1, "num_workers": 3, "shards": 1}]
    }
