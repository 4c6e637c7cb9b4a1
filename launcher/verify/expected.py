"""What a final text must say: the plan as a ReadBack, without any template, quoting or escaping."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from launcher.job.spec import Mount
from launcher.plan.launch_plan import LaunchPlan
from launcher.render.container import Container, container_of
from launcher.render.spelling import has_relative_bind, needs_own_tmp
from launcher.verify.readback import ReadBack, ReadMount, absolute, flat

_CHANGES_INTO_ITS_FOLDER = ("cd", "--", "<$(dirname -- ><$>0)", "<|><|>", "exit", "125")


def expected(plan: LaunchPlan, *, base: Path | None) -> ReadBack:
    """Return what the text of the plan's target says when it says what the plan says."""
    container = container_of(plan)
    common = _common(plan, container)
    if plan.target == "kubernetes":
        from launcher.verify.expected_kubernetes import expected_on_kubernetes  # for this target only

        return expected_on_kubernetes(plan, container, common)
    common = common._replace(secrets={name: str(secret.env) for name, secret in container.secrets})
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
    size = plan.memory.limit if mount.type == "tmpfs" and plan.target == "kubernetes" else None
    return ReadMount(mount.type, source, mount.target, mount.read_only, size)


def _engine_devices(plan: LaunchPlan) -> dict[str, str]:
    if plan.gpus.ids:
        return {"gpus": ",".join(plan.gpus.ids)}
    if plan.gpus.all:
        return {"gpus": "all"}
    return {"gpus": str(plan.gpus.count)} if plan.gpus.count else {}


def _docker_rest(plan: LaunchPlan, base: Path | None) -> Iterator[tuple[str, object]]:
    yield from (("command", "exec docker run"), ("--rm", True), ("--init", True))
    if needs_own_tmp(plan):
        yield "--tmpfs", ("/tmp:exec",)
    before = tuple(_commands_before(plan, base))
    if before:
        yield "commands before", before


def _commands_before(plan: LaunchPlan, base: Path | None) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command that the script runs before docker's, as `statements` reads them."""
    if base is not None and has_relative_bind(plan):
        yield _CHANGES_INTO_ITS_FOLDER
    secrets = plan.job.secrets
    for name, secret in secrets.items():
        yield from (("if", "<[>", "-z", f"<${{{secret.env}:-}}>", "<]>"), ("then",))
        yield ("echo", f"secret {name}: variable {secret.env} of this shell is not set", "<>><&>2")
        yield from (("exit", "125"), ("fi",))
    others = [(name, str(secret.env)) for name, secret in secrets.items() if name != secret.env]
    renamed = [(f"trainlaunch_secret_{number}", *names) for number, names in enumerate(others, start=1)]
    yield from ((f"{temporary}=<${{{source}:-}}>",) for temporary, _, source in renamed)
    yield from ((f"{name}=<$>{temporary}",) for temporary, name, _ in renamed)
    if secrets:
        yield ("export", *secrets)


def _compose_rest(plan: LaunchPlan) -> dict[str, object]:
    names = {mount.source for mount in plan.job.mounts if mount.type == "volume"}
    tmp = ["/tmp:exec"] if needs_own_tmp(plan) else []
    return {
        "name": plan.name,
        "service": {"init": True, "restart": "no", "tmpfs": tmp},
        "volumes": {name: {"name": name} for name in names},
    }
