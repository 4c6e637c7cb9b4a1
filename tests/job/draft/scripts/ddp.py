import argparse
import os

import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--num_workers", type=int, default=8)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--prefetch_factor", type=int, default=4)
    args = parser.parse_args()
    torch.distributed.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    dataset = torch.load(args.data)
    loader = DataLoader(
        dataset,
        args.batch_size,
        sampler=DistributedSampler(dataset),
        num_workers=args.num_workers,
        prefetch_factor=args.prefetch_factor,
        persistent_workers=True,
    )
    model = DDP(torch.nn.Linear(8, 8).to(rank), device_ids=[rank])
    for batch in loader:
        model(batch).sum().backward()


main()
