import argparse

import lightning as L
from torch.utils.data import DataLoader, random_split
from torchvision.datasets import CIFAR10


class CifarData(L.LightningDataModule):
    def __init__(self, folder: str, batch_size: int = 32, num_workers: int = 0):
        super().__init__()
        self.save_hyperparameters()
        self.num_workers = num_workers

    def setup(self, stage):
        full = CIFAR10(self.hparams.folder)
        self.train_set, self.val_set = random_split(full, [45000, 5000])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.hparams.batch_size, num_workers=self.num_workers, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=256, num_workers=self.num_workers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=128)
    options = vars(parser.parse_args())
    data = CifarData("data", batch_size=options["batch_size"], num_workers=options["workers"])
    trainer = L.Trainer(max_epochs=3, devices=2, strategy="ddp")
    trainer.fit(object(), datamodule=data)


main()
