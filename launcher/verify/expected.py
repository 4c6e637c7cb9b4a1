"""What a final text must say: the plan as a ReadBack, without any template, quoting or escaping."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from launcher.job.reserved import CLUSTER_HOME, SECRETS_FOLDER
from launcher.job.spec import Mount, numeric_user, secret_path
from launcher.plan.launch_plan import LaunchPlan
from launcher.render.container import Container, container_of
from launcher.render.secrets import mounted_secrets, passed_secrets, written_secrets
from launcher.render.spelling import (
    gpu_devices,
    has_relative_bind,
    host_source,
    kubernetes_labels,
    kubernetes_name,
    needs_own_tmp,
)
from launcher.verify.readback import ReadBack, ReadMount, absolute, flat

_CHANGES_INTO_ITS_FOLDER = ("cd", "--", "<$(dirname -- ><$>0)", "<|><|>", "exit", "125")


def expected(plan: LaunchPlan, *, base: Path | None) -> ReadBack:
    """Return what the text of the plan's target says when it says what the plan says."""
    container = container_of(plan)
    common = _common(plan, container)
    if plan.target == "kubernetes":
        return _kubernetes(plan, container, common)
    common = common._replace(secrets=_engine_secrets(plan, container), mounts=_engine_mounts(plan))
    if plan.target == "docker":
        return common._replace(rest=dict(_docker_rest(plan, base)))
    return common._replace(rest=dict(flat(_compose_rest(plan))))


def _common(plan: LaunchPlan, container: Container) -> ReadBack:
    job = plan.job
    check = job.healthcheck
    return ReadBack(
        name=plan.name,
        image=job.image,
        pull=job.pull_policy,
        process=(*container.entrypoint, *container.args),
        env=dict(container.env),
        secrets={},
        labels=dict(container.labels),
        shm_size=plan.shm.size.value,
        memory=plan.memory.limit,
        cpus=job.resources.cpus,
        devices=_engine_devices(plan),
        mounts=tuple(_mount(plan, mount) for mount in job.mounts),
        health=container.health,
        health_times={
            "interval": check.interval,
            "timeout": check.timeout,
            "retries": check.retries,
            "start_period": check.start_period,
        },
        user=job.user,
        groups=job.group_add,
        working_dir=job.working_dir,
        read_only=job.read_only,
        stop_signal=job.stop_signal,
        stop_timeout=job.stop_grace_period,
        ulimits={limit.name: (limit.soft, limit.hard) for limit in job.ulimits},
        rest={},
    )


def _mount(plan: LaunchPlan, mount: Mount) -> ReadMount:
    bind = mount.type == "bind"
    source = absolute(mount.source, Path(plan.job.path).parent) if bind else mount.source
    size = plan.memory.limit if mount.type == "tmpfs" else None
    return ReadMount(mount.type, source, mount.target, mount.read_only, size)


def _engine_mounts(plan: LaunchPlan) -> tuple[ReadMount, ...]:
    """Return the mounts in the order of an engine's text: what lies in memory, the job's others, files of secrets."""
    in_memory = [ReadMount("tmpfs", None, "/tmp", False)] if needs_own_tmp(plan) else []
    if written_secrets(plan):
        in_memory.append(ReadMount("tmpfs with mode=1777", None, SECRETS_FOLDER, False))
    mounts = [_mount(plan, each) for each in plan.job.mounts]
    in_memory += [each for each in mounts if each.type == "tmpfs"]
    folder = Path(plan.job.path).parent
    secrets = [
        ReadMount("bind", absolute(each.file, folder), secret_path(name), True) for name, each in mounted_secrets(plan)
    ]
    return (*in_memory, *(each for each in mounts if each.type != "tmpfs"), *secrets)


def _engine_secrets(plan: LaunchPlan, container: Container) -> dict[str, str]:
    folder = Path(plan.job.path).parent
    return {
        name: str(secret.env) if secret.file is None else f"file {absolute(secret.file, folder)}"
        for name, secret in container.secrets
    }


def _engine_devices(plan: LaunchPlan) -> dict[str, str]:
    nodes = gpu_devices(plan)
    if nodes:
        return {"nodes": " ".join(nodes)}
    if plan.gpus.ids:
        return {"gpus": ",".join(plan.gpus.ids)}
    if plan.gpus.all:
        return {"gpus": "all"}
    return {"gpus": str(plan.gpus.count)} if plan.gpus.count else {}


def _docker_rest(plan: LaunchPlan, base: Path | None) -> Iterator[tuple[str, object]]:
    yield from (("command", "exec docker run"), ("--rm", True), ("--init", True))
    before = tuple(_commands_before(plan, base))
    if before:
        yield "commands before", before


def _commands_before(plan: LaunchPlan, base: Path | None) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command that the script runs before docker's, as `statements` reads them."""
    if base is not None and has_relative_bind(plan):
        yield _CHANGES_INTO_ITS_FOLDER
    for name, secret in mounted_secrets(plan):
        path = host_source(plan, str(secret.file), base)
        tests = (("<[>", "<!>", flag, path, "<]>") for flag in ("-f", "-r", "-s"))
        first, *others = tests
        yield ("if", *first, *(word for each in others for word in ("<|><|>", *each)))
        yield from _stop_before(f"secret {name}: file {path} can't be read, or is empty")
    passed = passed_secrets(plan)
    held = [name for name, secret in passed if secret.file is not None or name != secret.env]
    holders = {name: f"trainlaunch_secret_{number}" for number, name in enumerate(held, start=1)}
    for name, secret in passed:
        tested, message = secret.env, f"variable {secret.env} of this shell is not set"
        if secret.file is not None:
            path, tested = host_source(plan, secret.file, base), holders[name]
            message = f"file {path} can't be read, or is empty"
            yield (f"{tested}=<$><(>cat", f"{path}<)>")
        yield ("if", "<[>", "-z", f"<${{{tested}:-}}>", "<]>")
        yield from _stop_before(f"secret {name}: {message}")
    renamed = [(name, secret.env) for name, secret in passed if name in holders and secret.file is None]
    yield from ((f"{holders[name]}=<${{{source}:-}}>",) for name, source in renamed)
    yield from ((f"{name}=<$>{holder}",) for name, holder in holders.items())
    if passed:
        yield ("export", *(name for name, _ in passed))


def _stop_before(message: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of a guard after its condition."""
    yield from (("then",), ("echo", message, "<>><&>2"), ("exit", "125"), ("fi",))


def _compose_rest(plan: LaunchPlan) -> dict[str, object]:
    names = {mount.source for mount in plan.job.mounts if mount.type == "volume"}
    return {
        "name": plan.name,
        "service": {"init": True, "restart": "no"},
        "volumes": {name: {"name": name} for name in names},
    }


def _kubernetes(plan: LaunchPlan, container: Container, common: ReadBack) -> ReadBack:
    from launcher.render.kubernetes import PULL_POLICIES, missing_identity  # for this target only

    uid, gid = numeric_user(plan.job.user) or (None, None)
    own = [
        ReadMount("tmpfs", None, "/dev/shm", False, plan.shm.size.value),
        ReadMount("scratch", None, CLUSTER_HOME, False),
    ]
    if needs_own_tmp(plan):
        own.append(ReadMount("scratch", None, "/tmp", False))
    labels = kubernetes_labels(plan, container.labels)
    return common._replace(
        name=kubernetes_name(plan),
        pull=PULL_POLICIES[plan.job.pull_policy],
        env=dict(container.env) | missing_identity(plan),
        secrets={name: str(secret.kubernetes) for name, secret in container.secrets},
        labels=labels,
        devices=_cluster_devices(plan),
        mounts=(*own, *common.mounts, *_cluster_secrets(plan)),
        health_times={key: value for key, value in common.health_times.items() if key != "start_period"},
        user=f"{uid}:{gid}",
        rest=dict(flat(_pod_rest(plan) | (_job_rest(plan, labels) if plan.job.kubernetes.kind == "job" else {}))),
    )


def _cluster_secrets(plan: LaunchPlan) -> Iterator[ReadMount]:
    for name, secret in mounted_secrets(plan):
        yield ReadMount("secret", secret.kubernetes, secret_path(name), True)


def _cluster_devices(plan: LaunchPlan) -> dict[str, str]:
    asked = plan.job.resources
    devices = {name: str(count) for name, count in asked.extended.items()}
    if plan.gpus.count:
        devices[asked.gpu_resource] = str(plan.gpus.count)
    if asked.ephemeral_storage is not None:
        devices["ephemeral-storage"] = str(asked.ephemeral_storage)
    return devices


def _pod_rest(plan: LaunchPlan) -> dict[str, object]:
    """Return what each pod of ours says beside the plan's values: Pod Security `restricted`, signals, tolerations."""
    job = plan.job
    toleration = {"key": job.resources.gpu_resource, "operator": "Exists", "effect": "NoSchedule"}
    pod: dict[str, object] = {
        "restartPolicy": "Never",
        "shareProcessNamespace": True,
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "fsGroup": 1000,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [toleration] if plan.gpus.count else [],
    }
    if job.kubernetes.kind == "pod" and job.active_deadline is not None:
        pod["activeDeadlineSeconds"] = job.active_deadline
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    metadata: dict[str, object] = {"annotations": dict(job.annotations)}
    if job.kubernetes.namespace is not None:
        metadata["namespace"] = job.kubernetes.namespace
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "pod": pod,
        "container": {"name": "train", "securityContext": security},
        "requests are limits": True,
    }


def _job_rest(plan: LaunchPlan, labels: dict[str, str]) -> dict[str, object]:
    job = plan.job
    spec: dict[str, object] = {
        "backoffLimit": job.max_attempts - 1,
        "template": {"metadata": {"labels": labels, "annotations": dict(job.annotations)}},
        "podFailurePolicy": {
            "rules": [
                {"action": "FailJob", "onExitCodes": _exit_codes(78, 125, 126, 127)},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "Count", "onExitCodes": _exit_codes(75)},
            ]
        },
    }
    if job.active_deadline is not None:
        spec["activeDeadlineSeconds"] = job.active_deadline
    if job.ttl_after_finished is not None:
        spec["ttlSecondsAfterFinished"] = job.ttl_after_finished
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}


def _exit_codes(*values: int) -> dict[str, object]:
    return {"containerName": "train", "operator": "In", "values": list(values)}
