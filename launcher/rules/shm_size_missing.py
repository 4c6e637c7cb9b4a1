"""A container that trains with DataLoader workers or GPUs has no /dev/shm of its own size.

**Why it matters**: Docker, Podman and Kubernetes give 64 MiB. A worker that finds it full dies of
`Bus error`, `DataLoader worker (pid 76) exited unexpectedly` or `No space left on device`, hours into the run.

**Example**:

```shell
docker run --rm --gpus all trainer:1 python train.py --num-workers 8
```

**Use instead**:

```shell
docker run --rm --gpus all --shm-size=4g trainer:1 python train.py --num-workers 8
```

Without a stated sample of the data no size can be computed: 512 MiB a worker and 2 GiB at least is a cap that costs
nothing until it is used. An error where workers are stated, where a training command has a GPU, or where another pod
of the same object has a size; a warning for a PyTorch image with a GPU and for several GPUs; an info for a GPU alone.

**Fix**: `--fix` adds the flag, the key, or the volume with its mount; safe, since a larger cap changes no result.

**References**: docs/sizing.md; docker run --shm-size; Kubernetes emptyDir with medium Memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import ABSENT, Unknown
from launcher.rules.written.commands import is_training, program_of
from launcher.rules.written.ecs_fields import is_fargate
from launcher.rules.written.evidence import (
    gpu_count,
    has_gpu,
    is_fragment,
    is_torch_image,
    size_text,
    suggested_shm,
    workers_of,
)
from launcher.rules.written.model import DEFECTS, DEVCONTAINER, ECS, GITHUB, KUBERNETES, Finding, Written, WrittenFile

CODE = "TL301"
NAME = "shm-size-missing"
SEVERITY = Severity.ERROR
GROUP = DEFECTS

_WATCHERS = frozenset({"nvidia-smi", "rocm-smi", "nvcc", "df"})


class _Beside(NamedTuple):
    """What the rest of the text says: objects with a sized pod, and whether a build of an image gets a size."""

    sized_objects: set[str]
    sized_at_build: bool


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a finding for each container whose /dev/shm is the runtime's 64 MiB and that may need more."""
    beside = _Beside(
        {_head(each) for each in file.containers if file.kind == KUBERNETES and each.workload.shm.kind != ABSENT},
        _sized_at_build(file),
    )
    for written in file.containers:
        workload = written.workload
        if workload.shm.kind != ABSENT or workload.shm.span is not None or _is_set_up(written):
            continue
        if is_fragment(written) or _is_of_ray(written):
            continue
        workers = workers_of(written)
        severity, reason = _judged(written, workers, beside)
        if severity is not None:
            yield _finding(file, written, workers, severity, reason)


def _is_set_up(written: Written) -> bool:
    """Return whether a container only prepares the pod or watches the machine."""
    if ".initContainers[" in f".{written.workload.place}" or " initContainers[" in written.workload.place:
        return True
    programs = {program_of(each) for each in written.argvs}
    return bool(programs) and programs <= _WATCHERS


def _is_of_ray(written: Written) -> bool:
    """Return whether KubeRay adds /dev/shm itself: to the first container of each of its pods, at its memory limit."""
    return written.object_kind.startswith("Ray") and written.workload.place.endswith(" containers[0]")


def _judged(written: Written, workers: int | None, beside: _Beside) -> tuple[Severity | None, str]:
    workload = written.workload
    trains = any(map(is_training, written.argvs))
    gpus, torch = has_gpu(workload), is_torch_image(workload)
    count = gpu_count(workload)
    if workers:
        return Severity.ERROR, f"{workers} DataLoader workers"
    if trains and gpus and not (workers == 0 and count == 1):
        return Severity.ERROR, "a training command with GPUs"
    if (gpus or trains) and _head(written) in beside.sized_objects:
        return Severity.ERROR, "another pod of the same object has a size"
    if trains and beside.sized_at_build:
        return Severity.ERROR, "a training command, and a size is given to `docker build` alone"
    if torch and gpus:
        return Severity.WARNING, "a PyTorch image with GPUs"
    if count is not None and count > 1:
        return Severity.WARNING, f"{count} GPUs, and NCCL puts its buffers there"
    if torch and written.object_kind.endswith("TrainingRuntime"):
        return Severity.WARNING, "a PyTorch image in a runtime that trains"
    return (Severity.INFO, "a GPU; one process without workers is right without") if gpus else (None, "")


def _head(written: Written) -> str:
    """Return which object of a text of manifests a container is of."""
    return written.workload.place.partition(" ")[0]


def _sized_at_build(file: WrittenFile) -> bool:
    """Return whether the file sizes /dev/shm of an image's build."""
    return any(
        each.text == "build" and command[index - 1].text in {"docker", "podman", "buildx"}
        for command in file.commands
        for index, each in enumerate(command[:4])
        if index and any(word.text.startswith("--shm-size") for word in command)
    )


def _finding(file: WrittenFile, written: Written, workers: int | None, severity: Severity, reason: str) -> Finding:
    workload = written.workload
    size = suggested_shm(workload, workers)
    shown = size_text(size, written)
    fix = {
        "compose": f"add shm_size: {shown} to the service",
        "kubernetes": f"add the volume {{name: dshm, emptyDir: {{medium: Memory, sizeLimit: {shown}}}}} to the pod and "
        "mount it at /dev/shm",
        "ecs": f"set linuxParameters.sharedMemorySize to {shown}",
    }.get(workload.format, f"add --shm-size={shown}")
    if file.kind == ECS and is_fargate(written.pod):
        fix = "run it with the launch type EC2: on Fargate /dev/shm has no size to state"
        written = written._replace(add_shm=None)
    if file.kind == DEVCONTAINER:
        fix = f'add "--shm-size={shown}" to runArgs'
    elif file.kind == GITHUB and written.own is not None:
        fix = f"add --shm-size={shown} to container.options"
    edits = written.add_shm(size) if written.add_shm is not None and not _is_unclear(written) else ()
    return Finding(
        Diagnostic(
            CODE,
            f"no size of /dev/shm is stated, so it has 64 MiB: {reason}",
            fix,
            why="workers and ranks pass tensors through /dev/shm; where it is full they die of a bus error or hang",
            severity=severity,
            span=workload.span,
            field=workload.place,
        ),
        NAME,
        edits,
        safe=bool(edits),
    )


def _is_unclear(written: Written) -> bool:
    return isinstance(written.workload.shm.size, Unknown)
