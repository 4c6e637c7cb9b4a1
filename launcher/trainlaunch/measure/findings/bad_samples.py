"""Samples and last batches that stop a job, or that training or evaluation shouldn't have."""

from __future__ import annotations

from trainlaunch.diagnostics import Severity
from trainlaunch.measure.finding import Facts, Wording, defect
from trainlaunch.units import counted


@defect("TL704")
def sample_exception(facts: Facts) -> Wording:
    """Facts: `index`, `file`, the `error`, its `message`, `at` and `function`, `raised_again`, `found` of `tried`."""
    text, error, found = str(facts["message"]), str(facts["error"]), int(facts["found"])
    return Wording(
        f"{sample(facts)} raises {error}{': ' if text else ''}{text} at {facts['at']} in {facts['function']}"
        + (f", as do {found - 1} more of {counted(int(facts['tried']), 'sample')} that were read" if found > 1 else ""),
        f"correct what {facts['at']} does with {facts['file'] or 'that sample'}, or leave it out of the dataset",
        why="one such sample ends the whole job when its turn comes"
        if facts["raised_again"]
        else f"torch can't build {error} again from a worker's, so the job would show another error in its place",
        severity=Severity.ERROR,
    )


@defect("TL705")
def none_sample(facts: Facts) -> Wording:
    """Facts: `index`, `file`, the `path` of what is None in the sample, `found` of `tried`."""
    path, found, tried = str(facts["path"]), int(facts["found"]), int(facts["tried"])
    whole = "is None" if path == "sample" else f"has None at {path}"
    more = f", as {'has' if found == 2 else 'have'} {found - 1} more of {tried} that were read" if found > 1 else ""
    return Wording(
        f"{sample(facts)} {whole}{more}, and the loader's collate_fn can't take None",
        "return a whole sample in every branch of __getitem__, or give the loader a collate_fn that leaves None out",
        why="default_collate takes tensors, arrays, numbers and text, and stops the job at anything else",
        severity=Severity.ERROR,
    )


@defect("TL706")
def zero_sample(facts: Facts) -> Wording:
    """Facts: `index`, `file`, `content`: zero or blank; `found` of `tried`, `indices` of the first few."""
    found, tried = int(facts["found"]), int(facts["tried"])
    holds = "nothing but zeros" if facts["content"] == "zero" else "one value in each channel"
    others = ", ".join(str(each) for each in facts["indices"][1:])
    more = (
        f", as do {found - 1} more of {tried} that were read ({others})"
        if found > 1
        else f", of {tried} that were read"
    )
    return Wording(
        f"{sample(facts)} holds {holds}{more}",
        f"look at {facts['file'] or 'that sample'}; where it can't be read, raise an error or leave it out",
        why="what stands for a file that can't be read, or was never filled, trains as a picture of nothing",
    )


@defect("TL716")
def batchnorm_last_batch(facts: Facts) -> Wording:
    """Facts: classes of `layers`, `batch_size`, `samples` of an epoch."""
    layers, size, samples = (
        ", ".join(facts["layers"]),
        int(facts["batch_size"]),
        facts["samples"],
    )
    return Wording(
        f"the last batch of {int(samples)} samples in batches of {size} is 1, and {layers} gets 1 value per channel",
        "drop_last=True in the DataLoader that trains",
        why="in training mode torch raises `Expected more than 1 value per channel when training`",
        severity=Severity.ERROR,
    )


@defect("TL717")
def validation_drop_last(facts: Facts) -> Wording:
    """Facts: `samples` and how many are `dropped`, `batch_size`, whether the loader `ran` before the probe ended."""
    dropped, samples, size = (int(facts[each]) for each in ("dropped", "samples", "batch_size"))
    what = "the loader that evaluates" if facts["ran"] else "this loader, which isn't shuffled and didn't train,"
    return Wording(
        f"{what} drops {dropped} of {samples} samples (batch_size {size}, drop_last=True)",
        "drop_last=False where it evaluates",
        why="the last samples are never evaluated, and which they are changes with batch_size",
    )


def sample(facts: Facts) -> str:
    """Return a sample's name by the facts `index` and `file`: `sample 17 (cats/17.jpg)`."""
    file = facts["file"]
    return f"sample {facts['index']}" + (f" ({file})" if file else "")
