"""Measures what is often advised for DataLoaders, and prints it as one JSON object. See the READMEs of the examples."""

from __future__ import annotations

import json
import os
import pickle
import random
import sqlite3
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, get_worker_info

sys.path.insert(0, "/examples/sqlite_metadata")
import train as sqlite_example

ROWS = 200_000


class Numbers(Dataset[int]):
    """0 to 63."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> int:
        return index


class Draws(Numbers):
    """What each sample draws: from the three global generators, and from two that the dataset made."""

    def __init__(self) -> None:
        self.numpy, self.torch = np.random.default_rng(0), torch.Generator().manual_seed(0)

    def __getitem__(self, index: int) -> Any:
        of_all = (np.random.random(), random.random(), torch.rand(()).item())  # noqa: S311
        return (*of_all, self.numpy.random(), torch.rand((), generator=self.torch).item())


class Epoch(Numbers):
    """A dataset whose samples are its epoch."""

    epoch = 0

    def __getitem__(self, index: int) -> int:
        return self.epoch


class Noting(Numbers):
    """A dataset that notes its damaged samples itself, as is often advised."""

    def __init__(self) -> None:
        self.damaged: list[int] = []

    def __getitem__(self, index: int) -> int:
        self.damaged.append(index)
        return index


class Gaps(Numbers):
    """A dataset that returns None for a damaged sample."""

    def __getitem__(self, index: int) -> Any:
        return None if index == 3 else index


class Stream(IterableDataset[int]):
    """100 records for each of two ranks: shared by nobody, by the workers of a rank, or by all workers of all ranks."""

    def __init__(self, shared: str, rank: int) -> None:
        self.shared, self.rank = shared, rank

    def __iter__(self) -> Iterator[int]:
        worker = get_worker_info()
        first, step = {
            "nobody": (0, 1),
            "workers": (worker.id, worker.num_workers),
            "all": (self.rank * worker.num_workers + worker.id, 2 * worker.num_workers),
        }[self.shared]
        return iter(range(first, 100, step))


def collated_in(_: list[int]) -> int:
    """Return the process that collates."""
    return os.getpid()


def collate() -> dict[str, Any]:
    """Where a collate function runs, and what padding does to a model without a mask."""
    processes = set(DataLoader(Numbers(), batch_size=8, num_workers=2, collate_fn=collated_in))
    torch.manual_seed(0)
    linear, sample = nn.Linear(16, 1), torch.randn(10, 16) + 1
    alone, beside = (pad_sequence([sample, torch.zeros(length, 16)], batch_first=True) for length in (10, 60))
    logits = [linear(each.mean(1))[0].item() for each in (alone, beside)]
    return {"in_main": os.getpid() in processes, "processes": len(processes), "logits_without_mask": logits}


def seeds() -> dict[str, Any]:
    """How many of 64 samples drew differently in one epoch, and of 128 in two."""
    loader = DataLoader(Draws(), batch_size=4, num_workers=4)
    epochs = [
        [torch.cat([batch[kind] for batch in batches]) for kind in range(5)] for batches in (list(loader), list(loader))
    ]
    kept = Epoch()
    persistent = DataLoader(kept, batch_size=64, num_workers=1, persistent_workers=True)
    seen = []
    for kept.epoch in (1, 2, 3):
        seen += [int(batch[0]) for batch in persistent]
    return {
        "one_epoch": [len(torch.unique(each)) for each in epochs[0]],
        "two_epochs": [len(torch.unique(torch.cat(both))) for both in zip(*epochs, strict=True)],
        "epochs_in_persistent_workers": seen,
    }


def streams() -> dict[str, int]:
    """How many records two ranks with two workers each read of 100."""

    def read(shared: str) -> int:
        ranks = (DataLoader(Stream(shared, rank), batch_size=10, num_workers=2) for rank in (0, 1))
        return sum(len(batch) for loader in ranks for batch in loader)

    return {each: read(each) for each in ("nobody", "workers", "all")}


def samplers() -> dict[str, Any]:
    """What torch's DistributedSampler adds, and whether its order changes by itself."""

    def draws(samples: int, ranks: int) -> int:
        return sum(len(list(DistributedSampler(range(samples), ranks, rank))) for rank in range(ranks))

    one = DistributedSampler(range(100), 2, 0)
    return {"of_1347_by_2": draws(1347, 2), "of_450_by_4": draws(450, 4), "same_order": list(one) == list(one)}


def damage() -> dict[str, Any]:
    """What becomes of None as a sample, and of what a worker notes in its dataset."""
    noting = Noting()
    for _ in DataLoader(noting, batch_size=8, num_workers=2):
        pass
    try:
        list(DataLoader(Gaps(), batch_size=8, num_workers=2))
    except Exception as problem:  # torch raises the worker's own kind
        return {"noted": len(noting.damaged), "none": str(problem).strip().splitlines()[-1]}
    return {"noted": len(noting.damaged), "none": "works"}


def private() -> int:
    """Return the bytes that this process shares with no other."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * int(next(each.split()[1] for each in lines if each.startswith("Private_Dirty")))


def copied_by_reading(rows: Any) -> int:
    """Return the bytes that a forked worker copies when it reads each of `rows`."""
    read, write = os.pipe()
    if not os.fork():
        before = private()
        for _ in rows:
            pass
        os.write(write, str(private() - before).encode())
        os._exit(0)
    copied = int(os.read(read, 64))
    os.wait()
    return copied


def look_ups(folder: Path) -> dict[str, Any]:
    """What metadata in SQLite costs: by look-up, as a list of rows in memory, as an array of ids."""
    table = sqlite3.connect(folder / sqlite_example.DATABASE)
    table.execute("CREATE TABLE samples (id INTEGER PRIMARY KEY, path TEXT, label INTEGER, split TEXT)")
    rows = ((each, f"images/{each % 1000:04}/{each:08}.npy", each % 10, "train") for each in range(ROWS))
    table.executemany("INSERT INTO samples VALUES (?, ?, ?, ?)", rows)
    table.commit()
    once = sqlite_example.connect(folder)
    asked = np.random.default_rng(0).integers(0, ROWS, 2000).tolist()
    since = time.perf_counter()
    for each in asked:
        once.execute("SELECT path, label FROM samples WHERE id = ?", (each,)).fetchone()
    seconds = (time.perf_counter() - since) / len(asked)
    in_list, in_array = once.execute("SELECT id, path, label FROM samples").fetchall(), array("q", range(ROWS))
    return {"seconds": seconds, "list_copied": copied_by_reading(in_list), "array_copied": copied_by_reading(in_array)}


def connections() -> dict[str, Any]:
    """What SQLite does with a connection in the dataset, and with a file that isn't there."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        found = look_ups(folder)
        used = sqlite_example.Samples(folder, "train")
        used._connection()
        again = pickle.loads(pickle.dumps(used))  # noqa: S301 - made in this line
        found["pickled_without_connections"] = (len(again), len(again._connections), len(used._connections))
        for key, ask in (
            ("pickled", lambda: pickle.dumps(sqlite_example.connect(folder))),
            ("missing", lambda: sqlite_example.connect(folder / "missing")),
            ("written", lambda: sqlite_example.connect(folder).execute("DELETE FROM samples")),
        ):
            found[key] = refusal(ask)
        sqlite3.connect(folder / "typo.db").close()
        found["plain_connect_makes"] = (folder / "typo.db").exists()
    return found


def refusal(ask: Callable[[], object]) -> str:
    """Return what is said when it is refused."""
    try:
        ask()
    except (TypeError, sqlite3.OperationalError) as problem:
        return f"{type(problem).__name__}: {problem}"
    return "works"


def lambdas() -> int:
    """Return the sum that a dataset with a lambda gives, from two workers: fork pickles nothing."""
    numbers: Dataset[Tensor] = Numbers()
    numbers.change = lambda index: index + 1
    type(numbers).__getitem__ = lambda self, index: self.change(index)
    return sum(int(batch.sum()) for batch in DataLoader(numbers, batch_size=8, num_workers=2))


if __name__ == "__main__":
    print(
        json.dumps(
            {
                "collate": collate(),
                "seeds": seeds(),
                "streams": streams(),
                "samplers": samplers(),
                "damage": damage(),
                "connections": connections(),
                "lambda_sum": lambdas(),
            }
        )
    )
