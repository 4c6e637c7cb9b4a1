"""Trains ResNet-50 on JPEGs of 500×375 that are decoded, cropped and resized, and prints images per second to the end.

    SECONDS=15 python train.py FOLDER [--workers N] [--device cpu]

The DataLoader states no num_workers without --workers, as many scripts do.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import time
from pathlib import Path

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet18, resnet50
from torchvision.transforms import v2

COUNT, EPOCH = 256, 1 << 20
BATCH = 128


class Photographs(Dataset[tuple[torch.Tensor, int]]):
    """Many samples of a few files, which the page cache holds: decoding is what they cost."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted(folder.glob("*.jpg")) or written(folder)
        self.seen = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), v2.PILToTensor()])

    def __len__(self) -> int:
        return EPOCH

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        with Image.open(io.BytesIO(self.files[index % COUNT].read_bytes())) as image:
            return self.seen(image.convert("RGB")), index % 1000


def written(folder: Path) -> list[Path]:
    """Write photographs of noise that is smooth enough to be as large as real ones, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(COUNT):
        noise = random.Random(number)  # noqa: S311 - pictures
        rough = Image.frombytes("RGB", (63, 47), noise.randbytes(63 * 47 * 3))
        paths.append(folder / f"{number:03}.jpg")
        rough.resize((500, 375)).save(paths[-1], quality=90)
    return paths


def main() -> None:
    """Train for so long, then print the rate without the first ten batches."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    seconds = float(os.environ["SECONDS"])
    stated = {} if args.workers is None else {"num_workers": args.workers}
    batch = BATCH if args.device == "cuda" else 4
    loader = DataLoader(Photographs(args.folder), batch, shuffle=True, pin_memory=args.device == "cuda", **stated)
    model = (resnet50 if args.device == "cuda" else resnet18)().to(args.device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    begun = count = 0.0
    for number, (images, labels) in enumerate(loader):
        with torch.autocast(args.device, torch.bfloat16):
            moved = images.to(args.device, non_blocking=True).float() / 255
            loss = torch.nn.functional.cross_entropy(model(moved), labels.to(args.device, non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number == (10 if args.device == "cuda" else 1):
            loss.item()
            begun = time.perf_counter()
        count += batch * (begun > 0)
        if begun and time.perf_counter() - begun > seconds:
            break
    loss.item()
    print(f"images per second {(count - batch) / (time.perf_counter() - begun):.1f}", flush=True)


if __name__ == "__main__":
    main()
