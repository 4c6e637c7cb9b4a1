"""Classifies sequences of different lengths: padded in the worker, masked in the model, the padding counted."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

SHORTEST, LONGEST, FEATURES = 10, 60, 16
Batch = tuple[Tensor, Tensor, Tensor]


class Sequences(Dataset[tuple[Tensor, float]]):
    """Noise around a level; the label says whether the level is high. Always the same for the same seed."""

    def __init__(self, count: int, seed: int) -> None:
        drawn = torch.Generator().manual_seed(seed)
        self.lengths = torch.randint(SHORTEST, LONGEST + 1, (count,), generator=drawn).tolist()
        self.labels = torch.randint(0, 2, (count,), generator=drawn).tolist()
        self.values = [
            torch.randn(length, FEATURES, generator=drawn) * 0.5 + 1 + 0.2 * label
            for length, label in zip(self.lengths, self.labels, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, float]:
        return self.values[index], float(self.labels[index])


def padded(samples: list[tuple[Tensor, float]]) -> Batch:
    """Pad to the longest sample of the batch and say what is real.

    With workers this runs in them, not in the main process, so there is no reason to keep it small. The mask is made of
    the lengths: a value that equals the padding may be real.
    """
    values, labels = zip(*samples, strict=True)
    lengths = torch.tensor([len(each) for each in values])
    together = pad_sequence(list(values), batch_first=True)
    mask = torch.arange(together.shape[1]) < lengths[:, None]
    return together, mask, torch.tensor(labels)


class Bucketed(Sampler[list[int]]):
    """Batches of samples of similar length, in a new random order each epoch; each sample once.

    Sorting all samples would give the same batches each time. Sorting a few batches' worth of a shuffled order keeps
    batches random and gets most of the gain.
    """

    def __init__(self, lengths: list[int], batch_size: int, together: int = 8) -> None:
        self.lengths, self.batch_size, self.together = lengths, batch_size, together

    def __len__(self) -> int:
        return math.ceil(len(self.lengths) / self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.randperm(len(self.lengths)).tolist()
        size = self.batch_size * self.together
        chunks = [sorted(order[at : at + size], key=self.lengths.__getitem__) for at in range(0, len(order), size)]
        batches = [chunk[at : at + self.batch_size] for chunk in chunks for at in range(0, len(chunk), self.batch_size)]
        return iter([batches[each] for each in torch.randperm(len(batches)).tolist()])


class MeanOfReal(nn.Module):
    """A classifier of the mean over the real positions of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(FEATURES, 1)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Return a logit for each sequence: the same one whatever it was padded with, and how far."""
        mean = (values * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        logits: Tensor = self.linear(mean).squeeze(1)
        return logits


def loader(dataset: Sequences, asked: argparse.Namespace, *, shuffle: bool) -> DataLoader[Batch]:
    """Return padded batches.

    The timeout ends a job whose /dev/shm is full: with such a collate function torch 2.10 and later wait for ever.
    """
    common = {"collate_fn": padded, "num_workers": asked.workers, "timeout": 120 if asked.workers else 0}
    if shuffle and asked.bucketed:
        return DataLoader(dataset, batch_sampler=Bucketed(dataset.lengths, asked.batch_size), **common)
    return DataLoader(dataset, batch_size=asked.batch_size, shuffle=shuffle, **common)


def main() -> None:
    """Train, then test once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0, help="worker processes of each DataLoader")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--bucketed", action="store_true", help="put samples of similar length together")
    asked = parser.parse_args()
    torch.manual_seed(0)
    train, test = Sequences(2000, seed=1), Sequences(500, seed=2)
    model = MeanOfReal()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for epoch in range(1, asked.epochs + 1):
        seen = positions = real = 0
        for values, mask, labels in loader(train, asked, shuffle=True):
            loss = binary_cross_entropy_with_logits(model(values, mask), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen, positions, real = seen + len(labels), positions + mask.numel(), real + int(mask.sum())
        print(f"epoch {epoch}: {seen} sequences, {100 * (1 - real / positions):.1f} % padding", flush=True)
    with torch.no_grad():
        right = sum(
            int(((model(values, mask) > 0) == (labels > 0)).sum())
            for values, mask, labels in loader(test, asked, shuffle=False)
        )
    print(f"test accuracy {right / len(test):.4f} on {len(test)} unseen sequences", flush=True)


if __name__ == "__main__":
    main()
