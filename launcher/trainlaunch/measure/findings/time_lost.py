"""Time that goes elsewhere than into training."""

from __future__ import annotations

from trainlaunch.measure.finding import Facts, Wording, defect
from trainlaunch.units import counted, human_size


@defect("TL718")
def iterators_rebuilt(facts: Facts) -> Wording:
    """Facts: `iterators` for `batches`, `seconds` of one start, `num_workers`, `length` of an epoch or None."""
    iterators, batches, workers = (int(facts[each]) for each in ("iterators", "batches", "num_workers"))
    each = float(facts["seconds"])
    return Wording(
        f"the script starts {counted(workers, 'worker')} {iterators} times for {counted(batches, 'batch')}: "
        f"{each:.2g} s each, "
        f"{each * iterators:.2g} s together",
        "keep one iterator until it ends (batches = iter(loader), then next(batches)), or set num_workers=0",
        why="iter(loader) starts all workers, and what they prepared is thrown away with it",
    )


@defect("TL719")
def no_pin_memory(facts: Facts) -> Wording:
    """Facts: `bytes` that were copied, `seconds` from pageable and `pinned_seconds` from pinned memory."""
    pageable, pinned = float(facts["seconds"]) * 1000, float(facts["pinned_seconds"]) * 1000
    size = human_size(int(facts["bytes"]))
    return Wording(
        f"a batch of {size} takes {pageable:.3g} ms to the GPU, and {pinned:.3g} ms from pinned memory",
        'pin_memory=True in DataLoader(...), and batch.to("cuda", non_blocking=True)',
        why="the driver copies pageable memory on a CPU first, and the script waits for that",
    )


@defect("TL720")
def no_persistent_workers(facts: Facts) -> Wording:
    """Facts: `seconds` of a start, `epoch_seconds` of its `batches` without that, `num_workers`."""
    start, epoch = float(facts["seconds"]), float(facts["epoch_seconds"])
    batches, workers = int(facts["batches"]), int(facts["num_workers"])
    return Wording(
        f"each epoch starts {counted(workers, 'worker')}, which takes {start:.2g} s, and then lasts {epoch:.2g} s "
        f"({counted(batches, 'batch')})",
        "persistent_workers=True in DataLoader(...), if there is more than one epoch",
        why="without it workers end with each epoch, and the next ones import, copy the dataset and open files again",
    )


@defect("TL721")
def slow_collate(facts: Facts) -> Wording:
    """Facts: `collate_seconds` of the `fetch_seconds` of a batch, the share of the script's time that is `waiting`."""
    collate, fetch = float(facts["collate_seconds"]) * 1000, float(facts["fetch_seconds"]) * 1000
    waiting, name = float(facts["waiting"]), str(facts["collate_fn"])
    return Wording(
        f"{name} takes {collate:.3g} of the {fetch:.3g} ms of a batch, and the script waits {waiting:.0%} of its time",
        "make tensors in __getitem__, and only stack them in collate_fn: torch.stack(images)",
        why="collate_fn runs for each batch in the worker that read it, after its last sample",
    )


@defect("TL722")
def padding_waste(facts: Facts) -> Wording:
    """Facts: the `tensor`, the `share` that is padding, its `longest` row, the `mean` without, who pads (`by`)."""
    share, longest, mean = float(facts["share"]), int(facts["longest"]), float(facts["mean"])
    where = f"batch{facts['tensor']}"
    alike = "put samples of like length into one batch (a batch_sampler over indices sorted by length)"
    own = f"pad in collate_fn to the longest of the batch, not in the dataset to {longest}; then {alike}"
    return Wording(
        f"{share:.0%} of {where} is padding: rows of {longest} hold {mean:.0f} on average",
        own if facts["by"] == "dataset" else alike,
        why="padding is loaded, copied and computed like data",
    )
