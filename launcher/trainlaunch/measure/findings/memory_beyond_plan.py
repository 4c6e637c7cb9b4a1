"""What takes more memory or /dev/shm than is planned."""

from __future__ import annotations

from trainlaunch.diagnostics import Severity
from trainlaunch.measure.finding import Facts, Wording, defect
from trainlaunch.units import counted, human_size


@defect("TL713")
def copy_on_write_growth(facts: Facts) -> Wording:
    """Facts: `bytes` of objects, most of them under `path`, the `total` of all copies, the `limit`, numbers."""
    size, total, limit = (human_size(int(facts[each])) for each in ("bytes", "total", "limit"))
    workers, ranks = int(facts["num_workers"]), int(facts["ranks"])
    of_ranks = f" of {ranks} ranks" if ranks > 1 else ""
    return Wording(
        f"the dataset holds {size} of Python objects, most in {facts['path']}; {counted(workers, 'worker')}{of_ranks}"
        f" will copy up to {total}, of {limit} of memory",
        "keep them in one array, as numpy.array(list) or a tensor, or use fewer workers",
        why="reading an object writes to its reference counter, so a forked worker gets its own copy of the page",
        severity=Severity.ERROR if int(facts["total"]) >= int(facts["limit"]) else Severity.WARNING,
    )


@defect("TL714")
def in_memory_dataset(facts: Facts) -> Wording:
    """Facts: `bytes`, most under `path`, `copies` in each of `ranks`, their `total`, the `limit` of memory."""
    size, total, limit = (human_size(int(facts[each])) for each in ("bytes", "total", "limit"))
    copies, ranks, workers = int(facts["copies"]), int(facts["ranks"]), int(facts["num_workers"])
    of_workers = f"{counted(workers, 'worker')} started by {facts['start_method']}" if copies > 1 else ""
    holders = " and ".join(each for each in (f"{ranks} ranks" if ranks > 1 else "", of_workers) if each)
    each_one = f", and {holders} have their own: {total}" if holders else ""
    fork = ', or multiprocessing_context="fork", which shares it' if copies > 1 else ""
    return Wording(
        f"the dataset holds {size} in memory, most in {facts['path']}{each_one}, of {limit}",
        f'map the file: numpy.load(path, mmap_mode="r") or torch.load(path, mmap=True){fork}',
        why="a file that is mapped is in memory once for all processes; what is read into a process is its own",
        severity=Severity.ERROR if int(facts["total"]) >= int(facts["limit"]) else Severity.WARNING,
    )


@defect("TL715")
def cache_per_rank(facts: Facts) -> Wording:
    """Facts: `path`, `bytes_per_sample`, `samples`, `total` in all processes, `limit`, and the loader's numbers."""
    each, total, limit = (human_size(int(facts[name])) for name in ("bytes_per_sample", "total", "limit"))
    workers, ranks, samples = (int(facts[name]) for name in ("num_workers", "ranks", "samples"))
    processes = counted(workers, "worker") if workers else "the process"
    of_ranks = f" of {ranks} ranks" if ranks > 1 else ""
    lost = workers > 0 and not facts["persistent_workers"]
    comes_to = "and loses it with each epoch" if lost else f"and comes to hold {total}, of {limit} of memory"
    holder = "each of " if workers > 1 or ranks > 1 else ""
    return Wording(
        f"{facts['path']} keeps {each} of each of {samples} samples, and {holder}{processes}{of_ranks} fills its own,"
        f" {comes_to}",
        'write what is costly to a file once, and map it: numpy.load(path, mmap_mode="r")'
        + ("; persistent_workers=True keeps the caches" if lost else ""),
        why="__getitem__ runs in the workers, and no process sees what another has cached",
        severity=Severity.ERROR if not lost and int(facts["total"]) >= int(facts["limit"]) else Severity.WARNING,
    )


@defect("TL723")
def loaders_differ(facts: Facts) -> Wording:
    """Facts: `seen` and `stated`, numbers of loaders; `names`, of those that are set; `places`, of those seen.

    Where the probe ended too soon: `flags` that reach more, and after how many `batches` of an `epoch` of the loader at
    `at` that was.
    """
    seen, stated = int(facts["seen"]), int(facts["stated"])
    names, places = ", ".join(facts["names"]), ", ".join(facts["places"])
    if "flags" in facts:
        epoch = f"of {facts['epoch']} of an epoch " if facts["epoch"] else ""
        return Wording(
            f"{seen} of {stated} loaders ({names}) were read, at {places}",
            f"add {facts['flags']}, which reaches those that the script builds later",
            why=f"it has built no other by then: probe ended after {counted(int(facts['batches']), 'batch')} "
            f"{epoch}at {facts['at']}",
        )
    said = f"data_loader.loaders names {stated} ({names})" if stated else "data_loader is none"
    return Wording(
        f"the script ran {counted(seen, 'loader')} ({places}), and {said}",
        "name every loader of the script in data_loader.loaders, then probe again",
        why="/dev/shm is sized for the loaders that are named; what was measured can't be assigned to them",
    )


@defect("TL724")
def kept_batches(facts: Facts) -> Wording:
    """Facts: `name` of the variable and place `at`, batches `held` of `batches`, `bytes` of one, its `tensors`.

    `storages` of all these are held, with `held_bytes` in pages.
    """
    name, held, done = str(facts["name"]), int(facts["held"]), int(facts["batches"])
    who = f"{name} ({facts['at']})" if name else "the script"
    storages, most = int(facts["storages"]), human_size(int(facts["held_bytes"]))
    part = "a part of " if storages < held * int(facts["tensors"]) else ""
    return Wording(
        f"{who} still uses {part}{held} of {done} batches: {counted(storages, 'file')}, {most} of /dev/shm, and more "
        "with each",
        f"keep copies: {name or 'kept'}.append(batch.clone()), or set pin_memory=True, which copies on a GPU machine",
        why="a tensor that came from a worker stays in /dev/shm, with a file descriptor, while anything leads to it",
    )
