"""Measures what three guides about DataLoader claim; needs torch, nothing else. Prints one JSON object.

docs/seed-claims.md has the claims and what came out.

    docker run --rm --shm-size 1g -v "$PWD/bench:/bench:ro" IMAGE python3 /bench/seed_claims.py [--without-times]
"""

from __future__ import annotations

import json
import os
import pickle
import random
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

MAIN = os.getpid()
FILE = Path(tempfile.mkdtemp()) / "data.bin"
SAMPLES, RECORD = 20_000, 64


class Map(Dataset):
    """Calls a function for each sample."""

    def __init__(self, function, length=16):
        self.function, self.length = function, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.function(index)


class Stream(IterableDataset):
    """Ten samples, all of them in each worker."""

    def __iter__(self):
        return iter(range(10))


class Handle(Dataset):
    """Reads one file through one handle that was opened before the workers were."""

    def __init__(self, path):
        self.file = path.open("rb", buffering=0)

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        self.file.seek(RECORD * index)
        return int.from_bytes(self.file.read(8), "little") == index


def number(index):
    return index


def by_worker(function, workers=4, length=64):
    """Return what each worker's first samples were."""
    found = {}
    for batch in DataLoader(Map(function, length), batch_size=1, num_workers=workers, collate_fn=first):
        found.setdefault(batch[0], []).append(batch[1])
    return found


def first(samples):
    return samples[0]


def error_of(function):
    try:
        function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def epoch(**options):
    since = time.monotonic()
    for _ in DataLoader(**options):
        pass
    return time.monotonic() - since


def draws(source):
    """Return how many different first draws four workers make."""
    found = by_worker(lambda index: (get_worker_info().id, source()))
    return len({tuple(each[:4]) for each in found.values()})


def collates_in(workers):
    return (
        next(iter(DataLoader(Map(number), batch_size=4, num_workers=workers, collate_fn=lambda _: os.getpid()))) != MAIN
    )


def copies():
    """Return how many MiB four workers under fork take that only read one sample of 256 MiB."""
    data = torch.zeros(64 << 20)
    loader = iter(DataLoader(Map(lambda index: float(data[index])), num_workers=4))
    next(loader)
    return sum(own_memory(each.pid) for each in loader._workers) >> 20


def own_memory(pid="self"):
    """Return the bytes that only this process has."""
    with Path(f"/proc/{pid}/smaps_rollup").open() as lines:
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private_"))


def spawned(dataset):
    return error_of(lambda: next(iter(DataLoader(dataset, num_workers=1, multiprocessing_context="spawn"))))


def persistent():
    """Return what a second epoch of two workers costs without and with persistent workers, seconds."""
    found = []
    for keeps in (False, True):
        loader = DataLoader(Map(number), num_workers=2, persistent_workers=keeps)
        list(loader)
        since = time.monotonic()
        list(loader)
        found.append(time.monotonic() - since)
    return found


def wrong_samples():
    """Return how many samples come out wrong where four workers share one handle, and so one place in the file."""
    FILE.write_bytes(b"".join(each.to_bytes(RECORD, "little") for each in range(SAMPLES)))
    return SAMPLES - sum(int(batch.sum()) for batch in DataLoader(Handle(FILE), batch_size=500, num_workers=4))


def same_file():
    """Read one file in all workers, each through a handle of its own."""
    return sum(int(batch.sum()) for batch in DataLoader(Map(read_own, SAMPLES), batch_size=500, num_workers=4))


def read_own(index):
    with FILE.open("rb") as file:
        file.seek(RECORD * index)
        return int.from_bytes(file.read(8), "little") == index


def batch_norm():
    return error_of(lambda: torch.nn.BatchNorm1d(4)(torch.zeros(1, 4)))


def raises(index):
    if index == 5:
        raise ZeroDivisionError("in a worker")
    return index


def none(index):
    return None


def measured():
    generator = torch.Generator().manual_seed(0)
    own = random.Random(0)  # noqa: S311 - it repeats on purpose
    found = {}
    found["collate_runs_in_worker"] = collates_in(2)
    found["collate_runs_in_main_without_workers"] = not collates_in(0)
    found["torch_draws_of_4_workers"] = draws(lambda: torch.rand(1).item())
    found["random_draws_of_4_workers"] = draws(random.random)
    found["own_generator_draws_of_4_workers"] = draws(lambda: torch.rand(1, generator=generator).item())
    found["own_random_draws_of_4_workers"] = draws(own.random)
    found["lambda_in_dataset_under_fork"] = error_of(lambda: list(DataLoader(Map(lambda x: x), num_workers=2)))
    found["lambda_in_dataset_under_spawn"] = spawned(Map(lambda x: x))
    found["file_in_dataset_under_spawn"] = spawned(Handle(Path(__file__)))
    found["database_pickled"] = error_of(lambda: pickle.dumps(sqlite3.connect(":memory:")))
    found["wrong_samples_of_a_shared_handle"] = wrong_samples()
    found["right_samples_of_own_handles"] = same_file()
    found["exception_in_worker"] = error_of(lambda: list(DataLoader(Map(raises), num_workers=2))).splitlines()[0]
    found["none_in_batch"] = error_of(lambda: list(DataLoader(Map(none), batch_size=2, num_workers=2))).splitlines()[-1]
    found["samples_of_a_stream_of_10_with_4_workers"] = len(list(DataLoader(Stream(), num_workers=4)))
    found["batch_norm_of_one"] = batch_norm()
    found["mib_of_4_forked_workers_beside_256"] = copies()
    return found


def times():
    found = {}
    found["second_epoch_seconds"] = persistent()
    found["cheap_samples_without_workers_seconds"] = epoch(dataset=Map(number, 2000), num_workers=0)
    found["cheap_samples_with_4_workers_seconds"] = epoch(dataset=Map(number, 2000), num_workers=4)
    slow = Map(lambda index: time.sleep(0.01) or index, 200)
    found["slow_samples_without_workers_seconds"] = epoch(dataset=slow, num_workers=0)
    found["slow_samples_with_4_workers_seconds"] = epoch(dataset=slow, num_workers=4)
    return found


if __name__ == "__main__":
    json.dump(measured() | ({} if "--without-times" in sys.argv else times()), sys.stdout, indent=1)
