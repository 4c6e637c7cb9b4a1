"""A training that ends as its arguments say: EXCEPTION at step 3 of RANK, with what HOW adds before or after."""

from __future__ import annotations

import argparse
import atexit
import logging
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class OutOfDataError(Exception):
    """An exception of the script's own."""


def fail(name: str) -> None:
    """Raise an exception as a script does that has a mistake."""
    config: dict[str, int] = {}
    values = [1, 2]
    if name == "KeyError":
        print(config["accuracy"])  # here
    elif name == "IndexError":
        print(values[7])  # here
    elif name == "TypeError":
        len(3)  # type: ignore[arg-type] # here
    elif name == "ZeroDivisionError":
        len(config) / len(config)  # here
    elif name == "AttributeError":
        print(values.size)  # type: ignore[attr-defined] # here
    elif name == "ValueError":
        int("many")  # here
    elif name == "RuntimeError":
        torch.zeros(2, 3) @ torch.zeros(2, 3)  # here
    elif name == "FileNotFoundError":
        Path("/data/annotations.json").read_text(encoding="utf-8")  # here
    elif name == "AssertionError":
        assert not values, "labels and images differ"  # here
    elif name == "NotImplementedError":
        raise NotImplementedError  # here
    elif name == "UnicodeDecodeError":
        b"\xff".decode()  # here
    else:
        raise OutOfDataError("epoch 2 has no samples")  # here


class Samples(Dataset):
    """Samples of which the fourth fails, where a worker is to fail."""

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.fault and index == 9:
            fail(self.fault)
        return torch.zeros(4)


def before(how: str) -> None:
    """Meet an error, and go on."""
    if how == "caught":
        try:
            raise ConnectionResetError(104, "Connection reset by peer")
        except OSError:
            logging.exception("download failed, attempt 1 of 3")
        try:
            torch.load("/ckpt/last.pt")
        except FileNotFoundError as error:
            print(f"no checkpoint ({error}), starting from scratch", flush=True)
    elif how == "abort":
        atexit.register(os.abort)


def main() -> None:
    """Train, and fail."""
    parser = argparse.ArgumentParser()
    parser.add_argument("exception")
    parser.add_argument("--how", default="")
    parser.add_argument("--rank", type=int, default=0)
    args = parser.parse_args()
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        dist.init_process_group("gloo")
    before(args.how)
    loader = DataLoader(
        Samples(args.exception if args.how == "worker" else ""), batch_size=2, num_workers=args.how == "worker"
    )
    for step, batch in enumerate(loader):
        if world > 1:
            dist.all_reduce(batch)
        print(f"rank {rank} step {step} loss {batch.sum().item() + 1 / (step + 1):.3f}", flush=True)
        if step == 3 and rank == args.rank % world and args.how != "worker":
            fail(args.exception)
    print("done", file=sys.stderr)


if __name__ == "__main__":
    main()
