"""What a container says of its GPUs, its image, and the place to point at for what is missing."""

from __future__ import annotations

import re

from launcher.formats.workload import Workload, stated
from launcher.rules.written.model import COMPOSE, KUBERNETES, Written
from launcher.units import GIB, MIB, docker_size, format_size

_TORCH = re.compile(r"(?:^|[/_.-])(?:pytorch|torch|nemo|vllm|deepspeed|lightning|transformers-pytorch)(?:[/_.:@-]|$)")
_DOCKER_DEFAULT = 64 * MIB
_SUGGESTED = 2 * GIB
_PER_WORKER = 512 * MIB


def gpu_count(workload: Workload) -> int | None:
    """Return how many GPUs a container states, 0 for none; None for all of the machine's."""
    request = stated(workload.gpus)
    if request is None:
        return 0
    return None if request.all else len(request.ids) or request.number


def has_gpu(workload: Workload) -> bool:
    """Return whether a container states a GPU."""
    return gpu_count(workload) != 0


def is_torch_image(workload: Workload) -> bool:
    """Return whether an image's name says PyTorch."""
    image = stated(workload.image)
    return image is not None and _TORCH.search(image.partition("@")[0].lower()) is not None


def suggested_shm(workload: Workload, workers: int | None) -> int:
    """Return a size to type where none can be computed: 512 MiB a worker, 2 GiB at least, below half of the memory."""
    size = max(_SUGGESTED, (workers or 0) * _PER_WORKER)
    memory = stated(workload.memory)
    if memory is not None:
        size = min(size, max(memory // 2 // MIB * MIB, _DOCKER_DEFAULT))
    return size


def engine_text(size: int) -> str:
    """Return a size as docker and Compose read it: `2g`, `512m`."""
    return f"{size // GIB}g" if size % GIB == 0 else docker_size(size)


def size_text(size: int, written: Written) -> str:
    """Return a size in the units of the text's own format."""
    if written.workload.format == KUBERNETES:
        return format_size(size)
    return engine_text(size) + ("b" if written.workload.format == COMPOSE else "")
