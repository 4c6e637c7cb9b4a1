import config
from torch.utils.data import DataLoader


def build(split, batch_size):
    return DataLoader([split], batch_size=batch_size, num_workers=config.NUM_WORKERS)
