"""What of a rendered file the plan owns: where a patch may add, where it may not, and the field to use instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainlaunch.formats.docker.flags import takes_shm

# Fields of a ReadBack whose names differ from the job file's.
FIELDS = {
    "pull": "pull_policy",
    "process": "command, script or image_entrypoint",
    "memory": "resources.memory",
    "cpus": "resources.cpus",
    "devices": "resources.gpus or resources.extended",
    "mounts": "mounts",
    "health": "healthcheck",
    "health_times": "healthcheck",
    "groups": "group_add",
    "stop_timeout": "stop_grace_period",
}
# Mappings to which a patch may add what the plan doesn't name.
OPEN = frozenset({"env", "secrets", "labels", "ulimits"})

# What else of a text is the plan's, by its path as a ReadBack's rest has it; the rest is the patch's where it names it.
_OWNED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "compose": (
        (r"name", "name"),
        (r"service\.init", ""),
        (r"service\.restart", "restart.max_attempts"),
        (r"service\.container_name", "name"),
        (r"service\.(tty|stdin_open)", ""),  # another stream than the one that `up` reads
        (r"service\.(scale|deploy\.replicas)", "torchrun.nnodes"),
        # Another file's services are read by nobody, and a profile's are not created.
        (r"include.*|service\.profiles.*", ""),
        (r"service\.(ipc|extends.*|volumes_from.*)", "shm_size"),
        (r"service\.healthcheck\..*", "healthcheck"),
        (r"service\.gpus.*|service\.deploy\.resources\.reservations\..*", "resources.gpus"),
        (r"service\.deploy\.resources\.limits\.memory", "resources.memory"),
        (r"service\.(deploy\.resources\.limits\.cpus|cpu_quota|cpu_period|cpu_count|cpu_percent)", "resources.cpus"),
    ),
    "kubernetes": (
        (r"apiVersion|kind", "kubernetes.kind"),
        (r"metadata\.namespace", "kubernetes.namespace"),
        (r"(metadata|spec\.template\.metadata)\.(labels|annotations)\..*", "labels or annotations"),
        (r"spec\.(backoffLimit|podFailurePolicy\..*)|pod\.restartPolicy", "restart.max_attempts"),
        (r"(spec|pod)\.activeDeadlineSeconds", "active_deadline"),
        (r"spec\.ttlSecondsAfterFinished", "ttl_after_finished"),
        (r"spec\.(completions|parallelism|completionMode|backoffLimitPerIndex)", "torchrun.nnodes"),
        (r"pod\.(shareProcessNamespace|hostIPC)|container\.name", ""),
        # A policy bounds these by their fields.
        (r"pod\.serviceAccountName", "kubernetes.service_account"),
        (r"pod\.automountServiceAccountToken", "kubernetes.token"),
        (r"pod\.priorityClassName", "kubernetes.priority_class"),
        (r"before\.\d+\.(data|binaryData)\..*|before\.\d+\.immutable", "mounts"),
        (r"requests are limits", "resources.memory and resources.cpus"),
    ),
}
# How several nodes find each other; a job of one container leaves them to the patch.
_MEETING = frozenset({"service.hostname", "service.depends_on.0", "pod.subdomain"})
# Paths below which a patch may add keys, though those that are there are the plan's.
_MAY_ADD = re.compile(r"(metadata|spec\.template\.metadata)\.(labels|annotations)\..*")


def owned_rest(
    target: str, want: Mapping[str, object], have: Mapping[str, object]
) -> Iterator[tuple[str, tuple[object, object, str]]]:
    """Yield each changed path of a rest that is the plan's: planned, found, and the field to use instead."""
    for path in {**want, **have}:
        planned, found = want.get(path), have.get(path)
        if planned == found:
            continue
        field = next((field for pattern, field in _OWNED.get(target, ()) if re.fullmatch(pattern, path)), None)
        adds = path not in want and _MAY_ADD.fullmatch(path) and "trainlaunch.dev/" not in path
        if path.startswith("service.tmpfs"):
            field = "shm_size" if takes_shm(str(found or "").partition(":")[0].lstrip("/") or "tmp") else None
            field = "mounts" if field is None and path in want else field
        if path in _MEETING and path in want:
            field = "torchrun.nnodes"
        if field is not None and not adds:
            yield path, (planned, found, field)
