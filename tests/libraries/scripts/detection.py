"""torchvision's way of detection: images of different sizes in lists, boxes beside them."""

from typing import Any

import torch
from common import EPOCHS, Model, optimizer_of, trained
from torch.utils.data import DataLoader, Dataset
from torchvision import tv_tensors
from torchvision.transforms import v2


class Scenes(Dataset[Any]):
    """Pictures with one to four boxes."""

    transform = v2.Compose([v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)])

    def __len__(self) -> int:
        return 4 * 14

    def __getitem__(self, index: int) -> Any:
        if index >= len(self):
            raise IndexError(index)
        height, width = 160 + 16 * (index % 4), 192
        picture = tv_tensors.Image(torch.full((3, height, width), index % 256, dtype=torch.uint8))
        boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0]]).repeat(1 + index % 4, 1)
        target = {
            "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(height, width)),
            "labels": torch.ones(len(boxes), dtype=torch.int64),
        }
        return self.transform(picture, target)


def collate(samples: Any) -> Any:
    """Return lists, since sizes differ."""
    return tuple(zip(*samples, strict=True))


if __name__ == "__main__":
    loader = DataLoader(Scenes(), batch_size=4, num_workers=2, shuffle=True, collate_fn=collate)
    model = Model()
    optimizer = optimizer_of(model)
    for _ in range(EPOCHS):
        for pictures, _targets in loader:
            trained(model, optimizer, torch.stack([each.mean() for each in pictures])[:, None])
