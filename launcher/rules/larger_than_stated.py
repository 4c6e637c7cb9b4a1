"""The script takes more than the job file states: a larger batch, more workers, more batches held.

**Why it matters**: what the job file states wins, so /dev/shm is planned for it. The script that was measured needs
more, and dies with `Bus error`, or waits for ever, when it gets there.

**Example**:

```text
data_loader: {num_workers: 2, batch_bytes: {size: 1Mi, tensors: 1}}   # and the lock's probe saw batches of 5 MiB
```

**Use instead**:

```text
data_loader: {num_workers: 2}                                         # the lock's probe says what a batch takes
```

**Fix**: delete the field that the message names, or state the measured number; then probe again.

**References**: docs/probe.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.job.loader_spec import LoaderSpec
from launcher.job.measured import Probe, ProbedLoader
from launcher.plan.batch import batch_pages
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.measured import fresh_probe, states, states_batch
from launcher.plan.shared_memory import PAGE
from launcher.units import KIB, format_size, human_size, round_up

CODE = "TL727"
NAME = "larger-than-stated"
SEVERITY = Severity.WARNING
_WHY = "what the job file states wins, so /dev/shm is planned for less than the script takes: 'Bus error', or it hangs"


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning for each number that the job states and its script was seen to exceed."""
    probe = fresh_probe(plan.job)
    if probe is None:
        return
    for loader, probed in zip(plan.job.data_loader.loaders, probe.loaders, strict=True):
        yield from _of_batch(plan, loader, probed)
        yield from _of_numbers(plan, loader, probed)
    yield from _of_all(plan, probe)


def _of_batch(plan: LaunchPlan, loader: LoaderSpec, probed: ProbedLoader) -> Iterator[Diagnostic]:
    """Compare the bytes of a batch, in whole pages."""
    if not states_batch(plan.job, loader):
        return
    seen = loader._replace(collate="stack", sample=None, batch_bytes=None, storages=probed.storages)
    stated, measured = (batch_pages(each, PAGE, file_system=False).unit for each in (loader, seen))
    if measured > stated:
        size = f"{{size: {_size(sum(probed.storages))}, tensors: {len(probed.storages)}}}"
        field = "collate" if not loader.stated_size else "batch_bytes" if loader.batch_bytes else "sample"
        said = f"a batch of {loader.name} took {human_size(measured)} at {probed.at}, and {field} gives "
        fix = f"delete {field} of {loader.name}, or state batch_bytes: {size}"
        yield _warning(plan, loader, field, f"{said}{human_size(stated)}", fix)


def _of_numbers(plan: LaunchPlan, loader: LoaderSpec, probed: ProbedLoader) -> Iterator[Diagnostic]:
    """Compare workers, prefetched batches and held ones."""
    seen = {
        "num_workers": probed.num_workers,
        "prefetch_factor": probed.own_prefetch,
        "batches_held": probed.batches_held,
    }
    for field, measured in seen.items():
        stated = getattr(loader, field)
        if measured is not None and stated is not None and measured > stated and states(plan.job, loader, field):
            said = f"{loader.name} had {field} {measured} at {probed.at}, and the job file states {stated}"
            yield _warning(plan, loader, field, said, f"set {field} of {loader.name} to {measured}, or delete it")


def _of_all(plan: LaunchPlan, probe: Probe) -> Iterator[Diagnostic]:
    """Compare what all loaders share."""
    spec = plan.job.data_loader
    if spec.loaders_run == "in_turn" != probe.loaders_run and len(spec.loaders) > 1:
        said = "loaders were alive together in the script, and loaders_run states in_turn"
        yield _warning(plan, None, "loaders_run", said, "set loaders_run to together, or delete it")
    measured, stated = probe.dataset_tensor_bytes, spec.dataset_tensor_bytes
    if measured > stated and states(plan.job, None, "dataset_tensor_bytes"):
        said = f"the dataset's tensors took {human_size(measured)}, and dataset_tensor_bytes is {human_size(stated)}"
        yield _warning(plan, None, "dataset_tensor_bytes", said, f"set dataset_tensor_bytes to {_size(measured)}")


def _size(measured: int) -> str:
    """Return bytes as a job file takes them, at least as many."""
    return format_size(round_up(measured, KIB))


def _warning(plan: LaunchPlan, loader: LoaderSpec | None, field: str, said: str, fix: str) -> Diagnostic:
    path = plan.job.loader_field(loader.name, field) if loader else f"data_loader.{field}"
    return Diagnostic(CODE, said, fix, why=_WHY, severity=SEVERITY, span=plan.job.span(path), field=path)
