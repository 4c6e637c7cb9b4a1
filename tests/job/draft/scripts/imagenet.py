import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

parser = argparse.ArgumentParser(description="PyTorch ImageNet Training")
parser.add_argument("data", metavar="DIR", nargs="?", default="imagenet")
parser.add_argument("-j", "--workers", default=4, type=int)
parser.add_argument("-b", "--batch-size", default=256, type=int)
parser.add_argument("--dist-url", required=True)


def main():
    args = parser.parse_args()
    mp.spawn(main_worker, nprocs=torch.cuda.device_count(), args=(args,))


def main_worker(gpu, args):
    dist.init_process_group("nccl", init_method=args.dist_url, rank=gpu)
    args.batch_size = int(args.batch_size / torch.cuda.device_count())
    train_loader = torch.utils.data.DataLoader(
        object(), batch_size=args.batch_size, num_workers=args.workers, pin_memory=True
    )
    val_loader = torch.utils.data.DataLoader(
        object(), batch_size=args.batch_size, num_workers=args.workers, pin_memory=True
    )
    return train_loader, val_loader


if __name__ == "__main__":
    main()
