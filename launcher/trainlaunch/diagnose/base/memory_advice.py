"""Sentences about memory and /dev/shm that symptoms share, and what to type where either turned out too small."""

from __future__ import annotations

import re

from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.plan.plan_label import Planned
from trainlaunch.targets import KUBERNETES
from trainlaunch.units import GIB, MIB, format_size, human_size, needed_size, round_up

MIN_SHARE = MIB  # bytes of /dev/shm that a sentence about memory names; the health check's own file is a page


def shm_place(evidence: Evidence) -> str:
    """Return which /dev/shm the job used; the engine reports a size of its own even where another one is in effect."""
    if not evidence.where.private_shm:
        return "this host's /dev/shm"
    if evidence.ipc_mode == "host":
        return "the host's /dev/shm (ipc is host, so the size that inspect shows is not in effect)"
    if not evidence.private_shm:
        return f"the /dev/shm of another container (ipc is {evidence.ipc_mode})"
    if evidence.shm_size:
        return f"/dev/shm of {human_size(evidence.shm_size)}"
    return "/dev/shm"


def memory_story(evidence: Evidence) -> str:
    """Return how the memory limit and /dev/shm go together for this run, as a clause."""
    if not evidence.where.enforces_limits:
        return "the host's memory also pays for what is in /dev/shm"
    limit = f"the memory limit of {human_size(evidence.memory)}" if evidence.memory else "the memory limit"
    if evidence.shm_peak is not None and evidence.shm_peak >= MIN_SHARE:
        return f"{limit} also pays for /dev/shm, which was used up to {human_size(evidence.shm_peak)}"
    if evidence.private_shm and evidence.memory and evidence.shm_size >= evidence.memory:
        return f"{limit} also pays for /dev/shm, which alone may grow to {human_size(evidence.shm_size)}"
    unused = evidence.shm_peak is not None or (evidence.planned.need == 0 and not evidence.planned.unsized)
    return limit if unused else f"{limit} also pays for what is in /dev/shm"


def more_memory(evidence: Evidence) -> str:
    """Return what to type so that the memory limit is large enough; a larger /dev/shm would make it worse."""
    if not evidence.where.enforces_limits:
        return f"{fewer(evidence)}, or end what else uses this host's memory"
    lower = f"{evidence.workers.lower()} or prefetch_factor; a larger shm_size alone makes it worse"
    if not evidence.memory:
        return f"set resources.memory, or {lower}"
    shm = evidence.shm_size if evidence.private_shm else 0
    wanted = evidence.memory + shm if shm >= evidence.memory else round_up(evidence.memory + evidence.memory // 2, GIB)
    return f"set resources.memory to {format_size(wanted)}, or {lower}"


def fewer(evidence: Evidence) -> str:
    """Return how a job needs less memory, in the words of what it was started by."""
    return f"{evidence.workers.lower()}, prefetch_factor or batch_size"


_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)


def larger_shm(evidence: Evidence) -> str:
    """Return what to type so that /dev/shm is large enough."""
    if not evidence.where.private_shm:
        need = round_up(max(evidence.planned.need or 0, GIB), GIB)
        return (
            f"remove what dead jobs left in /dev/shm (`ls -l /dev/shm`), {evidence.workers.lower()}, or "
            f"{evidence.enlarge(need)}, so that {format_size(need)} are free beside what others use"
        )
    if evidence.ipc_mode == "host":
        return "remove what dead jobs left in the host's /dev/shm (`ls -l /dev/shm`), then give shm_size, not ipc host"
    if not evidence.private_shm:
        return "give the run its own /dev/shm with shm_size, without joining another container's"
    size = round_up(max(2 * evidence.shm_size, evidence.planned.need or 0, GIB), GIB)
    memory = f" and resources.memory to at least {format_size(evidence.memory + size - evidence.shm_size)}"
    return f"set shm_size to {format_size(size)}{memory * bool(evidence.memory)}, or {_to_state(evidence.planned)}"


def _to_state(planned: Planned) -> str:
    """Return what to set in the job file so that the plan is large enough."""
    if planned.unsized:
        return "set data_loader.sample so that trainlaunch computes it"
    if planned.need is None:
        return "correct data_loader.sample so that trainlaunch computes it"
    return (
        f"set what the planned {needed_size(planned.need)} leave out, as `trainlaunch probe --write` measures it: the "
        "true size of a batch, every loader of the script, batches_held, whole storages where a batch has views"
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
