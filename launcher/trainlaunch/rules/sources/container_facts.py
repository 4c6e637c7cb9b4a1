"""What a container says of its GPUs, its image, and the place to point at for what is missing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from trainlaunch.diagnostics import Severity, Span
from trainlaunch.formats.docker.shell_lexer import assignment
from trainlaunch.formats.workload import ABSENT, Known, Unknown, Value, Workload, stated
from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.least_shm import LEAST_SHM
from trainlaunch.rules.sources.programs import Argv
from trainlaunch.rules.sources.source_text import COMPOSE, ECS, KUBERNETES, SourceContainer, at
from trainlaunch.units import GIB, MIB, docker_size, format_size

_TORCH_ITSELF = re.compile(r"(?:(?:docker\.io/)?(?:pytorch|rocm)/pytorch|nvcr\.io/nvidia/pytorch)(?![\w-])")
_TORCH = re.compile(r"(?:^|[/_.-])(?:pytorch|torch|nemo|vllm|deepspeed|lightning|transformers-pytorch)(?:[/_.:@-]|$)")
_DEVICE = re.compile(r"(?:(?:nvidia|amd)\.com/gpu=|/dev/nvidia)([0-9]+|all)")
_SUGGESTED = 2 * GIB
_PER_WORKER = 512 * MIB

KINDS_OF_PODS = frozenset({
    *("Pod", "Job", "CronJob", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "PyTorchJob", "TFJob", "MPIJob"),
    *("JobSet", "RayJob", "RayCluster", "TrainingRuntime", "ClusterTrainingRuntime"),
})  # fmt: skip
_READ_BY_KUBERNETES = KINDS_OF_PODS | {  # as it reads a pod's own values
    *("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow", "Service", "RayService"),
    *("ReplicationController", "PodTemplate"),
}


def gpu_count(workload: Workload) -> int | None:
    """Return how many GPUs a container sets, 0 for none; None for all of the machine's, or an unknown number."""
    if isinstance(workload.gpus, Unknown) and "unclear" not in workload.rest:
        return None
    request = stated(workload.gpus)
    if request is None:
        return _passed_through(workload)
    return None if request.all else len(request.ids) or request.number


def _passed_through(workload: Workload) -> int | None:
    """Return the GPUs that come as devices, or by NVIDIA's runtime and its variable."""
    nodes = workload.devices.get("nodes", "").split()
    named = {match[1] for each in nodes if (match := _DEVICE.match(each))}
    if named or any(each.startswith("/dev/kfd") for each in nodes):
        return None if ALL_GPUS in named or not named else len(named)
    wrapped = "nvidia-docker" in str(workload.rest.get("command", ""))  # which gives all of them
    if workload.rest.get("--runtime") != ("nvidia",) and not wrapped:
        return 0
    visible = stated(workload.env.get("NVIDIA_VISIBLE_DEVICES"))
    if visible in {"none", "void"}:
        return 0
    return None if visible in {None, "", ALL_GPUS} else len(visible.split(","))


def has_gpu(workload: Workload) -> bool:
    """Return whether a container asks for a GPU."""
    return gpu_count(workload) != 0


def command_span(workload: Workload) -> Span:
    """Return where a container's command stands, or its entrypoint; without either the place for what is missing."""
    places = (workload.command, workload.entrypoint)
    return next((each.span for each in places if each is not None), workload.span)


def env_of(container: SourceContainer) -> dict[str, Value[str]]:
    """Return the variables that a container's commands get: its image's, its own, and those that a shell exports."""
    span = container.workload.span
    built = container.built.env if container.built is not None else {}
    passed = {name: Unknown(name, span) for name in container.workload.secrets}
    found: dict[str, Value[str]] = {**built, **passed, **container.workload.env}
    exported: dict[str, Value[str]] = {}
    for argv in container.argvs:
        alone = all(map(assignment, argv))
        for name, value in _assigned(argv[1:] if argv[:1] == ("export",) else argv if alone else (), span).items():
            if not alone or name in found:  # what is no variable of the process stays with the shell
                exported[name] = value if exported.get(name, value) == value else Unknown(name, span)
    return found | exported


def in_front_of(argv: Argv, span: Span) -> dict[str, Value[str]]:
    """Return the variables that stand in front of a command, and hold for it alone."""
    words = argv[1:] if argv[:1] == ("env",) else argv
    return _assigned(itertools.takewhile(assignment, words), span)


def _assigned(words: Iterable[str], span: Span) -> dict[str, Value[str]]:
    pairs = (each.partition("=") for each in words)
    return {
        name: Known(value, value, span) if joined and "$" not in value and "`" not in value else Unknown(value, span)
        for name, joined, value in pairs
    }


def is_privileged(workload: Workload) -> bool:
    """Return whether a container has all capabilities."""
    keys = ("--privileged", "service.privileged", "container.securityContext.privileged")
    return any(workload.rest.get(key) is True for key in keys)


def may_mount(workload: Workload) -> bool:
    """Return whether a container may change its mounts: it is privileged, or has SYS_ADMIN or all capabilities."""
    added = [value for key, value in workload.rest.items() if "cap-add" in key or "cap_add" in key or ".add." in key]
    words = {str(each).upper().removeprefix("CAP_") for value in added for each in _items(value)}
    return is_privileged(workload) or bool(words & {"SYS_ADMIN", "ALL"})


def _items(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def images_of(container: SourceContainer) -> Iterator[str]:
    """Yield the name of a container's image, and that of the one which it is built from, without their digests."""
    for each in (stated(container.workload.image), container.built.base if container.built else ""):
        if each:
            yield each.partition("@")[0].lower()


def is_torch_image(container: SourceContainer) -> bool:
    """Return whether an image's name says PyTorch, or that of the one which it is built from."""
    return any(map(_TORCH.search, images_of(container)))


def is_torch_itself(container: SourceContainer) -> bool:
    """Return whether an image is PyTorch's own, NVIDIA's or AMD's, in which nobody's script lies."""
    return any(map(_TORCH_ITSELF.match, images_of(container)))


def lacks_shm(written: SourceContainer) -> bool:
    """Return whether nothing says what the /dev/shm of a container is, here or in a file that is laid over this."""
    return written.workload.shm.kind == ABSENT and not written.sized_beside


def is_fragment(written: SourceContainer) -> bool:
    """Return whether a container is part of one that stands elsewhere too: an overlay of Compose, a patch, an example.

    What such a text leaves out is unknown, not missing.
    """
    workload = written.workload
    if workload.image is not None:
        return (stated(workload.image) or "") in {"...", "…"}  # the reader is to know the rest
    if workload.format == COMPOSE:
        return at(written.own, "build") is None
    return workload.format == KUBERNETES and bool(written.object_kind)


def of_reader(container: SourceContainer) -> Severity | None:
    """Return how grave a value is that its reader takes otherwise: who reads an unknown kind or a part nobody knows."""
    known = container.object_kind in _READ_BY_KUBERNETES and not is_fragment(container)
    return Severity.WARNING if container.podman or (container.workload.format == KUBERNETES and not known) else None


def suggested_shm(workload: Workload, workers: int | None) -> int:
    """Return a size to type where none can be computed: 512 MiB a worker, 2 GiB at least, below half of the memory."""
    size = max(_SUGGESTED, (workers or 0) * _PER_WORKER)
    memory = stated(workload.memory)
    if memory is not None:
        size = min(size, max(memory // 2 // MIB * MIB, LEAST_SHM))
    return size


def engine_text(size: int) -> str:
    """Return a size as docker and Compose read it: `2g`, `512m`."""
    return f"{size // GIB}g" if size % GIB == 0 else docker_size(size)


def size_text(size: int, written: SourceContainer) -> str:
    """Return a size in the units of the text's own format."""
    if written.workload.format == KUBERNETES:
        return format_size(size)
    if written.workload.format == ECS:
        return f"{size // MIB} (MiB)"
    return engine_text(size) + ("b" if written.workload.format == COMPOSE else "")
