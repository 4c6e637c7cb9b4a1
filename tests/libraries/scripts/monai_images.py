"""MONAI: volumes with meta data, and random crops."""

import torch
from common import EPOCHS, Model, optimizer_of, trained
from monai.data import DataLoader, Dataset
from monai.transforms import Compose, EnsureTyped, RandSpatialCropd

if __name__ == "__main__":
    files = [{"image": torch.rand(1, 72, 72, 18), "label": torch.zeros(1, 72, 72, 18)} for _ in range(14 * 4)]
    names = ["image", "label"]
    crops = RandSpatialCropd(keys=names, roi_size=(64, 64, 16), random_size=False)
    dataset = Dataset(files, Compose([EnsureTyped(keys=names), crops]))
    loader = DataLoader(dataset, batch_size=4, num_workers=2, shuffle=True)
    model = Model()
    optimizer = optimizer_of(model)
    for _ in range(EPOCHS):
        for batch in loader:
            trained(model, optimizer, batch["image"].as_tensor().flatten(1))
