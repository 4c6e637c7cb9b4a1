"""timm: its loader of images, without a GPU's prefetcher, over generated pictures."""

from typing import Any

import torch
from common import EPOCHS, Model, optimizer_of, trained
from PIL import Image
from timm.data import create_loader
from torch.utils.data import Dataset


class Pictures(Dataset[Any]):
    """Grey pictures of one size; timm puts its transform into them."""

    transform: Any = None

    def __len__(self) -> int:
        return 8 * 14

    def __getitem__(self, index: int) -> Any:
        if index >= len(self):
            raise IndexError(index)
        picture = Image.new("RGB", (256, 256), (index % 256,) * 3)
        return self.transform(picture), index % 10


def train_one_epoch(loader: Any, model: Model, optimizer: torch.optim.Optimizer) -> None:
    """Train, as timm's own script does."""
    for pictures, _labels in loader:
        trained(model, optimizer, pictures.flatten(1))


@torch.no_grad()
def validate(loader: Any, model: Model) -> None:
    """Look at each picture."""
    for pictures, _labels in loader:
        model(pictures.flatten(1))


if __name__ == "__main__":
    shared = {"input_size": (3, 224, 224), "batch_size": 8, "num_workers": 2, "use_prefetcher": False}
    train = create_loader(Pictures(), is_training=True, device=torch.device("cpu"), **shared)
    val = create_loader(Pictures(), is_training=False, device=torch.device("cpu"), **shared)
    model = Model()
    optimizer = optimizer_of(model)
    for _ in range(EPOCHS):
        train_one_epoch(train, model, optimizer)
        validate(val, model)
