"""A data set that opens its file in each worker."""

import h5py
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    """Images of one file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file = None

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> object:
        if self.file is None:
            self.file = h5py.File(self.path, "r")
        return self.file["images"][index]


def main(workers: int) -> None:
    """Read all."""
    for _ in DataLoader(Images("images.h5"), batch_size=4, num_workers=workers):
        pass
