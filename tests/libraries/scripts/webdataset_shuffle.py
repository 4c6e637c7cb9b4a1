"""WebDataset: batches from workers, shuffled sample by sample in the script's own process."""

import torch
import webdataset as wds
from common import BATCH, EPOCHS, Model, optimizer_of, trained
from torch.utils.data import IterableDataset, get_worker_info


class Shards(IterableDataset):
    """Batches, split among the workers."""

    def __iter__(self):
        worker = get_worker_info()
        for number in range(worker.id, 60, worker.num_workers):
            yield (torch.full((BATCH, 4096), float(number)),)


if __name__ == "__main__":
    loader = wds.WebLoader(Shards(), batch_size=None, num_workers=2)
    loader = loader.unbatched().shuffle(64).batched(BATCH)
    model = Model()
    optimizer = optimizer_of(model)
    for _ in range(EPOCHS):
        for (values,) in loader:
            trained(model, optimizer, values)
