"""Trains on samples that are decoded, waited for or tiny, with a small or a large step, as bench/tune.py asks.

    python train.py decode large WORKERS          # trains until it is ended
    python train.py decode large 0:2:1,2:2 3      # prints the rate of each WORKERS:PREFETCH as JSON, 3 s each

A setting may end in torch's threads; else they are what a plan has beside so many workers.

CPUS has the container's limit.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

BATCH = 32
SIDE = 96
LATENCY = 0.004  # seconds that a sample waits for storage elsewhere
KINDS = ("decode", "io", "tiny")


class Samples(Dataset[tuple[torch.Tensor, int]]):
    """12,800 samples: 400 batches of an epoch."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        noise = numpy.random.default_rng(0).integers(0, 32, (3, 160, 160), dtype=numpy.uint8)
        self.packed = zlib.compress(noise.tobytes())
        self.path = Path(tempfile.gettempdir()) / "sample"
        self.path.write_bytes(self.packed)

    def __len__(self) -> int:
        return 400 * BATCH

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if self.kind == "tiny":
            return torch.full((3, SIDE, SIDE), float(index % 10)), index % 10
        if self.kind == "io":
            time.sleep(LATENCY)
            self.path.read_bytes()
            return torch.zeros(3, SIDE, SIDE), index % 10
        image = numpy.frombuffer(zlib.decompress(self.packed), dtype=numpy.uint8).reshape(3, 160, 160)
        image = image[:, index % 32 :, index % 32 :][:, :SIDE, :SIDE].astype(numpy.float32)
        return torch.from_numpy((image - image.mean()) / (image.std() + 1)), index % 10


class Training:
    """A step: one linear layer, or convolutions that take about as long as decoding a batch does."""

    def __init__(self, step: str) -> None:
        torch.manual_seed(0)
        whole = torch.nn.Sequential(torch.nn.AvgPool2d(12), torch.nn.Flatten(), torch.nn.Linear(3 * 64, 10))
        large = torch.nn.Sequential(
            *(torch.nn.Conv2d(3, 24, 5, stride=2, padding=2), torch.nn.ReLU()),
            *(torch.nn.Conv2d(24, 48, 3, stride=2, padding=1), torch.nn.ReLU()),
            *(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48 * 16, 10)),
        )
        self.model = large if step == "large" else whole
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01)

    def on(self, batch: list[torch.Tensor]) -> None:
        """Train on one batch."""
        self.optimizer.zero_grad()
        cross_entropy(self.model(batch[0]), batch[1]).backward()
        self.optimizer.step()


def loader_of(kind: str, workers: int, prefetch: int) -> DataLoader[tuple[torch.Tensor, int]]:
    """Return a loader with one setting."""
    return DataLoader(
        Samples(kind), BATCH, shuffle=True, num_workers=workers, prefetch_factor=prefetch if workers else None
    )


def rate(training: Training, kind: str, setting: str, seconds: float) -> float:
    """Return the batches per second of a setting once its workers have started; all epochs are this long."""
    workers, prefetch, *threads = map(int, setting.split(":"))
    planned = max(1, int(os.environ["CPUS"]) - workers)  # of a job without a GPU
    torch.set_num_threads(threads[0] if threads else planned)
    begun, count = 0.0, 0
    until = float("inf")
    for number, batch in enumerate(itertools.chain.from_iterable(itertools.repeat(loader_of(kind, workers, prefetch)))):
        training.on(batch)
        now = time.perf_counter()
        if number == workers + 1:
            begun, until = now, now + seconds
        count += begun != 0 and number > workers + 1
        if now >= until and count >= 5:
            return count / (now - begun)
    raise AssertionError("an endless loop ended")


def main() -> None:
    """Train, or time settings in the order given."""
    kind, step, asked = sys.argv[1:4]
    training = Training(step)
    if ":" in asked:
        seconds = float(sys.argv[4])
        print(json.dumps([[each, rate(training, kind, each, seconds)] for each in asked.split(",")]))
        return
    while True:
        for batch in loader_of(kind, int(asked), 2):
            training.on(batch)


if __name__ == "__main__":
    main()
