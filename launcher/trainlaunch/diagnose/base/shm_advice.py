"""What to type where /dev/shm turned out too small, while a job runs and after its end."""

from __future__ import annotations

import re

from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.plan.plan_label import Planned
from trainlaunch.targets import KUBERNETES
from trainlaunch.units import GIB, format_size, human_size, round_up

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)


def larger_shm(evidence: Evidence) -> str:
    """Return what to type so that /dev/shm is large enough."""
    if not evidence.where.private_shm:
        need = format_size(round_up(max(evidence.planned.need or 0, GIB), GIB))
        return (
            "remove what dead jobs left in /dev/shm (`ls -l /dev/shm`), lower num_workers, or enlarge it by "
            f"`mount -o remount,size=…` as root, so that {need} are free beside what others use"
        )
    if evidence.ipc_mode == "host":
        return "remove what dead jobs left in the host's /dev/shm (`ls -l /dev/shm`), then give shm_size, not ipc host"
    if not evidence.private_shm:
        return "give the run its own /dev/shm with shm_size, without joining another container's"
    size = round_up(max(2 * evidence.shm_size, evidence.planned.need or 0, GIB), GIB)
    memory = f" and resources.memory to at least {format_size(evidence.memory + size - evidence.shm_size)}"
    return f"set shm_size to {format_size(size)}{memory * bool(evidence.memory)}, or {_to_state(evidence.planned)}"


def _to_state(planned: Planned) -> str:
    """Return what to state of the job so that the plan is large enough."""
    if planned.unsized:
        return "state data_loader.sample so that trainlaunch computes it"
    if planned.need is None:
        return "correct data_loader.sample so that trainlaunch computes it"
    return (
        f"state what the planned {human_size(planned.need)} leave out: every loader of the script "
        "(data_loader.loaders), batches_held, whole storages where a batch has views (docs/frameworks.md)"
    )


def shm_commands(evidence: Evidence) -> tuple[str, ...]:
    """Return what shows how full /dev/shm is where the run is; of one that has ended, which /dev/shm it had."""
    named = _NAME.fullmatch(evidence.container) is not None  # it goes to a shell
    name = evidence.container if named else "NAME"
    ended = named and evidence.exit_code is not None
    if evidence.target == KUBERNETES.name:
        kubectl = f"kubectl -n {evidence.namespace}" if _NAME.fullmatch(evidence.namespace) else "kubectl"
        look = f"{kubectl} get pod {name} -o jsonpath='{{.spec.volumes}}'" if ended else ""
        look = look or f"{kubectl} exec {name} -- df -h /dev/shm"
        names = f"{kubectl} get pods"
    elif not evidence.where.starts_container:
        return ("df -h /dev/shm",)
    else:
        fields = "{{.HostConfig.IpcMode}} {{.HostConfig.ShmSize}}"
        look = f"{evidence.engine} inspect -f '{fields}' {name}" if ended else ""
        look = look or f"{evidence.engine} exec {name} df -h /dev/shm"
        names = f"{evidence.engine} ps"
    return (look if named else f"{look}  # while it runs; `{names}` shows its NAME",)
