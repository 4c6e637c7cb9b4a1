"""Training on CPUs has a limit of them and no OMP_NUM_THREADS.

**Why it matters**: OpenMP counts the machine's CPUs and not the quota: on a machine with 64 CPUs a container with 4
starts 64 threads, which are throttled and wait for each other.

**Example**:

```shell
docker run --rm --init --cpus 4 --shm-size=4g trainer:1 python train.py
```

**Use instead**:

```shell
docker run --rm --init --cpus 4 --shm-size=4g -e OMP_NUM_THREADS=4 trainer:1 python train.py
```

**Fix**: type the number of the message; sums of floats may differ in their last digits with other threads.

**References**: docs/sizing.md; OpenMP, OMP_NUM_THREADS.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import stated
from launcher.rules.written.commands import program_of
from launcher.rules.written.evidence import has_gpu, trains
from launcher.rules.written.model import KUBERNETES, PRACTICE, Finding, WrittenFile, at

CODE = "TL371"
NAME = "threads-unstated"
SEVERITY = Severity.INFO
GROUP = PRACTICE
_SET = frozenset({"OMP_NUM_THREADS", "MKL_NUM_THREADS"})


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each container that trains by python itself, without a GPU, under a limit of CPUs."""
    for written in file.containers:
        workload, milli = written.workload, stated(written.workload.cpus)
        if not milli or not trains(written) or has_gpu(workload) or _SET & {*workload.env, *workload.secrets}:
            continue
        if workload.format == KUBERNETES and at(written.own, "resources", "limits", "cpu") is None:
            continue
        if any(name in word for word in written.argv for name in _SET):
            continue  # a shell's text sets it, as our own preflight does
        if not any(program_of(each).startswith("python") for each in written.argvs):
            continue  # launchers of ranks set it
        yield Finding(
            Diagnostic(
                CODE,
                f"OMP_NUM_THREADS is unset under a limit of {milli / 1000:g} CPUs",
                f"set OMP_NUM_THREADS to {max(1, milli // 1000)}",
                why="OpenMP counts the machine's CPUs, not the quota",
                severity=SEVERITY,
                span=workload.span,
                field=workload.place,
            ),
            NAME,
        )
