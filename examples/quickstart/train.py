"""Trains a small convolutional network on scikit-learn's handwritten digits and prints its accuracy on unseen ones."""

from __future__ import annotations

import argparse

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset[tuple[Tensor, int]]):
    """Digits of 8×8 grey pixels in 0…1; a `side` over 8 enlarges each to 3×side×side, the form of photographs."""

    def __init__(self, images: Tensor, labels: list[int], side: int) -> None:
        self.images, self.labels, self.side = images, labels, side

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.images[index]
        if self.side > 8:
            image = interpolate(image[None], size=self.side, mode="bilinear")[0].repeat(3, 1, 1)
        return image, self.labels[index]


def network(side: int) -> nn.Module:
    """Return an untrained classifier of ten digits, which brings images of any side to 8×8 first."""
    return nn.Sequential(
        *(nn.AdaptiveAvgPool2d(8), nn.Conv2d(3 if side > 8 else 1, 32, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.GroupNorm(8, 64), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(64, 64, 3, padding=1), nn.GroupNorm(8, 64), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(256, 10)),
    )


def loaders(asked: argparse.Namespace) -> tuple[DataLoader[tuple[Tensor, Tensor]], DataLoader[tuple[Tensor, Tensor]]]:
    """Return the batches to train on, shuffled, and those of the quarter of all digits that is kept for the test."""
    digits = load_digits()
    images = torch.tensor(digits.images / 16, dtype=torch.float32)[:, None]
    labels = [int(each) for each in digits.target]
    kept, unseen = train_test_split(range(len(labels)), test_size=0.25, stratify=labels, random_state=0)
    train, test = (
        DataLoader(
            Digits(images[part], [labels[each] for each in part], asked.side),
            batch_size=asked.batch_size,
            num_workers=asked.workers,
            shuffle=part is kept,
        )
        for part in (kept, unseen)
    )
    return train, test


def main() -> None:
    """Train, then test once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0, help="worker processes of each DataLoader")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--side", type=int, default=8, help="8, or the pixels that each side is enlarged to: 224")
    asked = parser.parse_args()
    torch.manual_seed(0)
    train, test = loaders(asked)
    model = network(asked.side)
    optimizer = torch.optim.AdamW(model.parameters())
    steps = asked.epochs * len(train)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=steps)
    for epoch in range(1, asked.epochs + 1):
        model.train()
        total = 0.0
        for images, labels in train:
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(labels)
        print(f"epoch {epoch}: training loss {total / len(train.dataset):.4f}", flush=True)
    model.eval()
    with torch.no_grad():
        right = sum(int((model(images).argmax(1) == labels).sum()) for images, labels in test)
    print(f"test accuracy {right / len(test.dataset):.4f} on {len(test.dataset)} unseen digits", flush=True)


if __name__ == "__main__":
    main()
