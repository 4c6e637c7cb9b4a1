"""The command starts ranks and doesn't say how many, so the plan takes one per GPU.

**Why it matters**: /dev/shm, memory and threads are sized for the ranks of the container. `accelerate launch` without
`--num_processes` reads a config file that only the image has, and a variable of the shell has its value only there.

**Example**:

```yaml
command: [accelerate, launch, train.py]
resources: {gpus: 2}
```

**Use instead**:

```yaml
command: [accelerate, launch, --num_processes, "{nproc_per_node}", train.py]
resources: {gpus: 2}
```

**Fix**: type the option of the message; a `script` has no tokens, so state ranks_per_container as well.

**References**: docs/frameworks.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.units import counted

CODE = "TL211"
NAME = "ranks-not-stated"
SEVERITY = Severity.WARNING


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning where the number of ranks is that of the GPUs only because nothing else says it."""
    job, starter = plan.job, plan.job.starter
    gpus = job.resources.gpus.count
    if starter is None or starter.count is not None or not gpus or job.torchrun or job.ranks_per_container is not None:
        return
    yield Diagnostic(
        CODE,
        f"{starter.field} calls {starter.name}, and nothing says how many ranks it starts; planned: {gpus}, as GPUs",
        f"add {starter.typed(gpus)} to the call, or ranks_per_container: {gpus}",
        why=f"/dev/shm, memory and threads are for {counted(gpus, 'rank')}, and it may start another number",
        severity=SEVERITY,
        span=job.span(starter.field),
        field="ranks_per_container",
    )
