"""Trains on handwritten digits with the ranks that `torchrun` starts, or with one; each digit once in an epoch."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Digits(Dataset[tuple[Tensor, int, int]]):
    """Digits of 8×8 grey pixels in 0…1, each with its label and its own index.

    A numpy array goes to a worker by pickle; a tensor would go through /dev/shm and stay there.
    """

    def __init__(self, images: NDArray[np.float32], labels: list[int]) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int, int]:
        return torch.from_numpy(self.images[index]), self.labels[index], index


class EachOnce(DistributedSampler[tuple[Tensor, int, int]]):
    """torch's sampler of one rank's share, without what that adds to make all shares equally long.

    1,347 samples on two ranks become 1,348 there: one sample is seen twice, in training and in a test's accuracy alike.
    The extra ones are always the last of a share.
    """

    def __iter__(self) -> Iterator[int]:
        return iter(list(super().__iter__())[: len(self)])

    def __len__(self) -> int:
        return len(range(self.rank, len(self.dataset), self.num_replicas))


def datasets() -> tuple[Digits, Digits]:
    """Return the digits to train on and the quarter that is kept for the test; the same in all ranks."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)
    labels = [int(each) for each in digits.target]
    kept, unseen = train_test_split(range(len(labels)), test_size=0.25, stratify=labels, random_state=0)
    training, test = (Digits(images[part], [labels[each] for each in part]) for part in (kept, unseen))
    return training, test


def loader(dataset: Digits, asked: argparse.Namespace, *, shuffle: bool) -> DataLoader[tuple[Tensor, int, int]]:
    """Return this rank's share; `shuffle` is the sampler's here, a DataLoader with a sampler takes none."""
    sampler = EachOnce(dataset, dist.get_world_size(), dist.get_rank(), shuffle=shuffle)
    # A process with gloo's threads is no parent to fork from: a worker that begins while one of them changes Python's
    # threads waits for ever, and the other rank for it.
    started = {"multiprocessing_context": "forkserver", "persistent_workers": True} if asked.workers else {}
    return DataLoader(dataset, asked.batch_size, num_workers=asked.workers, sampler=sampler, **started)


def train_epoch(
    model: nn.Module, batches: DataLoader[tuple[Tensor, int, int]], optimizer: torch.optim.Optimizer
) -> Tensor:
    """Train once on this rank's share and return how often each sample was seen, by all ranks together."""
    seen = torch.zeros(len(batches.dataset), dtype=torch.int64)
    # Shares differ by one sample, and so may the number of batches. Without join() the rank with one more would wait in
    # backward() for a partner that has left the loop.
    with model.join():
        for images, labels, indices in batches:
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.index_add_(0, indices, torch.ones_like(indices))
    dist.all_reduce(seen)
    return seen


def train(model: nn.Module, digits: Digits, asked: argparse.Namespace) -> None:
    """Train for all epochs; the loader's workers end with it, before those of the test begin."""
    batches = loader(digits, asked, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for epoch in range(1, asked.epochs + 1):
        batches.sampler.set_epoch(epoch)  # else each epoch has the order of the first
        seen = train_epoch(model, batches, optimizer)
        if dist.get_rank() == 0:
            once, more, never = (int(each.sum()) for each in (seen == 1, seen > 1, seen == 0))
            print(
                f"epoch {epoch}: {once} of {len(seen)} samples seen once, {more} more often, {never} never, "
                f"by {dist.get_world_size()} ranks",
                flush=True,
            )


def accuracy(model: nn.Module, batches: DataLoader[tuple[Tensor, int, int]]) -> tuple[int, int]:
    """Return how many digits were right and how many there were, in all ranks together."""
    model.eval()
    right, total = 0, 0
    with torch.no_grad():
        for images, labels, _ in batches:
            right += int((model(images).argmax(1) == labels).sum())
            total += len(labels)
    counts = torch.tensor([right, total])
    dist.all_reduce(counts)
    return int(counts[0]), int(counts[1])


def main() -> None:
    """Train, then test once; rank 0 speaks for all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0, help="worker processes of each DataLoader and rank")
    parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
    parser.add_argument("--epochs", type=int, default=8)
    asked = parser.parse_args()
    torch.manual_seed(0)
    if "RANK" in os.environ:  # torchrun says where the others are
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    digits, test = datasets()
    model = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    train(model, digits, asked)
    right, total = accuracy(model, loader(test, asked, shuffle=False))
    if dist.get_rank() == 0:
        print(f"test accuracy {right / total:.4f} on {total} unseen digits", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
