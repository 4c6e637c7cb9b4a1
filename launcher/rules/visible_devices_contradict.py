"""A variable of visible devices names GPUs that the container does not have.

**Why it matters**: inside, GPUs are counted from 0 whichever of the host's they are. `CUDA_VISIBLE_DEVICES=2` in a
container with one GPU leaves none: `No CUDA GPUs are available`. `NVIDIA_VISIBLE_DEVICES=all` beside a device
plugin's limit gives all of the node's.

**Example**:

```shell
docker run --rm --gpus '"device=2"' --shm-size=8g -e CUDA_VISIBLE_DEVICES=2 trainer:1 python train.py
```

**Use instead**:

```shell
docker run --rm --gpus '"device=2"' --shm-size=8g trainer:1 python train.py
```

**Fix**: none by itself: which of the two is meant can't be told.

**References**: CUDA programming guide, CUDA_VISIBLE_DEVICES; NVIDIA Container Toolkit, environment variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import Known
from launcher.plan.launch_plan import LaunchPlan
from launcher.rules.written.evidence import gpu_count
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, WrittenFile
from launcher.units import counted

CODE = "TL351"
NAME = "visible-devices-contradict"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_INSIDE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
_RUNTIMES = "NVIDIA_VISIBLE_DEVICES"
_NUMBERS = re.compile(r" *[0-9]+ *(?:, *[0-9]+ *)*")
_COUNTED = "inside, GPUs are counted from 0, whichever of the host's they are"
_FROM_0 = "counted from 0"
_TWO = "it is the NVIDIA runtime's own word for which GPUs a container gets, beside the request"
ALL = "all"
_PLUGIN = "the device plugin sets it; all may be every GPU of the node"


class _Given(NamedTuple):
    """The GPUs of a container: how many, the host's ids that it names (both None: unknown), whether in a cluster."""

    number: int | None
    ids: tuple[str, ...] | None = None
    in_cluster: bool = False


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning for each such variable of the job; on a host itself they choose among its GPUs, and are right."""
    job, gpus = plan.job, plan.gpus
    if not plan.target_record.starts_container:
        return
    count = None if gpus.all or any("gpu" in each or "mig" in each for each in job.resources.extended) else gpus.count
    given = _Given(count, gpus.ids if job.nodes == 1 else None, job.kind is not None)
    for name, message, why in _contradictions(job.env, given):
        fix = f"delete env.{name}" + ("; resources.gpus says which" if job.kind is None else "")
        field = f"env.{name}"
        yield Diagnostic(CODE, message, fix, why=why, severity=SEVERITY, span=job.span(field), field=field)


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each variable that hides GPUs which are asked for, or shows others."""
    for written in file.containers:
        workload = written.workload
        env = {name: value.value for name, value in workload.env.items() if isinstance(value, Known)}
        # Without a request the text may run where an engine gives all GPUs by default.
        given = _Given(gpu_count(workload) or None, in_cluster=workload.format == KUBERNETES)
        for name, message, why in _contradictions(env, given):
            value = workload.env[name]
            span = value.span if isinstance(value, Known) else workload.span
            found = Diagnostic(CODE, message, f"delete {name}", why=why, severity=SEVERITY, span=span)
            yield Finding(found._replace(field=workload.place), NAME)


def _contradictions(env: Mapping[str, str], given: _Given) -> Iterator[tuple[str, str, str]]:
    """Yield (variable, message, why) for each that names what the container does not have."""
    count = given.number
    for name in _INSIDE:
        value = env.get(name, "")
        if count is not None and _NUMBERS.fullmatch(value):
            highest = max(map(int, value.split(",")))
            if highest >= count:
                yield (
                    name,
                    f"{name} names GPU {highest}, and the container has {counted(count, 'GPU')}, {_FROM_0}",
                    _COUNTED,
                )
        elif others := [each for each in value.split(",") if each.startswith("GPU-") and _is_other(each, given.ids)]:
            yield name, f"{name} names {others[0]}, and the container has {', '.join(given.ids or ())}", _COUNTED
    runtime = env.get(_RUNTIMES)
    if runtime is None or (count == 0 and runtime in {"none", "void", ""}):
        return
    if runtime in {"none", "void"}:
        yield (
            _RUNTIMES,
            f"{_RUNTIMES} is {runtime}, and GPUs are asked for",
            "the runtime then gives the container no GPU",
        )
    elif given.in_cluster and runtime == ALL and count:
        yield _RUNTIMES, f"{_RUNTIMES} is all, and {counted(count, 'GPU')} asked for", _PLUGIN
    elif count is not None and _NUMBERS.fullmatch(runtime):
        yield from _of_host(runtime, given, count)


def _of_host(runtime: str, given: _Given, count: int) -> Iterator[tuple[str, str, str]]:
    """Yield what is wrong with numbers of the host's GPUs that the NVIDIA runtime reads."""
    numbers = [each.strip() for each in runtime.split(",")]
    if given.ids is None or not all(each.isdecimal() for each in given.ids):
        return
    own = given.ids or tuple(map(str, range(count)))
    others = [each for each in numbers if each not in own]
    if given.in_cluster and count:
        yield _RUNTIMES, f"{_RUNTIMES} is {runtime}, and {counted(count, 'GPU')} asked for", "the device plugin sets it"
    elif others and not given.in_cluster:
        has = ", ".join(own) or "none"
        yield _RUNTIMES, f"{_RUNTIMES} names GPU {others[0]} of the host, and the job asks for {has}", _TWO


def _is_other(gpu: str, ids: tuple[str, ...] | None) -> bool:
    """Whether an id is none of the container's, where those are ids too."""
    if not ids or not all(each.startswith("GPU-") for each in ids):
        return False
    return not any(each.startswith(gpu) for each in ids)
