"""Trains on handwritten digits with Lightning, which starts the ranks after the first one itself."""

from __future__ import annotations

import argparse

import lightning
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


class Data(lightning.LightningDataModule):
    """The digits to train on, and those kept for validation."""

    def __init__(self, batch_size: int, workers: int) -> None:
        super().__init__()
        self.batch_size, self.workers = batch_size, workers
        digits = load_digits()
        kept = np.arange(len(digits.target)) % 4 > 0
        self.train, self.unseen = (Digits(digits.images[part], digits.target[part]) for part in (kept, ~kept))

    def train_dataloader(self) -> DataLoader[tuple[Tensor, Tensor]]:
        """Return all batches: Lightning puts a DistributedSampler in front where there are several ranks."""
        return self._loader(self.train, shuffle=True)

    def val_dataloader(self) -> DataLoader[tuple[Tensor, Tensor]]:
        """Return the unseen digits; its workers live beside those of the training loader."""
        return self._loader(self.unseen, shuffle=False)

    def _loader(self, dataset: Digits, *, shuffle: bool) -> DataLoader[tuple[Tensor, Tensor]]:
        """Return batches from workers that persist.

        Lightning holds an epoch's iterator until it has the next one: other workers would be there twice for a while.
        """
        return DataLoader(
            dataset,
            batch_size=self.batch_size,
            num_workers=self.workers,
            persistent_workers=self.workers > 0,
            shuffle=shuffle,
        )


class Classifier(lightning.LightningModule):
    """A small network for ten digits."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def training_step(self, batch: tuple[Tensor, Tensor], _: int) -> Tensor:
        """Return the loss."""
        images, labels = batch
        return cross_entropy(self.network(images), labels)

    def validation_step(self, batch: tuple[Tensor, Tensor], _: int) -> None:
        """Count over all ranks: `sync_dist` adds up what each saw."""
        images, labels = batch
        right = (self.network(images).argmax(1) == labels).sum().float()
        self.log("right", right, on_epoch=True, reduce_fx="sum", sync_dist=True)
        self.log("total", float(len(labels)), on_epoch=True, reduce_fx="sum", sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return AdamW."""
        return torch.optim.AdamW(self.parameters(), lr=0.02)


def main() -> None:
    """Train and validate; rank 0 speaks for all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0, help="worker processes of each DataLoader and rank")
    parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=1, help="processes on this machine")
    asked = parser.parse_args()
    lightning.seed_everything(0, verbose=False)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=asked.ranks,
        strategy="ddp" if asked.ranks > 1 else "auto",
        max_epochs=asked.epochs,
        val_check_interval=0.5,  # in the middle of an epoch too, as long epochs want it
        # Nothing is written: the working directory may be read-only.
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(), datamodule=Data(asked.batch_size, asked.workers))
    right, total = (int(trainer.callback_metrics[each]) for each in ("right", "total"))
    if trainer.is_global_zero:
        print(f"test accuracy {right / total:.4f} on {total} unseen digits, {trainer.world_size} ranks", flush=True)


if __name__ == "__main__":
    main()
