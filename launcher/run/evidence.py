"""What a target tells about a container, as evidence for a diagnosis."""

from __future__ import annotations

from launcher.diagnose.evidence import Evidence
from launcher.run.backend import Started


def evidence_of(container: Started, *, log: str, signals: tuple[int, ...] = ()) -> Evidence:
    """Return what the target tells about a container."""
    return Evidence(
        exit_code=container.exit_code,
        log=log,
        oom_killed=container.oom_killed,
        error=container.error,
        private_shm=container.private_shm,
        ipc_mode=container.ipc_mode,
        shm_size=container.shm_size,
        memory=container.memory if container.where.enforces_limits else 0,
        target=container.target,
        signals=signals,
        planned=container.planned,
    )
