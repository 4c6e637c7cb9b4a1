"""A dataset in memory takes a large part of it, most often several times."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding
from launcher.units import counted, human_size

TL714 = Explanation(
    "TL714",
    "in-memory-dataset",
    "The dataset keeps its data in memory, and the copies of ranks and workers take a large part of the limit.",
    """\
**Why**: each rank builds its own dataset, so data that is loaded as a whole is there once for each rank of the
container. Forked workers share it; those of spawn and forkserver, the default of Python 3.14, unpickle a copy each,
tensors excepted, which move to /dev/shm. A file that is mapped into memory is there once for all, in the page cache,
and gives way.

**Example**:

```python
class Tokens(Dataset):
    def __init__(self, path):
        self.tokens = numpy.load(path)
```

**Write instead**:

```python
class Tokens(Dataset):
    def __init__(self, path):
        self.tokens = numpy.load(path, mmap_mode="r")
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `bytes`, most under `path`, `copies` in each of `ranks`, their `total`, the `limit` of memory."""
    facts = finding.facts
    size, total, limit = (human_size(int(facts[each])) for each in ("bytes", "total", "limit"))
    copies, ranks, workers = int(facts["copies"]), int(facts["ranks"]), int(facts["num_workers"])
    of_workers = f"{counted(workers, 'worker')} started by {facts['start_method']}" if copies > 1 else ""
    holders = " and ".join(each for each in (f"{ranks} ranks" if ranks > 1 else "", of_workers) if each)
    each_one = f", and {holders} have their own: {total}" if holders else ""
    fork = ', or multiprocessing_context="fork", which shares it' if copies > 1 else ""
    return Diagnostic(
        TL714.code,
        f"the dataset holds {size} in memory, most in {facts['path']}{each_one}, of {limit}",
        f'map the file: numpy.load(path, mmap_mode="r") or torch.load(path, mmap=True){fork}',
        why="a file that is mapped is in memory once for all processes; what is read into a process is its own",
        severity=Severity.ERROR if int(facts["total"]) >= int(facts["limit"]) else Severity.WARNING,
    )
