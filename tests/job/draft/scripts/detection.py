import torch
import torch.multiprocessing
from torch.utils.data import DataLoader

torch.multiprocessing.set_sharing_strategy("file_system")


def pad(batch):
    images, boxes = zip(*batch)
    return torch.stack(images), torch.nn.utils.rnn.pad_sequence(boxes, batch_first=True)


def train():
    torch.multiprocessing.set_start_method("spawn", force=True)
    trainloader = DataLoader(
        [], batch_size=2, num_workers=4, prefetch_factor=8, persistent_workers=True, collate_fn=lambda b: tuple(zip(*b))
    )
    padded_loader = DataLoader([], batch_size=2, num_workers=4, collate_fn=pad, pin_memory=torch.cuda.is_available())
    return trainloader, padded_loader


train()
