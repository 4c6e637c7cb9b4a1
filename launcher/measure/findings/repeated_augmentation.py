"""All workers draw the same random numbers."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding
from launcher.measure.seeding import more, seeding

TL708 = Explanation(
    "TL708",
    "repeated-augmentation",
    "A generator of random numbers in the dataset gives the same numbers in all workers.",
    """\
**Why**: each worker gets a copy of the dataset as it stands in the main process, and with it a copy of every
generator that the dataset, its transforms or its module hold. torch seeds `torch`, `random` and `numpy.random`
differently in each worker and knows nothing of those copies. So N workers draw one sequence N times, and augmentation
loses that much of its variety; no error says so. Measured: the states of all generators in two workers, before and
after they read a sample. One that `__getitem__` seeds from the index is fine and not reported.

A `worker_init_fn` that divides torch's seed (`torch.initial_seed() // 2**32`) instead of taking the remainder is
reported too: it drops the half of the seed that tells neighbouring seeds apart. So is a `__getitem__` that seeds
`torch`, `random` or `numpy.random` with a constant: every sample then draws the same numbers.

**Example**:

```python
class Images(Dataset):
    def __init__(self, files):
        self.files, self.rng = files, np.random.default_rng(0)

    def __getitem__(self, index):
        return crop(read(self.files[index]), self.rng.integers(32))


loader = DataLoader(Images(files), num_workers=4)
```

**Write instead**:

```python
def seed(worker):
    get_worker_info().dataset.rng = np.random.default_rng(torch.initial_seed() % 2**32)


loader = DataLoader(Images(files), num_workers=4, worker_init_fn=seed)
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `generator`, its path; `class`; `others`; `how`: `equal`, `low bits` or `each sample`; `num_workers`."""
    generator, workers = str(finding.facts["generator"]), int(finding.facts["num_workers"])
    if finding.facts["how"] == "each sample":
        return Diagnostic(
            TL708.code,
            f"reading a sample seeds {generator}, each time alike: all samples draw the same random numbers",
            "drop that seed, or make a generator from the index: np.random.default_rng((seed, index))",
            why="a seed in __getitem__ puts the generator back to where it was for the sample before",
            severity=Severity.WARNING,
        )
    if finding.facts["how"] == "low bits":
        return Diagnostic(
            TL708.code,
            f"worker_init_fn seeds {generator} without the low 32 bits of torch.initial_seed()",
            f"in worker_init_fn: {seeding(generator, str(finding.facts['class']))}",
            why="`//` drops the bits that tell near seeds apart; `%` keeps them, and the worker's number with them",
            severity=Severity.WARNING,
        )
    draw = f"all {workers} workers draw" if workers > 1 else "with num_workers above 1, all workers would draw"
    return Diagnostic(
        TL708.code,
        f"{draw} the same random numbers from {generator} ({finding.facts['class']}){more(finding.facts)}",
        f"in worker_init_fn: {seeding(generator, str(finding.facts['class']))}",
        why="each worker gets a copy of the generator in the same state, and torch seeds only torch, random and "
        "numpy.random in workers",
        severity=Severity.ERROR if workers > 1 else Severity.WARNING,
    )
