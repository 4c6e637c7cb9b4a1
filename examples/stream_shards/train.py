"""Trains on a stream of shard files that all workers of all ranks share: each record is read once in an epoch."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

FEATURES, CLASSES = 32, 4
SHARDS = 11  # no multiple of the readers, as in life


class Records(IterableDataset[tuple[Tensor, int, int]]):
    """This rank's and this worker's share of the shards: features, label and the record's number.

    Every worker of every rank runs `__iter__` on the whole dataset. get_worker_info() knows the workers of one rank:
    with nothing else each record would be read by every rank. Rank and world size are told, since a worker that is
    spawned has no process group to ask.
    """

    def __init__(self, shards: list[Path], rank: int, ranks: int) -> None:
        self.shards, self.rank, self.ranks, self.epoch = shards, rank, ranks, 0

    def __iter__(self) -> Iterator[tuple[Tensor, int, int]]:
        worker = get_worker_info()
        first, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        order = np.random.default_rng(self.epoch).permutation(len(self.shards))  # the same for all readers
        for each in order[self.rank * workers + first :: self.ranks * workers]:
            shard = np.load(self.shards[each])
            for record in range(len(shard["label"])):
                features = torch.from_numpy(shard["features"][record])
                yield features, int(shard["label"][record]), int(shard["number"][record])


def write_shards(folder: Path) -> tuple[list[Path], int]:
    """Write records of four classes to shards of different lengths; return their paths and the number of records."""
    drawn = np.random.default_rng(0)
    centres = drawn.normal(size=(CLASSES, FEATURES))
    paths, number = [], 0
    for shard in range(SHARDS):
        count = 100 + 17 * shard
        labels = drawn.integers(0, CLASSES, count)
        features = (centres[labels] + drawn.normal(size=(count, FEATURES))).astype(np.float32)
        paths.append(folder / f"{shard:05}.npz")
        np.savez(paths[-1], features=features, label=labels, number=np.arange(number, number + count))
        number += count
    return paths, number


def train_epoch(
    model: nn.Module, batches: DataLoader[tuple[Tensor, int, int]], optimizer: torch.optim.Optimizer, records: int
) -> tuple[Tensor, Tensor]:
    """Train once on this rank's share; return how often each record was read and how many were right, in all ranks."""
    seen, right = torch.zeros(records, dtype=torch.int64), torch.zeros((), dtype=torch.int64)
    # Shares are of whole shards, so one rank has more batches than another. join() lets it go on alone: without that it
    # waits in backward() for ever.
    with model.join():
        for features, labels, numbers in batches:
            output = model(features)
            loss = cross_entropy(output, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.index_add_(0, numbers, torch.ones_like(numbers))
            right += (output.argmax(1) == labels).sum()
    dist.all_reduce(seen)
    dist.all_reduce(right)
    return seen, right


def run(folder: Path, asked: argparse.Namespace) -> None:
    """Let rank 0 write the shards, then train."""
    written = list(write_shards(folder)) if dist.get_rank() == 0 else [None, None]
    dist.broadcast_object_list(written)
    shards, count = written
    records = Records(shards, dist.get_rank(), dist.get_world_size())
    # No persistent workers: they would keep the dataset, and so the epoch, that they were started with.
    batches = DataLoader(records, batch_size=asked.batch_size, num_workers=asked.workers)
    model = DistributedDataParallel(nn.Linear(FEATURES, CLASSES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for epoch in range(1, asked.epochs + 1):
        records.epoch = epoch
        seen, right = train_epoch(model, batches, optimizer, count)
        if dist.get_rank() == 0:
            once, more, never = (int(each.sum()) for each in (seen == 1, seen > 1, seen == 0))
            readers = dist.get_world_size() * max(1, asked.workers)
            print(
                f"epoch {epoch}: {once} of {len(seen)} records read once, {more} more often, {never} never, "
                f"by {readers} readers; accuracy {int(right) / len(seen):.4f}",
                flush=True,
            )
    dist.barrier()  # rank 0 removes the shards


def main() -> None:
    """Join the other ranks, if any, and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0, help="worker processes of each rank")
    parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
    parser.add_argument("--epochs", type=int, default=4)
    asked = parser.parse_args()
    torch.manual_seed(0)
    if "RANK" in os.environ:  # torchrun says where the others are
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), asked)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
