"""The training program of bench/shm_accuracy.py: builds one configuration's DataLoaders and consumes their batches.

    python3 train.py '{"loaders": [...], "program": {...}}'

A slow consumer waits after each batch until no worker has anything left to do, so that the queues are full and
/dev/shm holds the most that these loaders ever put there.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from loops import SHM, Json, consume  # beside this program in the container
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


def value_of(spec: Json, rows: int | None = None) -> torch.Tensor:
    """Return a new tensor of `spec`'s shape and dtype, with its first dimension cut to `rows`."""
    shape = list(spec["shape"])
    if rows is not None:
        shape[0] = rows
    return torch.zeros(shape, dtype=getattr(torch, spec["dtype"]))


def arranged(values: list[Any], structure: str) -> Any:
    """Return a sample's values as the configuration wants them: tuple, dict, nested or mixed."""
    if structure == "dict":
        return {f"field{i}": value for i, value in enumerate(values)}
    if structure == "nested":
        return {"image": values[0], "meta": {"label": values[1], "boxes": tuple(values[2:])}}
    if structure == "mixed":  # default_collate makes an int64 and a float64 tensor of the numbers and none of the text
        return (*values, 7, 0.5, "a name")
    return values[0] if len(values) == 1 else tuple(values)


class Samples(Dataset[Any]):
    """A map-style dataset; `resident` tensors stay inside it, as those of a dataset that is loaded at start."""

    def __init__(self, loader: Json, program: Json, length: int) -> None:
        self.specs, self.program, self.length = loader["sample"], program, length
        self.resident = [torch.zeros(size, dtype=torch.uint8) for size in program.get("resident", [])]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        program = self.program
        if program.get("ragged"):
            longest = self.specs[0]["shape"][0]  # of every second batch of 8
            return value_of(self.specs[0], rows=longest if index % 16 == 0 else longest // 2)
        values: list[Any] = [value_of(each) for each in self.specs]
        if program.get("numpy"):
            values = [each.numpy() for each in values]
        return arranged(values, program.get("structure", "tuple"))


class Stream(IterableDataset[Any]):
    """An iterable dataset that its workers share: each yields an equal part."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        return (self.samples[i] for i in range(first, len(self.samples), step))


def as_list(samples: list[Any]) -> list[Any]:
    """Keep the samples apart: one storage for each of their tensors."""
    return samples


def as_numpy(samples: list[Any]) -> Any:
    """Stack to a numpy array, which travels through the worker's pipe."""
    import numpy as np

    return np.stack(samples)


def own_stack(samples: list[Any]) -> Any:
    """Stack in ordinary memory, as most hand-written collate functions do; the worker's feeder thread copies it."""
    return torch.stack(samples)


def padded(samples: list[Any]) -> Any:
    """Pad to the longest sample of the batch."""
    return torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)


def sliced(samples: list[Any]) -> Any:
    """Fill a buffer for twice as many and return the part that is used: the whole buffer travels."""
    stacked = torch.stack(samples)
    buffer = stacked.new_zeros(len(samples), 2 * stacked.shape[1])
    buffer[:, : stacked.shape[1]] = stacked
    return buffer[:, : stacked.shape[1]]


def shifted(samples: list[Any]) -> Any:
    """Return inputs and targets as two views of one storage, as language models have them."""
    stacked = torch.stack(samples)
    return stacked[:, :-1], stacked[:, 1:]


def csr(sample: Any) -> Any:
    """Make a sparse matrix of its three storages."""
    rows, columns, values = sample
    rows += torch.arange(len(rows)) * (len(values) // (len(rows) - 1))
    return torch.sparse_csr_tensor(rows, columns, values, size=(len(rows) - 1, len(values)))


COLLATE: dict[str, Callable[[list[Any]], Any]] = {
    "list": as_list, "none": as_numpy, "own": own_stack, "padded": padded, "sliced": sliced, "shifted": shifted,
    "csr": csr,
}  # fmt: skip


def batches_of(loader: Json) -> int:
    """Return batches enough to fill the queue, to hold what is held, and to go on like that for a while."""
    workers, held = loader["num_workers"], loader["batches_held"]
    return int(workers * loader["prefetch_factor"] + 2 * workers + 2 * held + 4)


def dataset_of(loader: Json, program: Json, batches: int) -> Dataset[Any]:
    """Return a dataset that gives `batches` batches."""
    samples = Samples(loader, program, batches * (loader["batch_size"] or 1))
    return Stream(samples) if program.get("iterable") else samples


def loader_of(loader: Json, program: Json, dataset: Dataset[Any]) -> DataLoader[Any]:
    """Return the DataLoader that the job file describes."""
    only_with_workers: Json = {}
    if loader["num_workers"]:
        only_with_workers = {
            "prefetch_factor": loader["prefetch_factor"],
            "persistent_workers": loader["persistent_workers"],
            "multiprocessing_context": program["multiprocessing_context"],
        }
    collate = COLLATE.get(program.get("collate") or loader["collate"])
    return DataLoader(
        dataset,
        batch_size=loader["batch_size"],
        num_workers=loader["num_workers"],
        collate_fn=collate,
        **only_with_workers,
    )


def main() -> None:
    """Build and consume what the only argument says."""
    told = json.loads(sys.argv[1])
    specs, program = told["loaders"], told["program"]
    torch.set_num_threads(1)
    choose_strategy: Callable[[str], None] = torch.multiprocessing.set_sharing_strategy
    choose_strategy(program["sharing_strategy"])
    if "library" in program:
        from libraries import LIBRARIES

        LIBRARIES[program["library"]](specs, program)
        return
    if program.get("gloo"):
        dist.init_process_group("gloo")
    if "other_owner" in program:
        Path(SHM, "other-owner").write_bytes(b"\0" * program["other_owner"])
    for number in range(program.get("small_files", 0)):
        Path(SHM, f"small-{number}").write_bytes(b"\0")
    batches = max(math.ceil(batches_of(each) / program.get("epochs", 1)) for each in specs)
    batches = max(batches, *(each["num_workers"] * each["prefetch_factor"] + 4 for each in specs))
    datasets = [dataset_of(each, program, batches) for each in specs]
    if program.get("one_dataset"):
        datasets = [datasets[0]] * len(specs)
    consume([loader_of(*each) for each in zip(specs, [program] * len(specs), datasets, strict=True)], specs, program)
    if program.get("gloo"):
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
