"""What a target does otherwise than the job file may lead one to think, and images that may change."""

from __future__ import annotations

from collections.abc import Iterator

from trainlaunch.diagnostics import Severity
from trainlaunch.job.spec import is_floating
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.target_names import MAX_NAME_LENGTH, longest_cluster_name, shortened
from trainlaunch.rules.base.rule import Problem, plan_rule
from trainlaunch.units import format_duration

TAG_FLOATS = "a floating tag can move to another image, so a run can't be repeated"
_CONTAINERS_OWN = ("image", "pull_policy", "image_entrypoint", "user", "group_add", "ulimits", "labels")
_ONLY_COMPARED = ("resources.cpus", "resources.memory", "shm_size")
_GLOO, _NCCL = "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"


@plan_rule("TL402", Severity.INFO)
def name_shortened(plan: LaunchPlan) -> Iterator[Problem]:
    """Says the name that the objects get."""
    job, name = plan.job, plan.name
    if job.kind is None:
        return
    longest = longest_cluster_name(job.kind, job.nodes, fixed=plan.stable_name)
    if len(name) > longest:
        short = shortened(name, longest)
        yield Problem(
            f"name has {len(name)} characters, {longest} fit beside the suffix, so it becomes {short}",
            f"choose a name of at most {longest} characters",
            f"the name becomes a label of the job's pods, and labels hold {MAX_NAME_LENGTH} characters",
            "name",
        )


@plan_rule("TL404", Severity.INFO)
def not_applied_on_a_host(plan: LaunchPlan) -> Iterator[Problem]:
    """Lists the fields that are set without effect on target local."""
    job = plan.job
    if plan.target_record.starts_container:
        return
    stated = [each for each in _CONTAINERS_OWN if each in job.origins]
    stated += ["read_only"] * job.read_only
    stated += [f"mounts[{index}].read_only" for index, mount in enumerate(job.mounts) if mount.read_only]
    compared = [each for each in _ONLY_COMPARED if each in job.origins]
    said = [f"target local does not apply {', '.join(stated)}"] * bool(stated)
    no_limit = f"{'is' if len(compared) == 1 else 'are'} not enforced on target local"
    said += [f"{', '.join(compared)} {no_limit}"] * bool(compared)
    if not said:
        return
    first = (stated or compared)[0]
    yield Problem(
        "; ".join(said),
        "run it with `--target docker` where they matter",
        "the job is a process of this host, without a container",
        "image" if "image" in stated else first,
        job.span("image") or job.span(first),
    )


@plan_rule("TL111", Severity.WARNING)
def image_tag_floating(plan: LaunchPlan) -> Iterator[Problem]:
    """A tag `latest` or none; a digest is fixed, and target local starts no image."""
    if plan.target_record.starts_container and is_floating(plan.job.image):
        yield Problem(
            f"image {plan.job.image} names no fixed release",
            "set image to a tag other than latest, or to a digest (name@sha256:…)",
            TAG_FLOATS,
            "image",
        )


@plan_rule("TL406", Severity.WARNING)
def interface_unstated(plan: LaunchPlan) -> Iterator[Problem]:
    """A warning on the nodes' own network, an info for several nodes with one of their own each."""
    job = plan.job
    own_network = job.kind is not None and job.kubernetes.host_network
    if job.nodes * plan.ranks.value < 2 or not (own_network or job.nodes > 1):
        return
    wanted = [name for name in (_GLOO, *([_NCCL] if plan.gpus else [])) if name not in {*job.env, *job.secrets}]
    if not wanted:
        return
    where = "on the nodes' own network" if own_network else f"of {job.nodes} nodes"
    yield Problem(
        f"ranks {where} choose their interface themselves: {' and '.join(wanted)} "
        f"{'is' if len(wanted) == 1 else 'are'} not set",
        f"add env: {{{', '.join(f'{name}: eth0' for name in wanted)}}}, by the name in `ip -br address` there",
        "a bridge or a network for storage may be taken, and the ranks wait for each other until a timeout",
        "kubernetes.host_network" if own_network else "torchrun.nnodes",
        severity=None if own_network else Severity.INFO,
    )


@plan_rule("TL213", Severity.WARNING)
def attempts_without_checkpoint(plan: LaunchPlan) -> Iterator[Problem]:
    """Further attempts are asked for, and nothing says where the one before left off."""
    job = plan.job
    if job.max_attempts > 1 and job.checkpoint_dir is None:
        attempts = f"restart.max_attempts is {job.max_attempts}"
        yield Problem(
            f"{attempts}, and checkpoint_dir is not set: each trains from the start",
            "mount a folder, set it as checkpoint_dir, and let the script go on from TRAINLAUNCH_CHECKPOINT_DIR",
            "an attempt starts in a new container, and what the one before wrote there is gone with it",
            "restart.max_attempts",
        )


@plan_rule("TL405", Severity.INFO)
def backoff_of_cluster(plan: LaunchPlan) -> Iterator[Problem]:
    """Says what the kind's controller does instead."""
    job = plan.job
    if job.backoff is not None and job.kind is not None:
        backoff = format_duration(job.backoff)
        yield Problem(
            f"restart.backoff {backoff} is not in effect on a {job.kind.name}: {job.kind.between_attempts}",
            "leave it for the other targets, or delete it",
            "no field of Kubernetes says how long to wait between two attempts",
            "restart.backoff",
        )
