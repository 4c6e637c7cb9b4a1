"""Checks of probe on datasets with real torch: what is found in those with a defect, and that the others are silent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.inside.conftest import Inner

pytestmark = pytest.mark.docker

DEFECTS = (
    *("unpicklable", "handle-in-init", "threads-before-fork", "sample-exception", "none-sample", "zero-sample"),
    *("worker-hang", "copy-on-write-growth", "in-memory-dataset", "cache-per-rank", "kept-batches", "stale-dataset"),
)
START = """
import functools, json, mmap, multiprocessing, os, pathlib, socket, sqlite3, threading, zipfile
import numpy as np
import torch
from torch.utils.data import BatchSampler, ConcatDataset, DataLoader, Dataset, IterableDataset, SequentialSampler
from torch.utils.data import Subset, TensorDataset, WeightedRandomSampler, default_collate, get_worker_info
from torch.utils.data import random_split

class Base(Dataset):
    def __len__(self): return 64

def loader(dataset, **stated): return DataLoader(dataset, **{"batch_size": 4, "num_workers": 2, **stated})
def as_list(samples): return samples

def prepare():
    pathlib.Path("records").write_bytes(bytes(range(64)) * 64)
    np.save("rows.npy", np.random.rand(64, 32))
    with zipfile.ZipFile("archive.zip", "w") as archive:
        for i in range(64): archive.writestr(str(i), "x")
    with sqlite3.connect("rows.db") as db:
        db.execute("create table if not exists rows (i, value)")
        db.executemany("insert into rows values (?, ?)", [(i, i / 2) for i in range(64)])
    for i in range(64): pathlib.Path(f"picture{i}.bin").write_bytes(os.urandom(192))
"""
RUN = """
if __name__ == "__main__":
    from trainlaunch_inside.probe import checks
    from trainlaunch_inside.probe.base.loader_stats import LoaderStats

    prepare()
    chosen = tuple(each for each in checks.CHECKS if each.defect in DEFECTS)
    found = {name: list(checks.run([LoaderStats(0, made(), "train.py:1")], chosen)) for name, made in CASES.items()}
    print("FOUND" + json.dumps(found))
"""


def found(inside: Inner, script: str, flags: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """Return {case: {defect: facts}} of a script's CASES, functions that make a loader; all checks must have run."""
    ran = inside(f"{START}{script}\nDEFECTS = {DEFECTS!r}\n{RUN}", flags=flags)
    assert ran.code == 0, ran.err
    line = next(each for each in ran.out.splitlines() if each.startswith("FOUND"))
    told = json.loads(line.removeprefix("FOUND"))
    assert [facts for records in told.values() for kind, facts in records if kind == "off"] == []
    return {name: {facts["defect"]: facts["facts"] for _, facts in records} for name, records in told.items()}


HANDLES = """
class File(Base):
    def __init__(self): self.file = open("records", "rb")
    def __getitem__(self, i):
        self.file.seek(i * 64)
        return torch.frombuffer(bytearray(self.file.read(64)), dtype=torch.uint8)

class Reader:
    def __init__(self): self.file = open("records", "rb")
    def read(self, i):
        self.file.seek(i * 64)
        return self.file.read(1)[0]

class InReader(Base):
    def __init__(self): self.reader = Reader()
    def __getitem__(self, i): return self.reader.read(i)

class Database(Base):
    def __init__(self): self.db = sqlite3.connect("rows.db")
    def __getitem__(self, i): return self.db.execute("select value from rows where i = ?", (i,)).fetchone()[0]

class Archive(Base):
    def __init__(self): self.archive = zipfile.ZipFile("archive.zip")
    def __getitem__(self, i): return len(self.archive.read(str(i)))

class Lock(Base):
    def __init__(self): self.lock = threading.Lock()
    def __getitem__(self, i):
        with self.lock: return i

class Socket(Base):
    def __init__(self): self.here, self.there = socket.socketpair()
    def __getitem__(self, i):
        self.here.send(b"x")
        return self.there.recv(1)[0]

class Touched(Base):  # opens late, but the script has read a sample before
    def __init__(self): self.file = None; self[0]
    def __getitem__(self, i):
        if self.file is None: self.file = open("records", "rb")
        self.file.seek(i)
        return self.file.read(1)[0]

CASES = {each.__name__: functools.partial(lambda kind: loader(kind()), each)
         for each in (File, InReader, Database, Archive, Lock, Socket, Touched)}
CASES["spawned"] = lambda: loader(Lock(), multiprocessing_context="spawn")
CASES["without"] = lambda: loader(Database(), num_workers=0)
"""


def test_handles_that_workers_would_share(inside: Inner) -> None:
    """With path and kind; that it can't be pickled either is no second finding."""
    told = found(inside, HANDLES)
    kinds = {
        **{"File": ("dataset.file", "file"), "InReader": ("dataset.reader.file", "file")},
        **{"Database": ("dataset.db", "sqlite3"), "Archive": ("dataset.archive", "zipfile")},
        **{"Lock": ("dataset.lock", "lock"), "Socket": ("dataset.there", "socket")},
        **{
            "Touched": ("dataset.file", "file"),
            "spawned": ("dataset.lock", "lock"),
            "without": ("dataset.db", "sqlite3"),
        },
    }
    assert {name: set(each) for name, each in told.items()} == {name: {"handle-in-init"} for name in kinds}
    facts = {name: each["handle-in-init"] for name, each in told.items()}
    assert {name: (each["path"], each["kind"]) for name, each in facts.items()} == kinds
    assert (facts["File"]["file"], facts["Archive"]["file"]) == ("records", "archive.zip")
    assert (facts["spawned"]["start_method"], facts["without"]["num_workers"]) == ("spawn", 0)


HANDLES_USED_WELL = """
class Late(Base):
    def __init__(self): self.file = None
    def __getitem__(self, i):
        if self.file is None: self.file = open("records", "rb")
        self.file.seek(i)
        return self.file.read(1)[0]

class AtOffset(Base):
    def __init__(self): self.file = open("records", "rb")
    def __getitem__(self, i): return os.pread(self.file.fileno(), 1, i)[0]

class Mapped(Base):
    def __init__(self):
        self.file = open("records", "rb")
        self.map = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
    def __getitem__(self, i): return self.map[i]

class ReadOnce(Base):
    def __init__(self):
        self.file = open("records", "rb")
        self.data = self.file.read()
    def __getitem__(self, i): return self.data[i]

class KnowsProcess(Base):
    def __init__(self): self.db, self.pid = sqlite3.connect("rows.db"), os.getpid()
    def __getitem__(self, i):
        if self.pid != os.getpid(): self.db, self.pid = sqlite3.connect("rows.db"), os.getpid()
        return self.db.execute("select value from rows where i = ?", (i,)).fetchone()[0]

class ByInit(Base):
    def __init__(self): self.file = None
    def __getitem__(self, i): return os.pread(self.file.fileno(), 1, i)[0]

def init(worker): get_worker_info().dataset.file = open("records", "rb")

class LeavesOut(Base):
    def __init__(self): self.lock = threading.Lock()
    def __getstate__(self): return {}
    def __setstate__(self, state): self.lock = threading.Lock()
    def __getitem__(self, i):
        with self.lock: return i

class Shared(Base):
    def __init__(self): self.value, self.lock = multiprocessing.Value("i", 0), multiprocessing.Lock()
    def __getitem__(self, i):
        with self.lock: return self.value.value + i

CASES = {
    "late": lambda: loader(Late()), "late without workers": lambda: loader(Late(), num_workers=0),
    "pread": lambda: loader(AtOffset()), "mapped": lambda: loader(Mapped()), "read once": lambda: loader(ReadOnce()),
    "by process": lambda: loader(KnowsProcess()), "by init": lambda: loader(ByInit(), worker_init_fn=init),
    "left out": lambda: loader(LeavesOut(), multiprocessing_context="spawn"), "shared": lambda: loader(Shared()),
}
"""


def test_handles_of_datasets_that_know_how_are_no_finding(inside: Inner) -> None:
    """Opened in the worker, read at an offset, mapped, read once, opened in each process, or left out of pickles."""
    told = found(inside, HANDLES_USED_WELL)
    # A map is right under fork, and Python 3.14's default can't pickle it.
    assert told["mapped"].pop("unpicklable")["path"] == "dataset.map"
    assert {name: each for name, each in told.items() if each} == {}


SAMPLES = """
class Two(Exception):
    def __init__(self, a, b): super().__init__(f"{a} and {b}")

class Raises(Base):
    def __init__(self): self.paths = [f"picture{i}.bin" for i in range(64)]
    def __getitem__(self, i):
        if i > 60: raise Two(i, "more")
        return torch.randn(20)

class Missing(Base):
    def __getitem__(self, i): return np.fromfile(f"picture{i * 2}.bin", dtype=np.uint8)

class NoReturn(Base):
    def __init__(self): self.samples = [(f"text/{i}.txt", 0) for i in range(64)]
    def __getitem__(self, i):
        if i != 63: return torch.randn(20)

class NoTarget(Base):
    def __getitem__(self, i): return {"x": torch.randn(20), "boxes": None if i % 2 else 1}

class Placeholder(Base):
    def __init__(self): self.files = [f"picture{i}.bin" for i in range(64)]
    def __getitem__(self, i):
        try:
            if i in (10, 63): raise OSError
            return torch.frombuffer(bytearray(pathlib.Path(self.files[i]).read_bytes()), dtype=torch.uint8), i
        except OSError: return torch.zeros(192, dtype=torch.uint8), i

class Normalised(Base):
    def __getitem__(self, i): return torch.randn(3, 8, 8) if i else torch.ones(3, 8, 8) * torch.arange(3.).view(3, 1, 1)

class Unfilled(Base):
    def __init__(self): self.rows = np.memmap("laid_out", dtype="float32", mode="w+", shape=(64, 32))
    def __getitem__(self, i): return torch.from_numpy(self.rows[i].copy())

class Stream(IterableDataset):
    def __iter__(self):
        for i in range(20):
            if i == 7: raise ValueError("seven")
            yield float(i)

CASES = {each.__name__: functools.partial(lambda kind: loader(kind()), each)
         for each in (Raises, Missing, NoReturn, NoTarget, Placeholder, Normalised, Unfilled, Stream)}
CASES["in a part"] = lambda: loader(Subset(NoReturn(), [5, 63]))
CASES["without"] = lambda: loader(Raises(), num_workers=0)
"""


def test_samples_that_raise_are_none_or_hold_nothing(inside: Inner) -> None:
    """With the true exception, its place, the index, and the file that was opened or that the dataset lists."""
    told = found(inside, SAMPLES)
    assert {name: set(each) for name, each in told.items()} == {
        **{name: {"sample-exception"} for name in ("Raises", "Missing", "Stream", "without")},
        **{name: {"none-sample"} for name in ("NoReturn", "NoTarget", "in a part")},
        **{name: {"zero-sample"} for name in ("Placeholder", "Normalised", "Unfilled")},
    }
    raised = told["Raises"]["sample-exception"]
    assert (raised["index"], raised["file"]) == (63, "picture63.bin")
    assert (raised["error"], raised["message"], raised["raised_again"]) == ("Two", "63 and more", False)
    assert (raised["at"].split(":")[0], raised["function"]) == ("train.py", "__getitem__")
    assert (raised["found"], raised["tried"], raised["indices"][0]) == (3, 64, 63)
    assert told["Missing"]["sample-exception"]["raised_again"]
    assert told["Stream"]["sample-exception"]["index"] == 7
    assert [told["NoReturn"]["none-sample"][each] for each in ("index", "file", "path")] == [
        63,
        "text/63.txt",
        "sample",
    ]
    assert told["in a part"]["none-sample"]["file"] == "text/63.txt"
    assert told["NoTarget"]["none-sample"]["path"] == "sample['boxes']"
    zero = told["Placeholder"]["zero-sample"]
    assert (zero["indices"], zero["file"], zero["content"]) == ([63, 10], "picture63.bin", "zero")
    assert (told["Normalised"]["zero-sample"]["index"], told["Normalised"]["zero-sample"]["content"]) == (0, "blank")
    assert told["Unfilled"]["zero-sample"]["found"] == 64


SAMPLES_AS_MEANT = """
class SomeNone(Base):
    def __getitem__(self, i): return None if i % 5 == 0 else torch.randn(20)
def without_none(samples): return default_collate([each for each in samples if each is not None])

class Extra(Base):
    def __getitem__(self, i): return torch.randn(20), {"extra": None}
def first(samples): return torch.stack([each[0] for each in samples]), [each[1] for each in samples]

class Masks(Base):
    def __getitem__(self, i): return torch.randn(3, 8, 8), torch.zeros(8, 8, dtype=torch.long)
class Numbers(Base):
    def __getitem__(self, i): return torch.full((3, 8, 8), float(i))
class MadeUp(Base):
    def __getitem__(self, i): return torch.zeros(3, 8, 8), 0
class Labels(Base):
    def __getitem__(self, i): return torch.tensor([0.0, 1.0]) if i % 2 else torch.tensor([0.0, 0.0])
class ByInit(Base):
    def __init__(self): self.rows = None
    def __getitem__(self, i): return self.rows[i]
def init(worker): get_worker_info().dataset.rows = np.load("rows.npy")
class InWorkersOnly(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        yield from (torch.randn(20) for _ in range(info.id, 20, info.num_workers))
class ByName(Base):
    def __init__(self): self.rows = {f"row{i}": torch.randn(20) for i in range(64)}
    def __getitem__(self, name): return self.rows[name]
class PartIsWhole(Base):
    def __getitem__(self, i): return torch.randn(20) if i < 32 else 1 / 0

CASES = {
    "left out": lambda: loader(SomeNone(), collate_fn=without_none), "extra": lambda: loader(Extra(), collate_fn=first),
    "masks": lambda: loader(Masks()), "numbers": lambda: loader(Numbers()), "made up": lambda: loader(MadeUp()),
    "labels": lambda: loader(Labels()), "by init": lambda: loader(ByInit(), worker_init_fn=init),
    "workers only": lambda: loader(InWorkersOnly()),
    "by name": lambda: loader(ByName(), sampler=[f"row{i}" for i in range(64)]),
    "part": lambda: loader(Subset(PartIsWhole(), range(32))),
    "whole batches": lambda: loader(TensorDataset(torch.randn(64, 4)), batch_size=None,
        sampler=BatchSampler(SequentialSampler(range(64)), 8, False)),
}
"""


def test_samples_that_are_meant_so_are_no_finding(inside: Inner) -> None:
    """None that collate_fn leaves out, masks and labels of 0, made-up zeros, what only workers can read, other keys."""
    told = found(inside, SAMPLES_AS_MEANT)
    assert {name: each for name, each in told.items() if each} == {}


ORDINARY = """
class Compose:
    def __init__(self, *steps): self.steps = steps
    def __call__(self, x):
        for step in self.steps: x = step(x)
        return x
def scaled(x): return (x.float() / 255 - 0.5) / 0.5
def flipped(x): return x.flip(-1) if torch.rand(1) < 0.5 else x

class Folder(Base):
    def __init__(self, transform):
        self.samples = [(f"picture{i}.bin", i % 3) for i in range(64)]
        self.targets, self.transform = [target for _, target in self.samples], transform
    def __getitem__(self, i):
        path, target = self.samples[i]
        with open(path, "rb") as file: data = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
        return self.transform(data.view(3, 8, 8)), target
class Mapped(Base):
    def __init__(self): self.rows = np.load("rows.npy", mmap_mode="r")
    def __getitem__(self, i): return {"x": torch.from_numpy(self.rows[i].copy()), "label": i % 2}
class Archive(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        share = slice(info.id, None, info.num_workers) if info else slice(None)
        with zipfile.ZipFile("archive.zip") as archive:
            for name in archive.namelist()[share]: yield archive.read(name), int(name)
class Text(Base):
    def __init__(self): self.lines = [f"line {i}" for i in range(64)]
    def __getitem__(self, i): return self.lines[i]
class Epochs(Base):
    def __init__(self, shared): self.epoch = torch.zeros(1) if not shared else torch.zeros(1).share_memory_()
    def set_epoch(self, epoch): self.epoch.fill_(epoch)
    def __getitem__(self, i): return int(self.epoch) * 1000 + i
class Unread(Base):
    def __init__(self): self.epoch = 0
    def set_epoch(self, epoch): self.epoch = epoch
    def __getitem__(self, i): return i
class Prefix(Base):  # one entry a file, not a sample
    def __init__(self): self.files = {}
    def __getitem__(self, i): return self.files.setdefault(i // 32, torch.randn(1000))[i]

def pictures():
    return TensorDataset(torch.randint(0, 255, (2000, 3, 32, 32), dtype=torch.uint8), torch.randint(0, 10, (2000,)))
folder = lambda: Folder(Compose(scaled, flipped))
CASES = {
    "in memory": lambda: loader(pictures(), shuffle=True), "alone": lambda: loader(pictures(), num_workers=0),
    "spawned": lambda: loader(pictures(), multiprocessing_context="spawn"), "folder": lambda: loader(folder()),
    "persistent": lambda: loader(folder(), shuffle=True, persistent_workers=True), "mapped": lambda: loader(Mapped()),
    "two": lambda: loader(ConcatDataset([folder(), folder()])), "archive": lambda: loader(Archive()),
    "text": lambda: loader(Text()), "parts": lambda: loader(random_split(pictures(), [1800, 200])[1]),
    "unread": lambda: loader(Unread(), persistent_workers=True),
    "weighted": lambda: loader(pictures(), sampler=WeightedRandomSampler([1.0] * 2000, 2000)),
    "shared epoch": lambda: loader(Epochs(True), persistent_workers=True), "entries": lambda: loader(Prefix()),
    "epoch of each pass": lambda: loader(Epochs(False)), "anew": lambda: loader(Epochs(False)),
}
"""


def test_ordinary_datasets_are_silent(inside: Inner) -> None:
    """Tensors in memory, a folder of files with transforms, a map of a file, an archive, text, and parts of these."""
    told = found(inside, ORDINARY)
    assert {name: each for name, each in told.items() if each} == {}


MEMORY = """
class Many(Base):
    def __init__(self): self.paths = [f"/data/train/images/{i:09d}.jpg" for i in range(400_000)]
    def __getitem__(self, i): return i
class InArray(Base):
    def __init__(self): self.paths = np.array([f"/data/train/images/{i:09d}.jpg" for i in range(400_000)])
    def __getitem__(self, i): return i
class InMemory(Base):
    def __init__(self): self.rows = np.ones((64, 2**20), dtype=np.uint8)
    def __getitem__(self, i): return i
class Cache(Base):
    def __init__(self): self.cache = {}
    def __getitem__(self, i):
        if i not in self.cache: self.cache[i] = torch.randn(1000)
        return self.cache[i]
class Remembered(Base):
    @functools.lru_cache(maxsize=None)
    def load(self, i): return torch.randn(1000)
    def __getitem__(self, i): return self.load(i)
class Large(Cache):
    def __len__(self): return 40_000

CASES = {
    "many": lambda: loader(Many(), num_workers=4), "many, one process": lambda: loader(Many(), num_workers=0),
    "array": lambda: loader(InArray(), num_workers=4), "forked": lambda: loader(InMemory(), num_workers=4),
    "spawned": lambda: loader(InMemory(), num_workers=4, multiprocessing_context="spawn"),
    "cache": lambda: loader(Cache()), "remembered": lambda: loader(Remembered()),
    "kept cache": lambda: loader(Cache(), persistent_workers=True),
    "large": lambda: loader(Large(), persistent_workers=True),
}
"""


def test_memory_of_copies_is_held_against_the_limit(inside: Inner) -> None:
    """Python objects under fork, arrays under spawn, caches that are lost or that come to hold all; 1 GiB in all."""
    told = found(inside, MEMORY, ("--memory=1g",))
    assert {name: set(each) for name, each in told.items()} == {
        **{"many": {"copy-on-write-growth"}, "many, one process": set(), "array": set()},
        **{"spawned": {"in-memory-dataset"}, "forked": set(), "kept cache": set()},
        **{"cache": {"cache-per-rank"}, "remembered": {"cache-per-rank"}, "large": {"cache-per-rank"}},
    }
    grown, copies = told["many"]["copy-on-write-growth"], told["spawned"]["in-memory-dataset"]
    assert grown["path"] == "dataset.paths"
    assert 400_000 * 70 < grown["bytes"] < 400_000 * 100
    assert (grown["total"], grown["limit"]) == (4 * grown["bytes"], 2**30)
    assert (copies["path"], copies["copies"], copies["total"] // 2**26) == ("dataset.rows", 5, 5)
    large = told["large"]["cache-per-rank"]
    assert (large["path"], large["persistent_workers"], large["total"]) == (
        "dataset.cache",
        True,
        large["bytes_per_sample"] * 80_000,
    )
    assert told["remembered"]["cache-per-rank"]["path"] == "Remembered.load"


PICKLES = """
class Lambda(Base):
    def __init__(self): self.steps = [abs, functools.partial(max, key=lambda x: -x)]
    def __getitem__(self, i): return i
class BesideHandle(Base):
    def __init__(self): self.db, self.step = sqlite3.connect("rows.db"), lambda x: x
    def __getitem__(self, i): return self.step(i)
class Generator(Base):
    def __getitem__(self, i): return (each for each in "abc")
class Plain(Base):
    def __getitem__(self, i): return i
def local():
    def collate(samples): return samples
    return collate
class Count(Base):
    def __init__(self): self.epoch = torch.zeros(1)
    def set_epoch(self, epoch): self.epoch.fill_(epoch)
    def __getitem__(self, i): return int(self.epoch) + i
class Epoch(Base):
    def __init__(self): self.epoch = 0
    def set_epoch(self, epoch): self.epoch = epoch
    def __getitem__(self, i): return self.epoch * 1000 + i

CASES = {
    "beside a handle": lambda: loader(BesideHandle()),
    "lambda": lambda: loader(Lambda()), "spawned": lambda: loader(Lambda(), multiprocessing_context="spawn"),
    "forkserver": lambda: loader(Plain(), multiprocessing_context="forkserver", worker_init_fn=lambda worker: None),
    "local": lambda: loader(Plain(), collate_fn=local(), num_workers=0),
    "batch": lambda: loader(Generator(), collate_fn=as_list),
    "tensor": lambda: loader(Count(), persistent_workers=True),
    "epoch": lambda: loader(Subset(Epoch(), range(64)), persistent_workers=True), "epoch anew": lambda: loader(Epoch()),
}
"""


def test_what_cannot_be_pickled_and_what_workers_do_not_see(inside: Inner) -> None:
    """Each with the path of the innermost part; a set_epoch is tried, and its value put back."""
    told = found(inside, PICKLES)
    unpicklable = {name: each["unpicklable"] for name, each in told.items() if "unpicklable" in each}
    assert {name: (each["path"], each["start_method"]) for name, each in unpicklable.items()} == {
        **{"lambda": ("dataset.steps[1].key", "fork"), "spawned": ("dataset.steps[1].key", "spawn")},
        **{"forkserver": ("worker_init_fn", "forkserver"), "local": ("collate_fn", "fork")},
        **{"batch": ("batch[0]", "fork"), "beside a handle": ("dataset.step", "fork")},
    }
    assert told["epoch anew"] == {}
    assert told["tensor"]["stale-dataset"]["path"] == "dataset.epoch"
    stale = told["epoch"]["stale-dataset"]
    assert (stale["path"], stale["first"], stale["method"]) == ("dataset.dataset.epoch", 0, "dataset.dataset.set_epoch")


def test_a_collate_fn_that_changes_its_samples_gets_fresh_ones(inside: Inner) -> None:
    """It takes None out of each sample: that is right, and would fail for one that it has had before."""
    script = """
class Captioned(Base):
    def __getitem__(self, i): return {"x": torch.rand(12) + i, "caption": None}
class Streamed(IterableDataset):
    def __iter__(self): return iter([{"x": torch.rand(12), "caption": None} for _ in range(32)])
def takes_out(samples):
    for each in samples: each.pop("caption")
    return default_collate(samples)
CASES = {"map": lambda: loader(Captioned(), collate_fn=takes_out),
         "stream": lambda: loader(Streamed(), collate_fn=takes_out),
         "fails": lambda: loader(Captioned())}
"""
    told = found(inside, script)
    assert {name: "none-sample" in each for name, each in told.items()} == {
        "map": False,
        "stream": False,
        "fails": True,
    }
