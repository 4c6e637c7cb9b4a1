"""What a container of this machine shows while it runs: its log, its health, and a look at its processes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trainlaunch.run.base.backend import Backend, ContainerInfo
from trainlaunch.run.base.run_evidence import evidence_of, read_whole_log, without_secrets
from trainlaunch.run.base.store import Live
from trainlaunch.run.following import redaction
from trainlaunch.units import counted

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot


def look(backend: Backend, container: ContainerInfo) -> Live:
    """Look at one container that runs, which takes two seconds. Raises TargetUnavailable."""
    log, facts = read_whole_log(backend, container)
    evidence = replace(evidence_of(container, log=log), scanned=facts, job=container.job)
    evidence = without_secrets(evidence, redaction(backend, [container]))
    evidence = replace(evidence, look=backend.look(container))
    shm = evidence.look.shm if evidence.look is not None else None
    if shm is not None and shm.size and evidence.private_shm:
        evidence = replace(evidence, shm_size=shm.size)
    return Live(_sentence(container, evidence.look), container.health == "unhealthy", evidence)


def _sentence(container: ContainerInfo, seen: ContainerSnapshot | None) -> str:
    parts = [f"{container.noun} {container.name} runs"]
    if container.health:
        parts.append(container.health + (f" ({container.health_output.strip()})" if container.health_output else ""))
    if seen is not None:
        parts.append(counted(len(seen.workers), "DataLoader worker"))
    return ", ".join(parts)
