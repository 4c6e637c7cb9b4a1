"""Where the torchruns of several nodes meet: known from the names of what runs them, without asking anybody."""

from __future__ import annotations

from launcher.plan.launch_plan import LaunchPlan
from launcher.render.spelling import kubernetes_name

ENDPOINT = "PET_RDZV_ENDPOINT"  # torchrun reads PET_<OPTION> for each option that its argv leaves out


def rendezvous_endpoint(plan: LaunchPlan) -> str | None:
    """Return `host:port` of node 0, None for a job of one node."""
    torchrun = plan.job.torchrun
    if torchrun is None or torchrun.nnodes == 1:
        return None
    return f"{_cluster_host(plan)}:{torchrun.rdzv_port}"


def _cluster_host(plan: LaunchPlan) -> str:
    """Return the name by which pods of the same namespace find the pod with index 0."""
    name = kubernetes_name(plan)
    return {
        "job": f"{name}-0.{name}",
        "pytorchjob": f"{name}-master-0",
    }.get(plan.job.kubernetes.kind, f"{name}-node-0-0.{name}")
