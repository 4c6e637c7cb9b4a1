"""What the lock's probe measured is of another job than this one is now, so it isn't used.

**Why it matters**: a batch's bytes, the number of loaders and what the loop holds follow from the image, the command,
data_loader and the ranks. Once one of them is changed, /dev/shm would be sized for a script that no longer runs: too
small ends in `Bus error`.

**Example**:

```sh
cat > job.lock.yaml <<'END'
version: 2
probe:
  input: "sha256:of the job before its command was changed"
  target: docker
  torch: 2.9.1
  python: 3.11.7
  start_method: fork
  loaders_run: together
  batches_seen: 20
  loaders:
    - at: train.py:48
      num_workers: 4
      batches_held: 2
      batch: {storages: [77070336, 1024]}
  dataset_tensor_bytes: 0
END
trainlaunch plan job.yaml
```

**Use instead**:

```sh
rm -f job.lock.yaml  # or: trainlaunch probe job.yaml --write
trainlaunch plan job.yaml
```

**Fix**: none by itself; the message has the command that measures again.

**References**: docs/probe.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.measured import fresh_probe, measuring_command

CODE = "TL726"
NAME = "probe-stale"
SEVERITY = Severity.WARNING


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning where the lock has a probe that is of another job."""
    measured = plan.job.measured
    if measured is None or measured.probe is None or fresh_probe(plan.job) is not None:
        return
    target = measured.probe.target
    changed = f"image, command, data_loader or ranks on {target} have changed since"
    if measured.probed is None:
        changed = f"the job file has errors for target {target}, on which it was measured"
    yield Diagnostic(
        CODE,
        f"what the lock's probe measured is not used: {changed}",
        f"run `{measuring_command('probe', plan.job, target)}`, or delete `probe:` there",
        why="the bytes of a batch and what is alive together follow from those, and a /dev/shm that is too small ends "
        "in 'Bus error'",
        severity=SEVERITY,
        span=measured.probe.span,
    )
