"""The compose target's text: one service a node, all of one project on one network."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from trainlaunch.container.container import above_scripts, container_of
from trainlaunch.container.engine_options import gpu_devices, tmpfs_options
from trainlaunch.container.paths import bind_source, host_source
from trainlaunch.container.secret_delivery import mounted_secrets
from trainlaunch.job.reserved import LABEL_PREFIX
from trainlaunch.job.spec import Mount, secret_path
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.target_names import node_names
from trainlaunch.render.header import header_lines
from trainlaunch.templating.environment import template_text
from trainlaunch.units import docker_size, format_cpus, format_duration

NODE_LABEL = LABEL_PREFIX + "node"


class Node(NamedTuple):
    """What differs between the containers of a job: the name, which is the host name too, and the GPUs."""

    name: str
    number: str
    gpu_ids: tuple[str, ...]


def text(plan: LaunchPlan, *, base: Path | None) -> str:
    """Return the file; `base` is the folder that it will lie in, None where it is read from a pipe."""
    job = plan.job
    first, *others = nodes_of(plan)
    return template_text(
        "compose.yaml.j2",
        header=header_lines(plan, base=base),
        job=job,
        container=container_of(plan),
        above_scripts=above_scripts(plan, ("image_entrypoint",) if job.image_entrypoint else ()),
        first=first,
        others=others,
        job_label=LABEL_PREFIX + "job",
        node_label=NODE_LABEL,
        shm_size=docker_size(plan.shm.size.value),
        shm_derivation=plan.shm.size.derivation,
        memory=None if plan.memory.limit is None else docker_size(plan.memory.limit),
        cpus=None if job.resources.cpus is None else format_cpus(job.resources.cpus),
        gpus=plan.gpus if job.resources.gpu_vendor == "nvidia" else None,
        devices=gpu_devices(plan),
        mounts=[(mount, _source(plan, mount, base)) for mount in job.mounts if mount.type != "tmpfs"],
        secret_files=[
            (name, secret_path(name), host_source(plan, str(secret.file), base))
            for name, secret in mounted_secrets(plan)
        ],
        # A volume without a name of its own would get the project's name in front, and docker would see another one.
        volumes=sorted({mount.source for mount in job.mounts if mount.type == "volume" and mount.source is not None}),
        tmpfs=[f"{target}:{options}" for target, options in tmpfs_options(plan).items()],
        duration=format_duration,
    )


def nodes_of(plan: LaunchPlan) -> tuple[Node, ...]:
    """Return the nodes in their order.

    A count of GPUs means the first ones of the host to every container, so several nodes name theirs by number.
    """
    names, each = node_names(plan.name, plan.nodes), plan.gpus.count
    if len(names) == 1:
        return (Node(names[0], "0", plan.gpus.ids),)
    return tuple(
        Node(name, str(number), tuple(str(number * each + gpu) for gpu in range(each)))
        for number, name in enumerate(names)
    )


def _source(plan: LaunchPlan, mount: Mount, base: Path | None) -> str | None:
    return bind_source(plan, mount, base) if mount.type == "bind" else mount.source
