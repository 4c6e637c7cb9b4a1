"""Lightning: fit with a validation after each epoch."""

from typing import Any

import lightning
import torch
from common import BATCH, EPOCHS, Model, Rows, optimizer_of
from torch.utils.data import DataLoader


class Module(lightning.LightningModule):
    """The model, and what is done with it."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        """Return the loss of one batch."""
        loss: torch.Tensor = self.model(**batch)["loss"]
        return loss

    def validation_step(self, batch: Any, _: int) -> None:
        """Look at one batch."""
        self.model(**batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return a plain one."""
        return optimizer_of(self)


if __name__ == "__main__":
    train = DataLoader(Rows(), batch_size=BATCH, num_workers=2, shuffle=True)
    val = DataLoader(Rows(), batch_size=BATCH, num_workers=2)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    lightning.Trainer(max_epochs=EPOCHS, accelerator="cpu", **quiet).fit(Module(), train, val)
