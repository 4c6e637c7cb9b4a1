"""Which backend runs a target's jobs: one row a target on this host; an engine is Docker's or Podman's.

Each is imported when it is asked for: a process of this host needs no engine's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from trainlaunch.run.base.backend import Backend, Say
from trainlaunch.targets import COMPOSE, DOCKER, LOCAL

if TYPE_CHECKING:
    from trainlaunch.run.compose.backend import ComposeBackend
    from trainlaunch.run.docker.backend import DockerBackend
    from trainlaunch.run.docker.client import Engine


def backend_named(target: str, say: Say) -> Backend:
    """Return the backend of a target on this host; `say` hears which engine stands in for Docker's.

    Raises TargetUnavailable where no engine answers.
    """
    return _BACKENDS[target](say)


def docker_backend(say: Say) -> DockerBackend:
    """Return the backend of single containers, on the engine that is there."""
    from trainlaunch.run.docker.backend import DockerBackend
    from trainlaunch.run.podman.backend import PodmanBackend

    engine = _engine(say)
    return PodmanBackend(engine, say=say) if engine.is_podman else DockerBackend(engine, say=say)


def compose_backend(say: Say) -> ComposeBackend:
    """Return the backend of Compose, on the engine that is there."""
    from trainlaunch.run.compose.backend import ComposeBackend, PodmanCompose

    engine = _engine(say)
    return PodmanCompose(engine, say=say) if engine.is_podman else ComposeBackend(engine, say=say)


def _local_backend(say: Say) -> Backend:
    from trainlaunch.run.local.backend import LocalBackend

    return LocalBackend(say=say)


def _engine(say: Say) -> Engine:
    from trainlaunch.run.docker.client import ENGINE, Engine, find_endpoint, no_podman

    engine = Engine(find_endpoint())
    podman, asked = engine.endpoint.podman, os.environ.get(ENGINE) == "podman"
    if asked and not engine.is_podman:
        fix = "unset DOCKER_HOST, or leave out `--target podman`"
        raise no_podman(f"DOCKER_HOST names {engine.endpoint.host}, where Docker answers", fix)
    if podman is not None and not asked:
        say(f"trainlaunch: no Docker engine is here; using {podman.named()}")
    return engine


_BACKENDS: Mapping[str, Callable[[Say], Backend]] = {
    DOCKER.name: docker_backend,
    COMPOSE.name: compose_backend,
    LOCAL.name: _local_backend,
}
