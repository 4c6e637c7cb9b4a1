"""What the scripts of this folder share: samples of 64 KiB, and a model whose step takes a while."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch.utils.data import Dataset

BATCH = 16  # samples of 64 KiB: 1 MiB
EPOCHS = 3


def step_takes() -> None:
    """Let the workers fill their queues, as a real step does."""
    time.sleep(0.06)


class Rows(Dataset[Any]):
    """Named samples, as many as make so many batches."""

    def __init__(self, batches: int = 14) -> None:
        self.length = batches * BATCH

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        if not 0 <= index < self.length:
            raise IndexError(index)
        return {"values": torch.full((16384,), float(index))}


class Model(torch.nn.Module):
    """One weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, values: torch.Tensor) -> dict[str, torch.Tensor]:
        step_takes()
        return {"loss": (self.weight * values.mean()).square().sum(), "logits": values[:, :1].clone()}


def trained(model: Model, optimizer: torch.optim.Optimizer, values: torch.Tensor) -> None:
    """Make one step."""
    optimizer.zero_grad()
    model(values)["loss"].backward()
    optimizer.step()


def optimizer_of(model: torch.nn.Module) -> torch.optim.Optimizer:
    """Return a plain one."""
    return torch.optim.SGD(model.parameters(), lr=1e-9)
