"""Trains on the digits that the image's ENTRYPOINT made ready; without it, on scikit-learn's own."""

from __future__ import annotations

import argparse
import os

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset[tuple[Tensor, int]]):
    """Digits of 8×8 grey pixels in 0…1."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = torch.tensor(images / 16, dtype=torch.float32), labels.tolist()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.images[index], self.labels[index]


def digits() -> tuple[np.ndarray, np.ndarray, str]:
    """Return images, labels and where they are from."""
    if ready := os.environ.get("DIGITS"):
        with np.load(ready) as made:
            return made["images"], made["labels"], ready
    own = load_digits()
    return own.images, own.target, "scikit-learn"


def main() -> None:
    """Train, then test once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0, help="worker processes of each DataLoader")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=8)
    asked = parser.parse_args()
    torch.manual_seed(0)
    images, labels, source = digits()
    print(f"{len(labels)} digits from {source}", flush=True)
    kept = np.arange(len(labels)) % 4 > 0
    train, test = (
        DataLoader(
            Digits(images[part], labels[part]),
            batch_size=asked.batch_size,
            num_workers=asked.workers,
            shuffle=part is kept,
        )
        for part in (kept, ~kept)
    )
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(asked.epochs):
        for batch, label in train:
            loss = cross_entropy(model(batch), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        right = sum(int((model(batch).argmax(1) == label).sum()) for batch, label in test)
    print(f"test accuracy {right / len(test.dataset):.4f} on {len(test.dataset)} unseen digits", flush=True)


if __name__ == "__main__":
    main()
