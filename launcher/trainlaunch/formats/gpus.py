"""Which resources and devices are GPUs, under whatever name a job asks for them."""

from __future__ import annotations

import posixpath
import re

# Some clusters ask for a model by name: nvidia.com/a100. Parts of one are no GPUs, as HAMi's nvidia.com/gpumem and
# gpucores and Intel's gpu.intel.com/millicores are. Intel's i915_monitoring and xe_monitoring compute on none.
GPU_RESOURCE = (
    r"nvidia\.com/(?:gpu|gpu[-._].*|(?:mig-|pgpu|rtx|gtx|quadro|tesla|titan|GRID|g[bh][0-9]|[abhlmptv][0-9]).*)|amd\.com/(?:gpu|cpx|dpx|spx).*"
    r"|gpu\.intel\.com/(?:i915|xe)"
)
# Other resources that no accelerator hides behind: Kubernetes' own, network cards, cryptography, single device nodes.
NO_ACCELERATOR = (
    r"cpu|memory|ephemeral-storage|hugepages-.*|rdma/.*|nvidia\.com/(?:hostdev|sriov|rdma|mlnx|ib_).*|mellanox\.com/.*"
    r"|vpc\.amazonaws\.com/.*|openshift\.io/.{0,63}sriov.{0,63}|intel\.com/(?:(?:intel_)?sriov|qat).*|(?:qat|dsa|sgx)\.intel\.com/.*"
    r"|networking\.gke\.io(?:\.networks)?/.*|aliyun/(?:erdma|(?:member-)?eni)|tke\.cloud\.tencent\.com/.{0,63}eni.{0,63}"
    r"|bridge\.network\.kubevirt\.io/.*|devices\.kubevirt\.io/(?:kvm|tun|vhost-net)"
    r"|(?:github\.com|smarter-devices|squat\.ai)/fuse"
)
# Nodes of the host that are no GPU; any other may be one by another name, as /dev/char/195:0 is.
OTHER_NODES = r"/dev/(?:infiniband|fuse|kvm|net|null|zero|full|random|urandom)(?:/[\w-]+)?"
NO_GPUS = frozenset({"", "none", "void", "-1"})  # values of NVIDIA_VISIBLE_DEVICES
# A vendor's runtime reads VENDOR_VISIBLE_DEVICES when it makes a container. These choose among those that it has.
GRANTS = "_VISIBLE_DEVICES"
CHOOSE = frozenset(f"{each}{GRANTS}" for each in ("CUDA", "HIP", "ROCR", "ASCEND_RT", "MLU", "MUSA", "TPU"))
VENDOR_VARIABLES = tuple(
    f"{each}{GRANTS}" for each in ("NVIDIA", "AMD", "HABANA", "ASCEND", "MTHREADS", "CAMBRICON", "IX", "AWS_NEURON")
)
RESOURCE_VARIABLE = "DOCKER_RESOURCE_GPU"  # which one runtime reads besides
DEVICES_FOLDER = "nvidia-container-devices"
_BY_MOUNT = rf"/(?:var/)?run/{DEVICES_FOLDER}(?:/.*)?"


def is_gpu_resource(resource: str) -> bool:
    """Return whether a resource of Kubernetes is GPUs."""
    return re.fullmatch(GPU_RESOURCE, resource) is not None


def is_no_accelerator(resource: str) -> bool:
    """Return whether a resource of Kubernetes is known to be none; an unknown name may be a part of a GPU."""
    return re.fullmatch(NO_ACCELERATOR, resource) is not None


def _is_read_by_runtimes(variable: str) -> bool:
    """Return whether a vendor's runtime gives a container the devices that this variable names."""
    return (variable.endswith(GRANTS) and variable not in CHOOSE) or variable == RESOURCE_VARIABLE


def gives_gpus(variable: str, value: str | None) -> bool:
    """Return whether a variable of a container asks a vendor's runtime for GPUs, which gives them without any flag.

    None is a value that stands elsewhere, which may be any.
    """
    return _is_read_by_runtimes(variable) and (value is None or value.strip().lower() not in NO_GPUS)


def may_give_gpus(prefix: str) -> bool:
    """Return whether variables of unknown names behind `prefix` may be those of a vendor's runtime."""
    return any(each.startswith(prefix) for each in VENDOR_VARIABLES)


def gives_gpu_nodes(device: str) -> bool:
    """Return whether a device as docker and Compose name it, a node of the host or a CDI name, may be a GPU."""
    return not re.fullmatch(OTHER_NODES, posixpath.normpath(device.partition(":")[0]).replace("//", "/"))


def gives_gpus_at(target: str) -> bool:
    """Return whether NVIDIA's runtime takes the name of a mount there for the name of a GPU to give."""
    return re.fullmatch(_BY_MOUNT, posixpath.normpath(f"/{target}").replace("//", "/")) is not None
