"""Which resources and devices are GPUs, under whatever name a job asks for them."""

from __future__ import annotations

import posixpath
import re

GPU_RESOURCE = re.compile(r"nvidia\.com/(?:gpu|mig-).*|amd\.com/(?:gpu|cpx|dpx|spx).*|gpu\.intel\.com/.*")
# Other resources that no accelerator hides behind: Kubernetes' own, network cards, devices of virtual machines.
NO_ACCELERATOR = re.compile(
    r"cpu|memory|ephemeral-storage|hugepages-.*|rdma/.*|nvidia\.com/hostdev|mellanox\.com/.*|vpc\.amazonaws\.com/.*"
    r"|openshift\.io/.*sriov.*|intel\.com/(?:intel_)?sriov.*|networking\.gke\.io\.networks/.*|aliyun/(?:erdma|eni)"
    r"|devices\.kubevirt\.io/(?:kvm|tun|vhost-net)|github\.com/fuse"
)
# Nodes of the host that are no GPU; any other may be one by another name, as /dev/char/195:0 is.
_OTHER_NODES = re.compile(r"/dev/(?:infiniband|fuse|kvm|net|null|zero|full|random|urandom)(?:/[\w-]+)?")
CDI_ANNOTATION = "cdi.k8s.io/"  # runtimes give a container the devices that such an annotation names
NO_GPUS = frozenset({"", "none", "void", "-1"})  # values of NVIDIA_VISIBLE_DEVICES
# A vendor's runtime reads VENDOR_VISIBLE_DEVICES when it makes a container. These choose among those that it has.
GRANTS = "_VISIBLE_DEVICES"
CHOOSE = frozenset(f"{each}{GRANTS}" for each in ("CUDA", "HIP", "ROCR", "ASCEND_RT", "MUSA", "TPU"))
_VENDORS = ("NVIDIA", "AMD", "HABANA", "ASCEND", "MTHREADS", "CAMBRICON", "IX", "AWS_NEURON")
_BY_MOUNT = re.compile(r"/(?:var/)?run/nvidia-container-devices(?:/.*)?")


def is_no_accelerator(resource: str) -> bool:
    """Return whether a resource of Kubernetes is known to be none; an unknown name may be a part of a GPU."""
    return NO_ACCELERATOR.fullmatch(resource) is not None


def is_read_by_runtimes(variable: str) -> bool:
    """Return whether a vendor's runtime gives a container the devices that this variable names."""
    return (variable.endswith(GRANTS) and variable not in CHOOSE) or variable == "DOCKER_RESOURCE_GPU"


def gives_gpus(variable: str, value: str | None) -> bool:
    """Return whether a variable of a container asks a vendor's runtime for GPUs, which gives them without any flag.

    None is a value that stands elsewhere, which may be any.
    """
    return is_read_by_runtimes(variable) and (value is None or value.strip().lower() not in NO_GPUS)


def may_give_gpus(prefix: str) -> bool:
    """Return whether variables of unknown names behind `prefix` may be those of a vendor's runtime."""
    return any(f"{each}{GRANTS}".startswith(prefix) for each in _VENDORS)


def gives_gpu_nodes(device: str) -> bool:
    """Return whether a device as docker and Compose name it, a node of the host or a CDI name, may be a GPU."""
    return not _OTHER_NODES.fullmatch(posixpath.normpath(device.partition(":")[0]).replace("//", "/"))


def gives_gpus_at(target: str) -> bool:
    """Return whether NVIDIA's runtime takes the name of a mount there for the name of a GPU to give."""
    return _BY_MOUNT.fullmatch(posixpath.normpath(f"/{target}").replace("//", "/")) is not None
