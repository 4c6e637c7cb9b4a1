"""The same with Lightning: EXCEPTION in the fourth training step of rank 0 of N processes."""

from __future__ import annotations

import sys

import lightning
import torch
from torch.utils.data import DataLoader
from train import Samples, fail


class Model(lightning.LightningModule):
    """A layer whose fourth step fails."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        if index == 3 and self.global_rank == 0:
            fail(sys.argv[1])
        return self.layer(batch).sum()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.1)


if __name__ == "__main__":
    ranks = int(sys.argv[2])
    trainer = lightning.Trainer(
        accelerator="cpu", devices=ranks, strategy="ddp" if ranks > 1 else "auto", max_epochs=1, logger=False,
        enable_checkpointing=False,
    )  # fmt: skip
    trainer.fit(Model(), DataLoader(Samples(""), batch_size=2))
