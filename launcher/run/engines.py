"""Which backend runs a target's containers on the engine that is there, Docker or Podman, alone or below Compose."""

from __future__ import annotations

from launcher.run.docker.backend import DockerBackend
from launcher.run.docker.client import Engine, find_endpoint


def engine_backend(target: str) -> DockerBackend:
    """Return the backend of target docker or compose. Raises TargetUnavailable where no engine answers."""
    engine = Engine(find_endpoint())
    if target == "compose":
        from launcher.run.compose.backend import ComposeBackend
        from launcher.run.podman.compose import PodmanCompose

        return PodmanCompose(engine) if engine.is_podman else ComposeBackend(engine)
    from launcher.run.podman.backend import PodmanBackend

    return PodmanBackend(engine) if engine.is_podman else DockerBackend(engine)
