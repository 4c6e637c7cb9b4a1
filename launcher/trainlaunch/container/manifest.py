"""What the manifest of a job says, whatever stands above it: its name is made of this too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from trainlaunch.container.code_maps import CodeItem, code_maps
from trainlaunch.container.container import above_scripts, container_of
from trainlaunch.container.engine_options import needs_own_tmp
from trainlaunch.container.job_variables import restarts_field
from trainlaunch.container.kubernetes import (
    PULL_POLICIES,
    kubernetes_labels,
    kubernetes_name,
    needs_local_address,
    object_annotations,
    pod_annotations,
    pod_labels,
    security,
    stated_in_pod,
)
from trainlaunch.container.preflight import LIVENESS, liveness_timeout
from trainlaunch.container.secret_delivery import mounted_secrets
from trainlaunch.exit_codes import EXIT_FILES_WRONG, EXIT_TRY_ELSEWHERE, NEVER_RAN
from trainlaunch.job.reserved import KUEUE_QUEUE_LABEL
from trainlaunch.job.spec import JobSpec, Mount, secret_path
from trainlaunch.kinds import KINDS
from trainlaunch.plan.instrumentation import liveness_period
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.units import format_duration, kubernetes_cpus, kubernetes_size

_BESIDE = 64  # characters of a comment that fit behind a value of the pod's, in each kind of object


class PodVolume(NamedTuple):
    """A pod volume and its one mount.

    `source` is the PVC, the ConfigMap, the Secret's name/key, or the size of an emptyDir, in memory or not. `items`
    are the files that keys of the ConfigMap become, none where it is mounted as it is.
    """

    name: str
    type: str
    source: str | None
    target: str
    read_only: bool
    items: tuple[CodeItem, ...] = ()


def manifest_context(plan: LaunchPlan) -> dict[str, Any]:
    """Return what the template of the plan's kind of object says, but for the header above it."""
    job, name = plan.job, kubernetes_name(plan)
    container = container_of(plan)
    kind = KINDS[job.kubernetes.kind]
    return dict(
        job=job,
        platform=job.kubernetes,
        as_stated=stated_in_pod(job),
        container=container,
        code=list({each.name: each for each in code_maps(plan).values()}.values()),
        kind=kind,
        container_name=kind.container_name,
        name=name,
        nodes=job.nodes,
        gang=job.nodes > 1,
        subdomain=name if kind.own_service and job.nodes > 1 else None,
        labels=kubernetes_labels(plan, container.labels),
        pod_labels=pod_labels(plan, container.labels),
        queue_label=KUEUE_QUEUE_LABEL,
        pod_annotations=pod_annotations(plan, container.notes),
        annotations=object_annotations(plan),
        env=dict(container.env),
        local_address=needs_local_address(job),
        restarts_field=restarts_field(plan),
        security=security(job),
        stated_security=security(job)[:3] != (None, None, None) or security(job).seccomp or bool(job.group_add),
        tolerations=list(tolerations(plan)),
        pull_policy=PULL_POLICIES[job.pull_policy],
        requests=kubernetes_resources(plan),
        limits=kubernetes_limits(plan),
        volumes=list(kubernetes_volumes(plan)),
        shm_derivation=plan.shm.size.derivation,
        shm_comment_above=len(plan.shm.size.derivation) > _BESIDE,
        backoff_limit=0 if kind.restarts_together else job.max_attempts - 1,
        again=job.max_attempts > 1,
        deadline_of_pods=kind.deadline_of_pods and job.active_deadline is not None,
        **_exit_codes(job),
        **_checks(plan),
    )


def _checks(plan: LaunchPlan) -> Mapping[str, object]:
    """Return what the probes say, and the comment above the scripts, of which the first is a probe's."""
    job = plan.job
    return {
        "start_period": _stated_start_period(job),
        "above_scripts": above_scripts(plan, tuple(_between(job))),
        "liveness": LIVENESS,
        "liveness_timeout": liveness_timeout(job),
        "liveness_period": liveness_period(job),
    }


def _stated_start_period(job: JobSpec) -> str | None:
    """Return the time as the job sets it, None for the usual one, of which there is nothing to say."""
    stated = job.origin("healthcheck.start_period").kind != "default"
    return format_duration(job.healthcheck.start_period) if stated else None


def _between(job: JobSpec) -> Iterator[str]:
    """Yield the job's own parts that stand behind a script, since their keys are below its."""
    if job.healthcheck.stops:
        yield "the readiness probe"
    if job.image_entrypoint:
        yield "image_entrypoint"


def _exit_codes(job: JobSpec) -> Mapping[str, object]:
    """Return the exit codes after which no attempt follows, and those after which one does."""
    retried = sorted({EXIT_TRY_ELSEWHERE, *(job.on_exit_codes or ())})
    return {"files_wrong": EXIT_FILES_WRONG, "never_ran": NEVER_RAN, "retried_codes": retried}


def tolerations(plan: LaunchPlan) -> Iterator[Mapping[str, object]]:
    """Yield what GPU nodes are tainted with, the resource's own name and its vendor's, then the job's own."""
    if plan.gpus.count:
        resource = plan.job.resources.gpu_resource
        for key in dict.fromkeys((resource, f"{resource.partition('/')[0]}/gpu")):
            yield {"key": key, "operator": "Exists", "effect": "NoSchedule"}
    yield from plan.job.kubernetes.tolerations


def kubernetes_resources(plan: LaunchPlan) -> dict[str, str]:
    """Return what the container requests, also its limit: devices may not differ, memory and CPUs are planned for."""
    asked = plan.job.resources
    named: dict[str, str] = {}
    if asked.cpus is not None:
        named["cpu"] = kubernetes_cpus(asked.cpus)
    if plan.memory.limit is not None:
        named["memory"] = kubernetes_size(plan.memory.limit)
    if asked.ephemeral_storage is not None:
        named["ephemeral-storage"] = kubernetes_size(asked.ephemeral_storage)
    if plan.gpus.count:
        named[asked.gpu_resource] = str(plan.gpus.count)
    return named | {name: str(count) for name, count in asked.extended.items()}


def kubernetes_limits(plan: LaunchPlan) -> dict[str, str]:
    """Return the container's limits: its requests, without CPUs where `kubernetes.cpu_limit` is false."""
    limited = plan.job.kubernetes.cpu_limit
    return {name: value for name, value in kubernetes_resources(plan).items() if limited or name != "cpu"}


def kubernetes_volumes(plan: LaunchPlan) -> Iterator[PodVolume]:
    """Yield the pod's volumes, /dev/shm first."""
    yield PodVolume("shm", "shm", kubernetes_size(plan.shm.size.value), "/dev/shm", False)
    if needs_own_tmp(plan):
        yield PodVolume("tmp", "scratch", None, "/tmp", False)
    code = code_maps(plan)
    for index, mount in enumerate(plan.job.mounts):
        volume = PodVolume(f"mount-{index}", mount.type, _source(plan, mount), mount.target, mount.read_only)
        of_code = code.get(index)
        yield volume._replace(type="config", source=of_code.name, items=of_code.items) if of_code else volume
    for index, (name, secret) in enumerate(mounted_secrets(plan)):
        yield PodVolume(f"secret-{index}", "secret", secret.kubernetes, secret_path(name), True)


def _source(plan: LaunchPlan, mount: Mount) -> str | None:
    """Return what the volume refers to; a tmpfs gets the memory limit as its size, all that it can ever use."""
    if mount.type == "tmpfs" and plan.memory.limit is not None:
        return kubernetes_size(plan.memory.limit)
    return mount.source
