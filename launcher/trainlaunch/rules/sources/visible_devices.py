"""Variables by which frameworks and NVIDIA's runtime choose among GPUs, against those that a container has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.units import counted

_INSIDE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
_RUNTIMES = "NVIDIA_VISIBLE_DEVICES"
_NUMBERS = re.compile(r" *[0-9]+ *(?:, *[0-9]+ *)*")
_COUNTED = "inside, GPUs are counted from 0, whichever of the host's they are"
_FROM_0 = "counted from 0"
_WHOLE_NODE = 8  # GPUs of the usual large machine, of which all are no more
_TWO = "it is the NVIDIA runtime's own word for which GPUs a container gets, beside the request"
_PLUGIN = "the device plugin sets it; all may be every GPU of the node"


class GrantedGpus(NamedTuple):
    """The GPUs of a container: how many, the host's ids that it names (both None: unknown), whether in a cluster."""

    number: int | None
    ids: tuple[str, ...] | None = None
    in_cluster: bool = False


def contradictions(env: Mapping[str, str], granted: GrantedGpus) -> Iterator[tuple[str, str, str]]:
    """Yield (variable, message, why) for each that names what the container does not have."""
    count = granted.number
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
        elif others := [each for each in value.split(",") if each.startswith("GPU-") and _is_other(each, granted.ids)]:
            yield name, f"{name} names {others[0]}, and the container has {', '.join(granted.ids or ())}", _COUNTED
    runtime = env.get(_RUNTIMES)
    if runtime is None or (count == 0 and runtime in {"none", "void", ""}):
        return
    if runtime in {"none", "void"}:
        yield (
            _RUNTIMES,
            f"{_RUNTIMES} is {runtime}, and GPUs are asked for",
            "the runtime then gives the container no GPU",
        )
    elif granted.in_cluster and runtime == ALL_GPUS and count and count < _WHOLE_NODE:
        yield _RUNTIMES, f"{_RUNTIMES} is all, and {counted(count, 'GPU')} asked for", _PLUGIN
    elif count is not None and _NUMBERS.fullmatch(runtime):
        yield from _of_host(runtime, granted, count)


def _of_host(runtime: str, granted: GrantedGpus, count: int) -> Iterator[tuple[str, str, str]]:
    """Yield what is wrong with numbers of the host's GPUs that the NVIDIA runtime reads."""
    numbers = [each.strip() for each in runtime.split(",")]
    if granted.ids is None or not all(each.isdecimal() for each in granted.ids):
        return
    own = granted.ids or tuple(map(str, range(count)))
    others = [each for each in numbers if each not in own]
    if granted.in_cluster and count:
        yield _RUNTIMES, f"{_RUNTIMES} is {runtime}, and {counted(count, 'GPU')} asked for", "the device plugin sets it"
    elif others and not granted.in_cluster:
        has = ", ".join(own) or "none"
        yield _RUNTIMES, f"{_RUNTIMES} names GPU {others[0]} of the host, and the job asks for {has}", _TWO


def _is_other(gpu: str, ids: tuple[str, ...] | None) -> bool:
    """Whether an id is none of the container's, where those are ids too."""
    if not ids or not all(each.startswith("GPU-") for each in ids):
        return False
    return not any(each.startswith(gpu) for each in ids)
