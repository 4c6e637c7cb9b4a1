"""Where the nodes of a job meet: torchrun's own variable, so that its argv is the same on every target and node."""

from __future__ import annotations

from trainlaunch.container.kubernetes import kubernetes_name
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.names import node_names

VARIABLE = "PET_RDZV_ENDPOINT"  # torchrun reads PET_<OPTION> where its argv has no --<option>


def rendezvous_endpoint(plan: LaunchPlan) -> str | None:
    """Return HOST:PORT of the first node as the others reach it; None where one node is all, and needs no name."""
    torchrun = plan.job.torchrun
    if torchrun is None or torchrun.nnodes == 1:
        return None
    kind = plan.job.kind
    if kind is None:
        host = node_names(plan.name, torchrun.nnodes)[0]
    else:
        host = kind.first_host.format(name=kubernetes_name(plan))
    return f"{host}:{torchrun.rdzv_port}"


def rendezvous_variables(plan: LaunchPlan) -> tuple[tuple[str, str], ...]:
    """Return the variable that tells torchrun; a job that sets it itself has its own rendezvous."""
    endpoint = rendezvous_endpoint(plan)
    if endpoint is None or VARIABLE in {*plan.job.env, *plan.job.secrets}:
        return ()
    return ((VARIABLE, endpoint),)
