"""What jobs, engines and clusters call GPUs."""

ALL_GPUS = "all"  # in place of a count or of ids, to docker, Compose and NVIDIA's runtime too


def gpu_resource_of(vendor: str) -> str:
    """Return Kubernetes' name for the GPUs of a vendor, also the start of a CDI name."""
    return f"{vendor}.com/gpu"


NVIDIA_GPU, AMD_GPU = map(gpu_resource_of, ("nvidia", "amd"))
