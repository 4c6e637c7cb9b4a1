"""The engine's create request for a plan: the same meaning as the rendered `docker run` text, without its CLI."""

from __future__ import annotations

from typing import Any

from launcher.container.container import container_of
from launcher.container.devices import gpu_devices
from launcher.container.paths import absolute_bind
from launcher.container.secrets import secret_mounts
from launcher.container.tmpfs import tmpfs_options
from launcher.job.reserved import LABEL_PREFIX
from launcher.job.spec import Gpus, HealthCheck, Mount
from launcher.plan.launch_plan import LaunchPlan
from launcher.run.secrets import secret_value

NANO = 1_000_000_000
NANO_PER_MILLI = 1_000_000


def create_body(plan: LaunchPlan, *, run: str, attempt: int) -> dict[str, Any]:
    """Return the JSON body of `POST /containers/create`; secret values are read now.

    A relative bind source is relative to the job file's folder. Raises TargetUnavailable for a secret whose source is
    gone since the checks.
    """
    job = plan.job
    container = container_of(plan)
    secrets = [f"{name}={secret_value(plan, name)}" for name, _ in container.secrets]
    body: dict[str, Any] = {
        "Image": job.image,
        "Entrypoint": [container.entrypoint[0]],
        "Cmd": [*container.entrypoint[1:], *container.args],
        "Env": [*(f"{name}={value}" for name, value in container.env), *secrets],
        "Labels": {**dict(container.labels), **run_labels(plan, run=run, attempt=attempt)},
        "Healthcheck": _health(container.health, job.healthcheck),
        "StopTimeout": job.stop_grace_period,
        "AttachStdout": True,
        "AttachStderr": True,
        "HostConfig": _host_config(plan),
    }
    optional = {"WorkingDir": job.working_dir, "User": job.user, "StopSignal": job.stop_signal}
    body.update({key: value for key, value in optional.items() if value is not None})
    if job.patch is not None:
        from launcher.run.docker.flags import add_flags  # few jobs have some

        add_flags(body, job.patch.flags)
    return body


def run_labels(plan: LaunchPlan, *, run: str, attempt: int) -> dict[str, str]:
    """Return the labels that only a run has; `own_labels` are those that every rendering carries."""
    values = {"run": run, "attempt": str(attempt), "max-attempts": str(plan.job.max_attempts)}
    if plan.job.ttl_after_finished is not None:
        values["ttl-after-finished"] = str(plan.job.ttl_after_finished)
    return {LABEL_PREFIX + key: value for key, value in values.items()}


def _health(command: str, check: HealthCheck) -> dict[str, Any]:
    return {
        "Test": ["CMD-SHELL", command],
        "Interval": check.interval * NANO,
        "Timeout": check.timeout * NANO,
        "Retries": check.retries,
        "StartPeriod": check.start_period * NANO,
    }


def _host_config(plan: LaunchPlan) -> dict[str, Any]:
    job = plan.job
    host: dict[str, Any] = {
        "Init": True,
        "ShmSize": plan.shm.size.value,
        "NetworkMode": "default",
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "ReadonlyRootfs": job.read_only,
    }
    if job.resources.memory is not None:
        host["Memory"] = job.resources.memory
    if job.resources.cpus is not None:
        host["NanoCpus"] = job.resources.cpus * NANO_PER_MILLI
    if job.group_add:
        host["GroupAdd"] = list(job.group_add)
    in_memory = tmpfs_options(plan)
    if in_memory:
        host["Tmpfs"] = in_memory
    mounts = [each for each in (*job.mounts, *secret_mounts(plan)) if each.type != "tmpfs"]
    if mounts:
        host["Mounts"] = [_mount(plan, each) for each in mounts]
    if job.ulimits:
        host["Ulimits"] = [{"Name": each.name, "Soft": each.soft, "Hard": each.hard} for each in job.ulimits]
    devices = gpu_devices(plan)
    if devices:
        host["Devices"] = [
            {"PathOnHost": each, "PathInContainer": each, "CgroupPermissions": "rwm"} for each in devices
        ]
    elif plan.gpus:
        host["DeviceRequests"] = [_device_request(plan.gpus)]
    return host


def _mount(plan: LaunchPlan, mount: Mount) -> dict[str, Any]:
    spelled: dict[str, Any] = {"Type": "volume" if mount.type == "scratch" else mount.type, "Target": mount.target}
    if mount.type == "bind":
        spelled["Source"] = absolute_bind(plan, mount)
    elif mount.type == "volume":
        spelled["Source"] = mount.source
    if mount.read_only:
        spelled["ReadOnly"] = True
    return spelled


def _device_request(gpus: Gpus) -> dict[str, Any]:
    count = 0 if gpus.ids else -1 if gpus.all else gpus.count
    ids = list(gpus.ids) if gpus.ids else None
    return {"Driver": "", "Count": count, "DeviceIDs": ids, "Capabilities": [["gpu"]], "Options": {}}
