"""Workers draw the same random numbers in each epoch."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding
from launcher.measure.seeding import more, seeding

TL709 = Explanation(
    "TL709",
    "repeated-epochs",
    "Workers that start anew each epoch draw the random numbers of the epoch before.",
    """\
**Why**: without persistent_workers each epoch starts new workers, and each gets a copy of the dataset from the main
process, where its generators have not moved: nobody draws from them there. So every epoch repeats the augmentation of
the first. Measured: two epochs with new workers, and the states of all generators in them. Where the dataset has
`set_epoch`, it was called in between.

**Example**:

```python
class Compose:
    def __init__(self, steps):
        self.steps, self.random = steps, random.Random(137)


loader = DataLoader(Images(files, Compose(steps)), num_workers=4)
```

**Write instead**:

```python
def seed(worker):
    get_worker_info().dataset.transform.random.seed(torch.initial_seed())


loader = DataLoader(Images(files, Compose(steps)), num_workers=4, worker_init_fn=seed)
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `generator`, its path; `class`; paths of `others`; `num_workers` of the script."""
    generator, kind = str(finding.facts["generator"]), str(finding.facts["class"])
    workers = int(finding.facts["num_workers"])
    draw = "draws" if workers else "would with num_workers above 0 draw"
    return Diagnostic(
        TL709.code,
        f"each epoch {draw} the random numbers of the first again from {generator} ({kind}){more(finding.facts)}",
        f"in worker_init_fn: {seeding(generator, kind)}",
        why="each epoch's workers start from a copy of the main process, where the generator has not moved; "
        "torch.initial_seed() is another in each epoch",
        severity=Severity.WARNING,
    )
