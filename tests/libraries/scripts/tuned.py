"""One loop of a library, with as many workers as it is told: `python tuned.py LIBRARY WORKERS`. Data takes its time."""

import sys
import time
from typing import Any

import torch
from common import Model, Rows, optimizer_of, trained
from torch.utils.data import DataLoader

BATCH, EPOCHS = 4, 200


class Slow(Rows):
    """Each sample is waited for, so that workers help; `wait` seconds long."""

    def __init__(self, batches: int, wait: float) -> None:
        super().__init__(batches)
        self.wait = wait

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        time.sleep(self.wait)
        return super().__getitem__(index)


def lightning_fit(workers: int) -> None:
    """Fit, and validate after each epoch."""
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Model()

        def training_step(self, batch: Any, _: int) -> torch.Tensor:
            loss: torch.Tensor = self.model(**batch)["loss"]
            return loss

        def validation_step(self, batch: Any, _: int) -> None:
            self.model(**batch)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return optimizer_of(self)

    train = DataLoader(Slow(20, 0.05), batch_size=BATCH, num_workers=workers, shuffle=True)
    val = DataLoader(Slow(2, 0.0), batch_size=BATCH, num_workers=0)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    lightning.Trainer(max_epochs=EPOCHS, accelerator="cpu", **quiet).fit(Module(), train, val)


def hugging_face(workers: int) -> None:
    """Train, and evaluate every few steps with data that costs nothing."""
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        output_dir="/tmp/out",
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=BATCH,
        eval_strategy="steps",
        eval_steps=10,
        dataloader_num_workers=workers,
        prediction_loss_only=True,
        remove_unused_columns=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    Trainer(Model(), arguments, train_dataset=Slow(40, 0.05), eval_dataset=Slow(1, 0.0)).train()


def torchdata(workers: int) -> None:
    """A plain loop over torchdata's loader."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    model = Model()
    optimizer = optimizer_of(model)
    loader = StatefulDataLoader(Slow(40, 0.05), batch_size=BATCH, num_workers=workers)
    for _ in range(EPOCHS):
        for batch in loader:
            trained(model, optimizer, batch["values"])


if __name__ == "__main__":
    {each.__name__: each for each in (lightning_fit, hugging_face, torchdata)}[sys.argv[1]](int(sys.argv[2]))
