"""Workers that repeat what others draw or yield, and those that yield nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainlaunch.diagnostics import Severity
from trainlaunch.measure.finding import Facts, Wording, defect
from trainlaunch.units import counted


@defect("TL708")
def repeated_augmentation(facts: Facts) -> Wording:
    """Facts: `generator`, its path; `class`; `others`; `how`: `equal`, `low bits` or `each sample`; `num_workers`."""
    generator, workers = str(facts["generator"]), int(facts["num_workers"])
    if facts["how"] == "each sample":
        return Wording(
            f"reading a sample seeds {generator}, each time alike: all samples draw the same random numbers",
            "drop that seed, or make a generator from the index: np.random.default_rng((seed, index))",
            why="a seed in __getitem__ puts the generator back to where it was for the sample before",
        )
    if facts["how"] == "low bits":
        return Wording(
            f"worker_init_fn seeds {generator} without the low 32 bits of torch.initial_seed()",
            f"in worker_init_fn: {seeding(generator, str(facts['class']))}",
            why="`//` drops the bits that tell near seeds apart; `%` keeps them, and the worker's number with them",
        )
    draw = f"all {workers} workers draw" if workers > 1 else "with num_workers above 1, all workers would draw"
    return Wording(
        f"{draw} the same random numbers from {generator} ({facts['class']}){more(facts)}",
        f"in worker_init_fn: {seeding(generator, str(facts['class']))}",
        why="each worker gets a copy of the generator in the same state, and torch seeds only torch, random and "
        "numpy.random in workers",
        severity=Severity.ERROR if workers > 1 else Severity.WARNING,
    )


@defect("TL709")
def repeated_epochs(facts: Facts) -> Wording:
    """Facts: `generator`, its path; `class`; paths of `others`; `num_workers` of the script."""
    generator, kind = str(facts["generator"]), str(facts["class"])
    workers = int(facts["num_workers"])
    draw = "draws" if workers else "would with num_workers above 0 draw"
    return Wording(
        f"each epoch {draw} the random numbers of the first again from {generator} ({kind}){more(facts)}",
        f"in worker_init_fn: {seeding(generator, kind)}",
        why="each epoch's workers start from a copy of the main process, where the generator has not moved; "
        "torch.initial_seed() is another in each epoch",
    )


@defect("TL710")
def unsharded_iterable(facts: Facts) -> Wording:
    """Facts: `samples` of each worker, whether the stream `ended`, the script's `num_workers`.

    `part`: the position of what is equal in each sample, None where all of it is.
    """
    samples, workers = int(facts["samples"]), int(facts["num_workers"])
    part = f"all {samples} samples" if facts["ended"] else f"the same first {samples} samples"
    if facts.get("part") is not None:
        part = f"the same {samples} samples, differently augmented ([{int(facts['part'])}] of each is equal)"
    who = (
        f"each of the {workers} workers yields" if workers > 1 else "with num_workers above 1, each worker would yield"
    )
    return Wording(
        f"{who} {part} of the dataset",
        "in __iter__, take a worker's share: itertools.islice(samples, info.id, None, info.num_workers), where info is "
        "torch.utils.data.get_worker_info()",
        why="each worker iterates a copy of the dataset, so N workers give every sample N times",
        severity=Severity.ERROR if workers > 1 else Severity.WARNING,
    )


@defect("TL731")
def epoch_never_set(facts: Facts) -> Wording:
    """Facts: the sampler's `epoch`, and how many `epochs` began with it."""
    return Wording(
        f"{counted(int(facts['epochs']), 'epoch')} began with epoch {int(facts['epoch'])} of the DistributedSampler",
        "call sampler.set_epoch(epoch) before each epoch's loop",
        why="it shuffles by its seed and its epoch alone, so each epoch has the order of the first",
    )


@defect("TL711")
def idle_workers(facts: Facts) -> Wording:
    """Facts: numbers of the `idle` workers, how many are `busy`, `num_workers`, `shards` as the dataset tells it."""
    idle, busy, workers = len(facts["idle"]), int(facts["busy"]), int(facts["num_workers"])
    shards = facts["shards"]
    stated = f": the dataset has {counted(int(shards), 'shard')}" if shards is not None else ""
    return Wording(
        f"{idle} of {workers} workers yield no sample{stated}",
        f"num_workers={busy}, or split the data into {workers} shards or more",
        why="whole shards are given to workers; those beyond the number of shards get none, and only take memory",
    )


def seeding(generator: str, kind: str) -> str:
    """Return the line of a worker_init_fn that seeds a generator of that class differently in each worker and epoch."""
    if generator in {"numpy.random", "random"}:
        module = "np.random" if generator == "numpy.random" else generator
        return f"{module}.seed(torch.initial_seed() % 2**32)"
    if generator == "torch":
        return "drop the call of torch.manual_seed: torch has seeded each worker"
    own = f"torch.utils.data.get_worker_info().{generator}" if generator.startswith("dataset.") else generator
    made = {
        "numpy.random.Generator": f"{own} = np.random.default_rng(torch.initial_seed() % 2**32)",
        "numpy.random.RandomState": f"{own}.seed(torch.initial_seed() % 2**32)",
        "random.Random": f"{own}.seed(torch.initial_seed())",
        "torch.Generator": f"{own}.manual_seed(torch.initial_seed())",
    }
    return made[kind]


def more(facts: Mapping[str, Any]) -> str:
    """Return which `others` repeat beside the generator that is named; empty where none does."""
    others = [str(each) for each in facts.get("others", ())]
    return f", and from {', '.join(others)}" if others else ""
