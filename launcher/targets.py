"""The targets: one record each, which says what is so of it and where its code is.

No other module compares a target's name. Adding a target: one record here, and the modules that it names.
"""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    """What is so of a target. Modules are named, and imported only by who needs them.

    `has_text`: `render` writes a text for it. `private_shm`: each run gets a /dev/shm of its own, of the planned size;
    else the host's is used as it is. `starts_container`: an image is started, else a process of this host.
    `enforces_limits`: memory and CPUs are limits there, else they are only compared with the host.
    `on_this_machine`: its runs are on this machine's engine or this host, else in a cluster. `keeper` is who starts and
    stops runs there, as a sentence names it. `noun` is what a run is called in a sentence.
    """

    name: str
    has_text: bool = True
    private_shm: bool = True
    starts_container: bool = True
    enforces_limits: bool = True
    on_this_machine: bool = True
    several_nodes: bool = True
    keeper: str = "the engine"
    noun: str = "container"


DOCKER = Target("docker", several_nodes=False)
COMPOSE = Target("compose")
KUBERNETES = Target("kubernetes", on_this_machine=False, keeper="the cluster")
LOCAL = Target(
    "local",
    has_text=False,
    private_shm=False,
    starts_container=False,
    enforces_limits=False,
    several_nodes=False,
    keeper="trainlaunch",
    noun="local run",
)
TARGETS = {each.name: each for each in (DOCKER, COMPOSE, KUBERNETES, LOCAL)}
TEXT_TARGETS = tuple(each.name for each in TARGETS.values() if each.has_text)
DEFAULT_TARGET = DOCKER.name


def target_named(name: str) -> Target:
    """Return the target of that name; raises KeyError for any other."""
    return TARGETS[name]
