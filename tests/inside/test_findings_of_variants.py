"""Defects in other shapes than their first examples, each beside the same dataset with its fix, with real torch."""

from __future__ import annotations

import pytest

from tests.inside.conftest import Inner
from tests.inside.test_findings_of_datasets import found

pytestmark = pytest.mark.docker

PAIRS = """
import collections, dataclasses, gzip, logging, pickle, queue, sys, tarfile, tempfile
from torch.utils.data import ChainDataset, SubsetRandomSampler

class Wrapper(Base):
    def __init__(self, inner): self.inner = inner
    def __getattr__(self, name):
        if name == "inner": raise AttributeError(name)
        return getattr(self.inner, name)
    def __getitem__(self, i): return self.inner[i]
"""


def silent(told: dict[str, dict[str, object]], fixed: str = "fixed") -> dict[str, object]:
    """Return what was found of cases whose name says that they are fixed."""
    return {name: each for name, each in told.items() if fixed in name and each}


HANDLES = """
DB, NONE = sqlite3.connect("rows.db"), None
def of_database(i): return DB.execute("select value from rows where i = ?", (i,)).fetchone()[0]
class Global(Base):
    def __getitem__(self, i): return DB.execute("select value from rows where i = ?", (i,)).fetchone()[0]
class ByHelper(Base):
    def __getitem__(self, i): return of_database(i)
class GlobalLate(Base):
    def __getitem__(self, i):
        global NONE
        if NONE is None: NONE = sqlite3.connect("rows.db")
        return NONE.execute("select value from rows where i = ?", (i,)).fetchone()[0]

class OfClass(Base):
    db = sqlite3.connect("rows.db")
    def __getitem__(self, i): return self.db.execute("select value from rows where i = ?", (i,)).fetchone()[0]
class OfClassLate(Base):
    db = None
    def __getitem__(self, i):
        if type(self).db is None: type(self).db = sqlite3.connect("rows.db")
        return self.db.execute("select value from rows where i = ?", (i,)).fetchone()[0]

class Closure(Base):
    def __init__(self):
        db = sqlite3.connect("rows.db")
        self.read = lambda i: db.execute("select value from rows where i = ?", (i,)).fetchone()[0]
    def __getitem__(self, i): return self.read(i)

class Store:
    __slots__ = ("parts",)
    def __init__(self): self.parts = {"train": [sqlite3.connect("rows.db")]}
class Deep(Base):
    def __init__(self): self.store = Store()
    def __getitem__(self, i): return self.store.parts["train"][0].execute("select ?", (i,)).fetchone()[0]

class Tar(Base):
    def __init__(self, at_once=True):
        with tarfile.open("some.tar", "w") as made:
            for i in range(64): made.add(f"picture{i}.bin")
        self.tar = tarfile.open("some.tar") if at_once else None
    def __getitem__(self, i):
        if self.tar is None: self.tar = tarfile.open("some.tar")
        return torch.frombuffer(bytearray(self.tar.extractfile(f"picture{i}.bin").read()), dtype=torch.uint8)

class Gzip(Base):
    def __init__(self, at_once=True):
        with gzip.open("some.gz", "wb") as made: made.write(os.urandom(64 * 100))
        self.file = gzip.open("some.gz") if at_once else None
    def __getitem__(self, i):
        if self.file is None: self.file = gzip.open("some.gz")
        self.file.seek(i * 100)
        return torch.frombuffer(bytearray(self.file.read(100)), dtype=torch.uint8)

class Mixed:
    def __init__(self, at_once=True): self.db = sqlite3.connect("rows.db") if at_once else None
    def __call__(self, samples):
        if self.db is None: self.db = sqlite3.connect("rows.db")
        return self.db.execute("select ?", (len(samples),)).fetchone()[0]

class Plain(Base):
    def __getitem__(self, i): return i

class Says(Base):
    def __init__(self): self.out, self.log, self.module_lock = sys.stderr, logging.getLogger("some"), None
    def __getitem__(self, i):
        if i < 0: self.out.write("never")
        return i

CASES = {
    "global": lambda: loader(Global()), "helper": lambda: loader(ByHelper()), "class": lambda: loader(OfClass()),
    "closure": lambda: loader(Closure()), "deep": lambda: loader(Deep()), "tar": lambda: loader(Tar()),
    "gzip": lambda: loader(Gzip()), "collate": lambda: loader(Plain(), collate_fn=Mixed()),
    "spawned": lambda: loader(Plain(), collate_fn=Mixed(), multiprocessing_context="spawn"),
    "global, spawned, fixed": lambda: loader(Global(), multiprocessing_context="spawn"),
    "wrapped": lambda: loader(ConcatDataset([Subset(Wrapper(Gzip()), range(64)), Plain()])),
    "global, fixed": lambda: loader(GlobalLate()), "class, fixed": lambda: loader(OfClassLate()),
    "tar, fixed": lambda: loader(Tar(False)), "gzip, fixed": lambda: loader(Gzip(False)),
    "collate, fixed": lambda: loader(Plain(), collate_fn=Mixed(False)), "streams, fixed": lambda: loader(Says()),
}
"""


def test_handles_of_modules_classes_closures_and_libraries(inside: Inner) -> None:
    """Wherever reading finds them: a module's, a helper's, a class's name, slots, collate_fn, parts of parts."""
    told = found(inside, PAIRS + HANDLES)
    # A stream of the process's can't be pickled: that is none of its workers' business under fork.
    assert set(told["streams, fixed"]) <= {"unpicklable"}
    told["streams, fixed"].clear()
    assert silent(told) == {}
    paths = {name: each.get("handle-in-init", {}).get("path") for name, each in told.items() if "fixed" not in name}
    assert paths == {
        **{"global": "DB", "helper": "DB", "class": "OfClass.db", "closure": "dataset.read.<db>"},
        **{"deep": "dataset.store.parts['train'][0]", "tar": "dataset.tar", "gzip": "dataset.file"},
        **{"collate": "collate_fn.db", "spawned": "collate_fn.db", "wrapped": "dataset.datasets[0].dataset.inner.file"},
    }


SAMPLES = """
@dataclasses.dataclass
class Sample:
    image: object
    label: object
def of_class(samples):
    return torch.stack([each.image for each in samples]), torch.tensor([each.label for each in samples])
def with_default(samples):
    labels = [-1 if each.label is None else each.label for each in samples]
    return torch.stack([each.image for each in samples]), torch.tensor(labels)
class Unlabelled(Base):
    def __getitem__(self, i): return Sample(torch.rand(20), None if i == 63 else 1)
class Mapping(collections.UserDict): pass
class NoMask(Base):
    def __getitem__(self, i): return Mapping(ids=torch.rand(20), mask=None if i == 0 else 1)
def of_mapping(samples): return torch.stack([each["ids"] for each in samples if each["mask"] is not None])
class Black(Base):
    def __getitem__(self, i): return Sample(torch.zeros(3, 8, 8) if i == 0 else torch.rand(3, 8, 8), i)
class Unwritten(Base):
    def __init__(self): self.records = [bytes(100)] + [os.urandom(100) for _ in range(63)]
    def __getitem__(self, i): return self.records[i]
class Exits(Base):
    def __getitem__(self, i):
        if i == 63: sys.exit("no such picture")
        return torch.rand(20)
class Odd(Base):  # as long as one of its lists says, and the other is shorter
    def __init__(self): self.x, self.y = torch.rand(64, 20), [0] * 63
    def __getitem__(self, i): return self.x[i], self.y[i]
class Pairs(Base):
    def __getitem__(self, key):
        index, size = key
        return torch.rand(size)
class Scales:
    def __iter__(self): return iter([[(i, 20), (i + 1, 20)] for i in range(0, 60, 2)])
    def __len__(self): return 30
class OfSizes(BatchSampler):
    def __iter__(self): return ([(i, 20) for i in batch] for batch in super().__iter__())
def exactly_four(samples):
    assert len(samples) == 4 and samples[0][1] is None
    return torch.stack([each[0] for each in samples])
class AlwaysNone(Base):
    def __getitem__(self, i): return torch.rand(20), None

CASES = {
    "class": lambda: loader(Unlabelled(), collate_fn=of_class), "mapping": lambda: loader(NoMask()),
    "black": lambda: loader(Black(), collate_fn=of_class), "exits": lambda: loader(Exits()),
    "unwritten": lambda: loader(Unwritten()),
    "odd": lambda: loader(ConcatDataset([Odd()])), "shorter": lambda: loader(Odd(), sampler=range(64)),
    "class, fixed": lambda: loader(Unlabelled(), collate_fn=with_default),
    "mapping, fixed": lambda: loader(NoMask(), collate_fn=of_mapping),
    "sizes, fixed": lambda: DataLoader(Pairs(), batch_sampler=Scales(), num_workers=2),
    "own sampler, fixed": lambda: DataLoader(Pairs(), num_workers=2,
        batch_sampler=OfSizes(SequentialSampler(range(64)), 4, False)),
    "odd, fixed": lambda: loader(Subset(Odd(), range(63))),
    "random part, fixed": lambda: loader(Odd(), sampler=SubsetRandomSampler(range(60))),
}
"""


def test_samples_of_classes_and_mappings_and_indices_of_batch_samplers(inside: Inner) -> None:
    """None and zeros in dataclasses and mappings; what a batch_sampler's own keys read is read with those."""
    told = found(inside, PAIRS + SAMPLES)
    assert silent(told) == {}
    assert {name: set(each) for name, each in told.items() if "fixed" not in name} == {
        **{"class": {"none-sample"}, "mapping": {"none-sample"}, "black": {"zero-sample"}},
        "unwritten": {"zero-sample"},
        **{"exits": {"sample-exception"}, "odd": {"sample-exception"}, "shorter": {"sample-exception"}},
    }
    assert told["class"]["none-sample"]["path"] == "sample.label"
    assert told["exits"]["sample-exception"]["error"] == "SystemExit"


MEMORY = """
PATHS = [f"/data/train/images/{i:09d}.jpg" for i in range(400_000)]
class Global(Base):
    def __getitem__(self, i): return len(PATHS[i])
class OfClass(Base):
    rows = [{"path": f"/data/{i}", "label": i} for i in range(150_000)]
    def __getitem__(self, i): return self.rows[i]["label"]
class Unrelated(Base):
    def __getitem__(self, i): return i
class Placeholders(Base):
    def __init__(self): self.cache = [None] * 64
    def __getitem__(self, i):
        if self.cache[i] is None: self.cache[i] = torch.randn(1000)
        return self.cache[i]
class Reader:
    def __init__(self): self.known = collections.OrderedDict()
    def read(self, i):
        if i not in self.known: self.known[i] = np.random.rand(1000)
        return self.known[i]
class InReader(Base):
    def __init__(self): self.reader = Reader()
    def __getitem__(self, i): return self.reader.read(i)
class Bounded(Reader):
    def read(self, i):
        while len(self.known) > 4: self.known.popitem(last=False)
        return super().read(i)
class InBounded(InReader):
    def __init__(self): self.reader = Bounded()
@functools.lru_cache(maxsize=None)
def loaded(i): return torch.randn(1000)
class Remembered(Base):
    def __getitem__(self, i): return loaded(i)
class OfClassCache(Base):
    cache = {}
    def __getitem__(self, i): return self.cache.setdefault(i, torch.randn(1000))
class Shared(Base):
    def __init__(self): self.rows, self.done = torch.zeros(64, 1000).share_memory_(), torch.zeros(64).share_memory_()
    def __getitem__(self, i):
        if not self.done[i]: self.rows[i], self.done[i] = torch.randn(1000), 1
        return self.rows[i]

CASES = {
    "global": lambda: loader(Global(), num_workers=4), "class": lambda: loader(OfClass(), num_workers=4),
    "placeholders": lambda: loader(Placeholders()), "reader": lambda: loader(Subset(InReader(), range(64))),
    "function": lambda: loader(Remembered()), "class cache": lambda: loader(Wrapper(OfClassCache())),
    "unrelated, fixed": lambda: loader(Unrelated(), num_workers=4), "bounded, fixed": lambda: loader(InBounded()),
    "shared, fixed": lambda: loader(Shared()),
    "persistent, fixed": lambda: loader(Placeholders(), persistent_workers=True),
}
"""


def test_memory_of_modules_and_classes_and_caches_of_parts(inside: Inner) -> None:
    """Lists of a module or a class that reading uses, and caches in lists of None, readers, functions and classes."""
    told = found(inside, PAIRS + MEMORY, ("--memory=1g",))
    assert silent(told) == {}
    assert {name: set(each) for name, each in told.items() if "fixed" not in name} == {
        **{"global": {"copy-on-write-growth"}, "class": {"copy-on-write-growth"}},
        **{name: {"cache-per-rank"} for name in ("placeholders", "reader", "function", "class cache")},
    }
    assert told["global"]["copy-on-write-growth"]["path"] == "PATHS"
    assert told["reader"]["cache-per-rank"]["path"] == "dataset.dataset.reader.known"


PICKLES = """
def made():
    class Local(Base):
        def __getitem__(self, i): return i
    return Local()
class Rows(Base):
    def __init__(self): self.rows = (each for each in range(64))
    def __getitem__(self, i): return i
class Step(Base):
    def __init__(self, step): self.steps = torch.nn.Sequential() if step is None else {"train": [step]}
    def __getitem__(self, i): return i
class Keeps(Base):
    def __init__(self): self.value, self.lock = multiprocessing.Value("i"), multiprocessing.Lock()
    def __getitem__(self, i): return i + self.value.value
class Plain(Base):
    def __getitem__(self, i): return i
class Batches:
    def made(self, samples): return samples

CASES = {
    "local class": lambda: loader(made()), "generator": lambda: loader(Rows()),
    "in a dictionary": lambda: loader(ConcatDataset([Step(lambda x: x)])),
    "partial": lambda: loader(Plain(), collate_fn=functools.partial(lambda factor, samples: samples, 2)),
    "init": lambda: loader(Plain(), worker_init_fn=lambda worker: None),
    "steps, fixed": lambda: loader(ConcatDataset([Step(None)])),
    "partial, fixed": lambda: loader(Plain(), collate_fn=functools.partial(as_list)),
    "shared, fixed": lambda: loader(Keeps()),
    "method, fixed": lambda: loader(Plain(), collate_fn=Batches().made),
}
"""


def test_what_cannot_be_pickled_in_other_shapes(inside: Inner) -> None:
    """Classes and generators of a function, lambdas in containers and partials; what processes share is fine."""
    told = found(inside, PAIRS + PICKLES)
    assert silent(told) == {}
    paths = {name: each["unpicklable"]["path"] for name, each in told.items() if "fixed" not in name}
    assert paths == {
        **{"local class": "dataset", "generator": "dataset.rows", "partial": "collate_fn.func"},
        **{"in a dictionary": "dataset.datasets[0].steps['train'][0]", "init": "worker_init_fn"},
    }
