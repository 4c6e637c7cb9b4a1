"""Where the nodes of a job meet: torchrun's own variable, so that its argv is the same on every target and node."""

from __future__ import annotations

from launcher.container.kubernetes import kubernetes_name
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.names import node_names

VARIABLE = "PET_RDZV_ENDPOINT"  # torchrun reads PET_<OPTION> where its argv has no --<option>


def rendezvous_endpoint(plan: LaunchPlan) -> str | None:
    """Return HOST:PORT of the first node as the others reach it; None where one node is all, and needs no name."""
    torchrun = plan.job.torchrun
    if torchrun is None or torchrun.nnodes == 1:
        return None
    host = _cluster_host(plan) if plan.target == "kubernetes" else node_names(plan.name, torchrun.nnodes)[0]
    return f"{host}:{torchrun.rdzv_port}"


def _cluster_host(plan: LaunchPlan) -> str:
    """Return the name by which pods of the same namespace find the pod with index 0."""
    name = kubernetes_name(plan)
    return {
        "job": f"{name}-0.{name}",
        "pytorchjob": f"{name}-master-0",
    }.get(plan.job.kubernetes.kind, f"{name}-node-0-0.{name}")


def rendezvous_variables(plan: LaunchPlan) -> tuple[tuple[str, str], ...]:
    """Return the variable that tells torchrun; a job that sets it itself has its own rendezvous."""
    endpoint = rendezvous_endpoint(plan)
    if endpoint is None or VARIABLE in {*plan.job.env, *plan.job.secrets}:
        return ()
    return ((VARIABLE, endpoint),)
