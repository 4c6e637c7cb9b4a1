"""Which resources and devices are GPUs, under whatever name a job asks for them."""

from __future__ import annotations

import re

GPU_RESOURCE = re.compile(r"nvidia\.com/(?:gpu|mig-).*|amd\.com/(?:gpu|cpx|dpx|spx).*|gpu\.intel\.com/.*")
GPU_DEVICE = re.compile(r"/dev/(?:nvidia|kfd|dri|dxg|$)|^/dev/?$|=")  # nodes of a GPU, /dev whole, a CDI name
_NONE = frozenset({"", "none", "void", "-1"})


def gives_gpus(variable: str, value: str) -> bool:
    """Return whether a variable of a container asks NVIDIA's runtime for GPUs, which gives them without any flag."""
    return variable == "NVIDIA_VISIBLE_DEVICES" and value.strip().lower() not in _NONE
