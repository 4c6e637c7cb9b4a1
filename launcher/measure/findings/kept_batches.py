"""The script keeps the batches of a loader."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding
from launcher.units import human_size

TL724 = Explanation(
    "TL724",
    "kept-batches",
    "The script keeps every batch that its workers made, and with it their part of /dev/shm.",
    """\
**Why**: a tensor that came from a worker lies in /dev/shm, with one file descriptor, for as long as anything leads to
it. A list of all batches of an evaluation so fills /dev/shm, or runs out of descriptors (`received 0 items of ancdata`,
`Too many open files`), after as many batches as fit. A copy is ordinary memory. pin_memory copies too.

**Example**:

```python
outputs = []
for batch in loader:
    outputs.append(batch)
```

**Write instead**:

```python
outputs = []
for batch in loader:
    outputs.append(batch.clone())
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `name` of the variable and place `at`, batches `held` of `batches`, `bytes` of one, its `tensors`."""
    facts = finding.facts
    name, held, done = str(facts["name"]), int(facts["held"]), int(facts["batches"])
    who = f"{name} ({facts['at']})" if name else "the script"
    most = human_size(int(facts["bytes"]) * held)
    return Diagnostic(
        TL724.code,
        f"{who} holds {held} of {done} batches, {most} of /dev/shm, and grows with each",
        f"keep copies: {name or 'kept'}.append(batch.clone()), or state pin_memory=True, which copies on a GPU machine",
        why="a tensor that came from a worker stays in /dev/shm, with a file descriptor, while anything leads to it",
        severity=Severity.WARNING,
    )
