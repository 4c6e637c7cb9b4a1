"""A data set of an HDF5 file."""

import h5py
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    """Images of one file."""

    def __init__(self, path: str) -> None:
        self.file = h5py.File(path, "r")

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> object:
        return self.file["images"][index]


def main() -> None:
    """Read all."""
    for _ in DataLoader(Images("images.h5"), batch_size=4, num_workers=4):
        pass
