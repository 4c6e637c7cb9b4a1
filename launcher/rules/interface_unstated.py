"""Ranks talk over the network, and no variable says by which interface.

**Why it matters**: gloo takes the interface of the address that the host's name has, NCCL the first that it likes. On a
node's own network (`host_network`), or with a second network for RDMA, ranks then wait for each other on a bridge that
leads nowhere: `Connect timeout`, or a hang at the first collective.

**Example**:

```yaml
target: kubernetes
resources: {cpus: 8, memory: 16Gi}
torchrun: {nnodes: 2}
kubernetes: {host_network: true, pod_security: privileged}
```

**Use instead**:

```yaml
target: kubernetes
resources: {cpus: 8, memory: 16Gi}
env: {GLOO_SOCKET_IFNAME: eth0, NCCL_SOCKET_IFNAME: eth0}
torchrun: {nnodes: 2}
kubernetes: {host_network: true, pod_security: privileged}
```

**Fix**: none by itself: only who knows the nodes knows the name, which `ip -br address` shows there.

**References**: NCCL's environment variables; torch.distributed, section Choosing the network interface to use.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan

CODE = "TL406"
NAME = "interface-unstated"
SEVERITY = Severity.WARNING
_GLOO, _NCCL = "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning on the nodes' own network, an info for several nodes with one of their own each."""
    job = plan.job
    own_network = job.kind is not None and job.kubernetes.host_network
    if job.nodes * plan.ranks.value < 2 or not (own_network or job.nodes > 1):
        return
    wanted = [name for name in (_GLOO, *([_NCCL] if plan.gpus else [])) if name not in {*job.env, *job.secrets}]
    if not wanted:
        return
    field = "kubernetes.host_network" if own_network else "torchrun.nnodes"
    where = "on the nodes' own network" if own_network else f"of {job.nodes} nodes"
    yield Diagnostic(
        CODE,
        f"ranks {where} choose their interface themselves: {' and '.join(wanted)} "
        f"{'is' if len(wanted) == 1 else 'are'} not stated",
        f"add env: {{{', '.join(f'{name}: eth0' for name in wanted)}}}, by the name in `ip -br address` there",
        why="a bridge or a network for storage may be taken, and the ranks wait for each other until a timeout",
        severity=SEVERITY if own_network else Severity.INFO,
        span=job.span(field),
        field=field,
    )
