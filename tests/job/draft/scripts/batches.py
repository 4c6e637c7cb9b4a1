from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler


class Shards(IterableDataset):
    def __iter__(self):
        yield from ()


stream_loader = DataLoader(Shards(), batch_size=None, num_workers=2)
plain = DataLoader([1, 2], shuffle=True)
sampled = DataLoader([1, 2], batch_sampler=BatchSampler(SequentialSampler([1, 2]), 2, False), num_workers=2)
for workers in (0, 2, 4):
    swept = DataLoader([1, 2], 8, num_workers=workers)
