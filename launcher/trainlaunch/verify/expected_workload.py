"""What a final text must say: the plan as a Workload, without any template, quoting or escaping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainlaunch.container.container import Container, container_of
from trainlaunch.container.engine_options import gpu_devices, needs_own_tmp
from trainlaunch.container.secret_delivery import mounted_secrets, written_secrets
from trainlaunch.formats.workload import SIZE, GpuRequest, MountPoint, ShmSetting, Workload
from trainlaunch.job.reserved import SECRETS_FOLDER
from trainlaunch.job.spec import Mount, secret_path
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.verify.plain import PLANNED, absolute, planned


def engine_workload(plan: LaunchPlan) -> Workload:
    """Return what an engine's text says; `rest` is each target's own."""
    container = container_of(plan)
    common = planned_workload(plan, container)
    return common._replace(secrets=_engine_secrets(plan, container), mounts=_engine_mounts(plan))


def planned_workload(plan: LaunchPlan, container: Container) -> Workload:
    """Return what every target's text says; `secrets` and `rest` are each target's own."""
    job = plan.job
    check = job.healthcheck
    times = {
        "interval": check.interval,
        "timeout": check.timeout,
        "retries": check.retries,
        "start_period": check.start_period,
    }
    return Workload(
        format="",
        place="",
        span=PLANNED,
        name=planned(plan.name),
        image=planned(job.image),
        pull_policy=planned(job.pull_policy),
        entrypoint=planned(container.entrypoint),
        command=planned(container.args),
        env={name: planned(value) for name, value in container.env},
        labels={name: planned(value) for name, value in (*container.labels, *container.notes)},
        shm=ShmSetting(SIZE, planned(plan.shm.size.value)),
        memory=planned(plan.memory.limit),
        cpus=planned(job.resources.cpus),
        **_engine_devices(plan),
        mounts=tuple(_mount(plan, mount) for mount in job.mounts),
        health=planned(container.health),
        health_times={name: planned(value) for name, value in times.items()},
        user=planned(job.user),
        groups=job.group_add,
        working_dir=planned(job.working_dir),
        read_only=planned(job.read_only),
        stop_signal=planned(job.stop_signal),
        stop_timeout=planned(job.stop_grace_period),
        ulimits={limit.name: (limit.soft, limit.hard) for limit in job.ulimits},
    )


def _mount(plan: LaunchPlan, mount: Mount) -> MountPoint:
    bind = mount.type == "bind"
    source = absolute(mount.source, Path(plan.job.path).parent) if bind else mount.source
    size = plan.memory.limit if mount.type == "tmpfs" else None
    return MountPoint(mount.type, planned(source), planned(mount.target), mount.read_only, planned(size))


def _engine_mounts(plan: LaunchPlan) -> tuple[MountPoint, ...]:
    """Return the mounts in the order of an engine's text: what lies in memory, the job's others, files of secrets."""
    in_memory = [MountPoint("tmpfs", None, planned("/tmp"))] if needs_own_tmp(plan) else []
    if written_secrets(plan):
        in_memory.append(MountPoint("tmpfs", None, planned(SECRETS_FOLDER), options="mode=1777"))
    mounts = [_mount(plan, each) for each in plan.job.mounts]
    in_memory += [each for each in mounts if each.type == "tmpfs"]
    folder = Path(plan.job.path).parent
    secrets = [
        MountPoint("bind", planned(absolute(each.file, folder)), planned(secret_path(name)), True)
        for name, each in mounted_secrets(plan)
    ]
    return (*in_memory, *(each for each in mounts if each.type != "tmpfs"), *secrets)


def _engine_secrets(plan: LaunchPlan, container: Container) -> dict[str, str]:
    folder = Path(plan.job.path).parent
    return {
        name: str(secret.env) if secret.file is None else f"file {absolute(secret.file, folder)}"
        for name, secret in container.secrets
    }


def _engine_devices(plan: LaunchPlan) -> dict[str, Any]:
    """Return the fields of a Workload that say which GPUs it gets."""
    nodes = gpu_devices(plan)
    if nodes:
        return {"devices": {"nodes": " ".join(nodes)}}
    gpus = plan.gpus
    number = 0 if gpus.ids or gpus.all else gpus.count
    return {"gpus": planned(GpuRequest(number, gpus.ids, gpus.all))} if gpus else {}
