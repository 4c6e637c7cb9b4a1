"""Trains on handwritten digits, saves after each epoch, and goes on from what it finds, to the same accuracy."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset


class Training:
    """All that the next epoch depends on; `epoch` is the last one that is finished."""

    def __init__(self, epochs: int, steps: int) -> None:
        torch.manual_seed(0)
        self.epoch = 0
        self.shuffling = torch.Generator().manual_seed(0)
        self.model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, max_lr=0.01, total_steps=epochs * steps)
        self._parts = (self.model, self.optimizer, self.schedule)

    def save(self, folder: Path) -> None:
        """Write a checkpoint that is there whole or not at all, whenever the container is lost."""
        written = folder / "checkpoint.pt.new"
        states = [each.state_dict() for each in self._parts]
        random = torch.get_rng_state(), self.shuffling.get_state()
        with written.open("wb") as file:
            torch.save({"epoch": self.epoch, "states": states, "random": random}, file)
            file.flush()
            os.fsync(file.fileno())
        written.replace(folder / "checkpoint.pt")

    def load(self, folder: Path) -> bool:
        """Go on from the folder's checkpoint; False where there is none."""
        saved = folder / "checkpoint.pt"
        if not saved.exists():
            return False
        found = torch.load(saved)
        self.epoch = found["epoch"]
        for part, state in zip(self._parts, found["states"], strict=True):
            part.load_state_dict(state)
        torch.set_rng_state(found["random"][0])
        self.shuffling.set_state(found["random"][1])
        return True


def datasets() -> tuple[TensorDataset, TensorDataset]:
    """Return the digits to train on, and the quarter of all that is kept for the test."""
    digits = load_digits()
    images, labels = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
    kept, unseen = train_test_split(range(len(labels)), test_size=0.25, stratify=labels, random_state=0)
    return TensorDataset(images[kept], labels[kept]), TensorDataset(images[unseen], labels[unseen])


def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Return the share of images that the model names rightly."""
    model.eval()
    with torch.no_grad():
        return float((model(images).argmax(1) == labels).float().mean())


def main() -> None:
    """Train what is left to train, then test once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0, help="worker processes of the DataLoader")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=6)
    asked = parser.parse_args()
    folder = Path(os.environ.get("TRAINLAUNCH_CHECKPOINT_DIR", "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    kept, unseen = datasets()
    steps = -(-len(kept) // asked.batch_size)
    training = Training(asked.epochs, steps)
    attempt = os.environ.get("TRAINLAUNCH_ATTEMPT", "1")
    found = training.load(folder)
    print(f"attempt {attempt}: {f'goes on after epoch {training.epoch}' if found else 'begins'}", flush=True)
    train = DataLoader(kept, asked.batch_size, num_workers=asked.workers, shuffle=True, generator=training.shuffling)
    for epoch in range(training.epoch + 1, asked.epochs + 1):
        training.model.train()
        total = 0.0
        for images, labels in train:
            loss = cross_entropy(training.model(images), labels)
            training.optimizer.zero_grad()
            loss.backward()
            training.optimizer.step()
            training.schedule.step()
            total += loss.item() * len(labels)
        print(f"epoch {epoch}: training loss {total / len(kept):.6f}", flush=True)
        training.epoch = epoch
        training.save(folder)
    (folder / "checkpoint.pt").unlink()  # the job is done: the next `up` begins anew
    print(f"test accuracy {accuracy(training.model, *unseen.tensors):.4f} on {len(unseen)} unseen digits", flush=True)


if __name__ == "__main__":
    main()
