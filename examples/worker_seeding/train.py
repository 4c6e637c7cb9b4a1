"""Trains on randomly changed digits whose changes are the same in every run, with any number of workers."""

from __future__ import annotations

import argparse
import hashlib
import random
from collections.abc import Iterator

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, Sampler

Sample = tuple[Tensor, int, int, Tensor]


class Changed(Dataset[Sample]):
    """Digits that are shifted, dimmed and made noisy: image, label, index, and one number drawn from each generator.

    Each sample has new generators, made of seed, epoch and index. So its change does not depend on which worker makes
    it, on how many there are, or on what was drawn before. A generator made in `__init__` would be copied into every
    worker, which would all draw the same numbers, the same again in each epoch.
    """

    def __init__(self, images: np.ndarray, labels: list[int], seed: int) -> None:
        self.images, self.labels, self.seed = images, labels, seed

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, which: tuple[int, int]) -> Sample:
        epoch, index = which
        numbers = np.random.default_rng((self.seed, epoch, index))
        own = random.Random(numbers.bytes(16))
        drawn = torch.Generator().manual_seed(int(numbers.integers(2**63)))
        image = np.roll(self.images[index], int(numbers.integers(-1, 2)), axis=1) * own.uniform(0.8, 1.2)
        noisy = torch.from_numpy(image.astype(np.float32)) + 0.05 * torch.randn(8, 8, generator=drawn)
        draws = torch.tensor([numbers.random(), own.random(), torch.rand((), generator=drawn).item()])
        return noisy, self.labels[index], index, draws


class Shuffled(Sampler[tuple[int, int]]):
    """(epoch, index) in an order that seed and epoch decide.

    The epoch travels with the index. Persistent workers keep the dataset that they were started with, so an attribute
    `dataset.epoch` that the main process sets never reaches them.
    """

    def __init__(self, length: int, seed: int) -> None:
        self.length, self.seed, self.epoch = length, seed, 0

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[tuple[int, int]]:
        order = np.random.default_rng((self.seed, self.epoch)).permutation(self.length)
        return iter([(self.epoch, int(each)) for each in order])


def main() -> None:
    """Train, and print a digest of all that was drawn in each epoch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0, help="worker processes of the DataLoader")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--persistent", action="store_true", help="keep the workers from epoch to epoch")
    asked = parser.parse_args()
    torch.manual_seed(asked.seed)
    digits = load_digits()
    images, labels = digits.images / 16, digits.target
    kept = np.arange(len(labels)) % 4 > 0
    dataset = Changed(images[kept], labels[kept].tolist(), asked.seed)
    order = Shuffled(len(dataset), asked.seed)
    batches = DataLoader(
        dataset,
        batch_size=asked.batch_size,
        sampler=order,
        num_workers=asked.workers,
        persistent_workers=asked.persistent and asked.workers > 0,
    )
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for epoch in range(1, asked.epochs + 1):
        order.epoch = epoch
        drawn = torch.zeros(len(dataset), 3)
        for changed, label, indices, draws in batches:
            loss = cross_entropy(model(changed), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            drawn[indices] = draws
        digest = hashlib.sha256(drawn.numpy().tobytes()).hexdigest()[:12]
        print(
            f"epoch {epoch}: {len(torch.unique(drawn, dim=0))} of {len(drawn)} draws differ, digest {digest}",
            flush=True,
        )
    with torch.no_grad():
        unseen = torch.tensor(images[~kept], dtype=torch.float32)
        right = int((model(unseen).argmax(1) == torch.tensor(labels[~kept])).sum())
    print(f"test accuracy {right / len(unseen):.4f} on {len(unseen)} unseen digits", flush=True)


if __name__ == "__main__":
    main()
