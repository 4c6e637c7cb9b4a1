"""Fits a linear model on samples that are sharded over all ranks, and proves that the ranks did it together.

Every rank sees its own part of the data only. Gradients are averaged by all-reduce (DistributedDataParallel), so all
ranks end with the same weights, and those are the ones that the whole data was made with.
"""

from __future__ import annotations

import argparse
import os
import socket

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

FEATURES, SAMPLES = 16, 2048


def made_data() -> tuple[TensorDataset, Tensor]:
    """Return samples with their numbers, the same on every rank, and the weights that made their targets."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(SAMPLES, FEATURES, generator=generator)
    weights = torch.randn(FEATURES, 1, generator=generator)
    return TensorDataset(inputs, inputs @ weights, torch.arange(SAMPLES)), weights


def train(asked: argparse.Namespace, data: TensorDataset) -> tuple[nn.Linear, Tensor]:
    """Train, and return the model and how often this rank saw each sample."""
    sampler: DistributedSampler[Tensor] = DistributedSampler(data, shuffle=True, seed=0)
    loader = DataLoader(data, batch_size=asked.batch_size, num_workers=asked.workers, sampler=sampler)
    torch.manual_seed(dist.get_rank())  # every rank starts elsewhere: DDP sends rank 0's weights to all
    model = nn.Linear(FEATURES, 1, bias=False)
    together = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(together.parameters(), lr=0.1)
    seen = torch.zeros(SAMPLES, dtype=torch.int64)
    for epoch in range(asked.epochs):
        sampler.set_epoch(epoch)
        for inputs, targets, numbers in loader:
            loss = mse_loss(together(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen[numbers] += 1
    return model, seen


def main() -> None:
    """Train on all ranks, then compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0, help="worker processes of the DataLoader")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=4)
    asked = parser.parse_args()
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {ranks} on {socket.gethostname()}, {os.environ['GROUP_WORLD_SIZE']} nodes", flush=True)
    data, weights = made_data()
    model, seen = train(asked, data)
    error = float((model.weight.detach().T - weights).abs().max())
    everywhere = [torch.empty_like(model.weight) for _ in range(ranks)]
    dist.all_gather(everywhere, model.weight.detach())
    dist.all_reduce(seen)
    dist.destroy_process_group()
    assert all(torch.equal(each, everywhere[0]) for each in everywhere), "the ranks have different weights"
    assert bool((seen == asked.epochs).all()), "a sample was missed, or seen by two ranks"
    assert error < 0.01, f"the weights are off by {error}"
    if rank == 0:
        print(f"all {ranks} ranks agree; each of {SAMPLES} samples was seen once an epoch", flush=True)


if __name__ == "__main__":
    main()
