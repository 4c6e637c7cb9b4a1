"""Mosaic Streaming: shards on the disk, read through its own loader."""

import numpy
import torch
from common import BATCH, EPOCHS, Model, optimizer_of, trained
from streaming import MDSWriter, StreamingDataLoader, StreamingDataset

FOLDER = "/tmp/shards"


class Rows(StreamingDataset):
    """Samples as tensors."""

    def __getitem__(self, index):
        return torch.from_numpy(super().__getitem__(index)["values"].copy())


if __name__ == "__main__":
    with MDSWriter(out=FOLDER, columns={"values": "ndarray:float32"}, size_limit=2**22) as writer:
        for number in range(14 * BATCH):
            writer.write({"values": numpy.full(16384, number, dtype=numpy.float32)})
    loader = StreamingDataLoader(Rows(local=FOLDER, batch_size=BATCH, shuffle=True), batch_size=BATCH, num_workers=2)
    model = Model()
    optimizer = optimizer_of(model)
    for _ in range(EPOCHS):
        for values in loader:
            trained(model, optimizer, values)
