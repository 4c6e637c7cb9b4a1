"""Which resources and devices are GPUs, under whatever name a job asks for them."""

from __future__ import annotations

import posixpath
import re

GPU_RESOURCE = re.compile(r"nvidia\.com/(?:gpu|mig-).*|amd\.com/(?:gpu|cpx|dpx|spx).*|gpu\.intel\.com/.*")
# Nodes of the host that are no GPU; any other may be one by another name, as /dev/char/195:0 is.
_OTHER_NODES = re.compile(r"/dev/(?:infiniband|fuse|kvm|net|null|zero|full|random|urandom)(?:/[\w-]+)?")
CDI_ANNOTATION = "cdi.k8s.io/"  # runtimes give a container the devices that such an annotation names
NO_GPUS = frozenset({"", "none", "void", "-1"})  # values of NVIDIA_VISIBLE_DEVICES


def gives_gpus(variable: str, value: str | None) -> bool:
    """Return whether a variable of a container asks NVIDIA's runtime for GPUs, which gives them without any flag.

    None is a value that stands elsewhere, which may be any.
    """
    return variable == "NVIDIA_VISIBLE_DEVICES" and (value is None or value.strip().lower() not in NO_GPUS)


def gives_gpu_nodes(device: str) -> bool:
    """Return whether a device as docker and Compose name it, a node of the host or a CDI name, may be a GPU."""
    return not _OTHER_NODES.fullmatch(posixpath.normpath(device.partition(":")[0]).replace("//", "/"))
