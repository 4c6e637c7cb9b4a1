"""Trains on digits in files, some of them damaged: each is named once and left out, and too many end the job."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, default_collate


class Damaged(NamedTuple):
    """What takes the place of a sample that can't be read."""

    path: str
    reason: str


class Files(Dataset["tuple[Tensor, int] | Damaged"]):
    """Digits and labels of these files. A damaged one is a value, not an exception, which would end the epoch."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Tensor, int] | Damaged:
        path = self.paths[index]
        try:
            values = np.load(path)
            image, label = values[:64].reshape(8, 8), int(values[64])
        except (OSError, EOFError, ValueError, IndexError) as problem:  # what reading can raise, never our own mistakes
            return Damaged(str(path), f"{type(problem).__name__}: {problem}")
        return torch.from_numpy(image), label


def readable(samples: list[tuple[Tensor, int] | Damaged]) -> tuple[list[Tensor] | None, list[Damaged]]:
    """Return the batch without its damaged samples, None where nothing is left, and these.

    They travel to the main process with the batch. What a worker notes in the dataset itself stays in the worker.
    """
    damaged = [each for each in samples if isinstance(each, Damaged)]
    good = [each for each in samples if not isinstance(each, Damaged)]
    return (default_collate(good) if good else None), damaged


class Damage:
    """Counts the damaged files of a run: each is said once, whichever worker and epoch met it."""

    def __init__(self, files: int, allowed: float) -> None:
        self.files, self.allowed = files, allowed
        self.paths: set[str] = set()

    def good(self, batches: DataLoader[tuple[list[Tensor] | None, list[Damaged]]]) -> Iterator[list[Tensor]]:
        """Yield what could be read of each batch; note the rest."""
        for batch, damaged in batches:
            self._note(damaged)
            if batch is not None:
                yield batch

    def _note(self, damaged: list[Damaged]) -> None:
        """Say what is new, and end the job when more than the allowed share is damaged.

        A disk that went away looks like damaged files too: without an end the job would train on nothing.
        """
        for each in damaged:
            if each.path not in self.paths:
                self.paths.add(each.path)
                print(f"damaged, left out: {each.path}: {each.reason}", file=sys.stderr, flush=True)
        if len(self.paths) > self.allowed * self.files:
            sys.exit(f"{len(self.paths)} of {self.files} files are damaged, more than the allowed {self.allowed:.1%}")


def write_files(folder: Path, damaged: float) -> tuple[list[Path], list[Path]]:
    """Write each digit to a file, damage a share of those to train on, and return their paths and the test's."""
    digits = load_digits()
    paths = []
    for number, (image, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        paths.append(folder / f"{number:04}.npy")
        np.save(paths[-1], np.append(image / 16, label).astype(np.float32))
    train, test = [each for number, each in enumerate(paths) if number % 4], paths[::4]
    for number in range(round(damaged * len(train))):
        path = train[number * 37 % len(train)]
        kept = (0, 40, 200)[number % 3]  # nothing, half of a header, a few values
        path.write_bytes(path.read_bytes()[:kept])
    return train, test


def run(train: list[Path], test: list[Path], asked: argparse.Namespace) -> None:
    """Train, then test once."""
    torch.manual_seed(0)
    damage = Damage(len(train) + len(test), asked.allowed)
    batches, unseen = (
        DataLoader(
            Files(paths),
            batch_size=asked.batch_size,
            shuffle=paths is train,
            num_workers=asked.workers,
            collate_fn=readable,
        )
        for paths in (train, test)
    )
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for epoch in range(1, asked.epochs + 1):
        trained = 0
        for images, labels in damage.good(batches):
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            trained += len(labels)
        print(f"epoch {epoch}: trained on {trained} of {len(train)} samples", flush=True)
    right = total = 0
    with torch.no_grad():
        for images, labels in damage.good(unseen):
            right, total = right + int((model(images).argmax(1) == labels).sum()), total + len(labels)
    print(f"{len(damage.paths)} of {damage.files} files are damaged", flush=True)
    print(f"test accuracy {right / total:.4f} on {total} unseen digits", flush=True)


def main() -> None:
    """Write the files, damage some, train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0, help="worker processes of each DataLoader")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--damaged", type=float, default=0.01, help="share of the files that are damaged")
    parser.add_argument("--allowed", type=float, default=0.02, help="share of damaged files above which the job fails")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(*write_files(Path(folder), asked.damaged), asked)


if __name__ == "__main__":
    main()
