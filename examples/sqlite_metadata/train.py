"""Trains on digits that are files on disk, found through a table in SQLite; makes both first where they are missing."""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import tempfile
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, get_worker_info

DATABASE = "samples.db"


class Samples(Dataset[tuple[Tensor, int, int]]):
    """One split of the table: image, label and the row's id.

    The ids are all of the table that is in memory, 8 bytes a sample. A list of rows would be copied into every worker,
    page by page, as workers count references to its objects. A path and a label are one look-up by primary key.
    """

    def __init__(self, folder: Path, split: str) -> None:
        self.folder = folder
        # A connection must not cross a fork, says SQLite, not even to be closed: one a process, made on first use.
        self._connections: dict[int, sqlite3.Connection] = {}
        once = connect(folder)
        self.ids = array(
            "q", (row[0] for row in once.execute("SELECT id FROM samples WHERE split = ? ORDER BY id", (split,)))
        )
        once.close()

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> tuple[Tensor, int, int]:
        sample = self.ids[index]
        path, label = self._connection().execute("SELECT path, label FROM samples WHERE id = ?", (sample,)).fetchone()
        return torch.from_numpy(np.load(self.folder / path)), label, sample

    def __getstate__(self) -> dict[str, Any]:
        """Leave the connections behind where workers are spawned: they can't be pickled."""
        return {**self.__dict__, "_connections": {}}

    def _connection(self) -> sqlite3.Connection:
        process = os.getpid()
        if process not in self._connections:
            self._connections[process] = connect(self.folder)
            worker = get_worker_info()
            where = f"worker {worker.id}" if worker else "the main process"
            print(f"{where} opened {DATABASE}", file=sys.stderr, flush=True)
        return self._connections[process]


def connect(folder: Path) -> sqlite3.Connection:
    """Open the table so that nothing can be written: a plain connect() would make an empty file where none is."""
    return sqlite3.connect(f"{(folder / DATABASE).resolve().as_uri()}?mode=ro", uri=True)


def prepare(folder: Path) -> None:
    """Write each digit to a file of its own, and their table."""
    digits = load_digits()
    (folder / "images").mkdir(parents=True)
    table = sqlite3.connect(folder / DATABASE)
    table.execute("CREATE TABLE samples (id INTEGER PRIMARY KEY, path TEXT, label INTEGER, split TEXT)")
    table.execute("CREATE INDEX by_split ON samples (split, id)")
    for number, (image, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        path = f"images/{number}.npy"
        np.save(folder / path, (image / 16).astype(np.float32))
        table.execute(
            "INSERT INTO samples VALUES (?, ?, ?, ?)", (number, path, int(label), "train" if number % 4 else "test")
        )
    table.commit()
    table.close()


def run(folder: Path, asked: argparse.Namespace) -> None:
    """Train, then test once."""
    torch.manual_seed(0)
    train, test = (
        DataLoader(
            Samples(folder, split),
            batch_size=asked.batch_size,
            shuffle=split == "train",
            num_workers=asked.workers,
            persistent_workers=split == "train" and asked.workers > 0,  # their connections live as long as they do
        )
        for split in ("train", "test")
    )
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for epoch in range(1, asked.epochs + 1):
        seen: list[int] = []
        for images, labels, samples in train:
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += samples.tolist()
        print(f"epoch {epoch}: {len(seen)} samples, {len(set(seen))} of them different", flush=True)
    with torch.no_grad():
        right = sum(int((model(images).argmax(1) == labels).sum()) for images, labels, _ in test)
    print(f"test accuracy {right / len(test.dataset):.4f} on {len(test.dataset)} unseen digits", flush=True)


def main() -> None:
    """Make the data where there is none, then train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0, help="worker processes of each DataLoader")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--data", type=Path, help=f"folder with {DATABASE}; made for this run unless given")
    asked = parser.parse_args()
    if asked.data:
        run(asked.data, asked)
        return
    with tempfile.TemporaryDirectory() as made:
        prepare(Path(made))
        run(Path(made), asked)


if __name__ == "__main__":
    main()
