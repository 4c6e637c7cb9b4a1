"""Limits of memory that contradict one another, so that the engine makes no container."""

from __future__ import annotations

from collections.abc import Iterator

from trainlaunch.diagnostics import Severity
from trainlaunch.formats.quantities import engine_bytes
from trainlaunch.formats.workload import Known, Workload
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import container_rule
from trainlaunch.rules.sources.container_facts import is_fragment
from trainlaunch.rules.sources.source_text import COMPOSE, SourceContainer, at

_LIMIT = "deploy.resources.limits.memory"
_SWAP = ("--memory-swap", "service.memswap_limit")
_RESERVED = ("--memory-reservation", "service.mem_reservation", "service.deploy.resources.reservations.memory")


@container_rule("TL384", Severity.ERROR)
def memory_limits_refused(container: SourceContainer) -> Iterator[Problem]:
    """What a container may swap or has reserved doesn't go with its memory limit."""
    workload = container.workload
    other = str(workload.rest.get("command", "")).startswith("nerdctl")  # whose checks are others
    if other or container.podman or is_fragment(container) or workload.format not in {COMPOSE, "docker_run"}:
        return
    memory, compose = workload.memory, workload.format == COMPOSE
    by_deploy = at(container.own, "mem_limit") is None and at(container.own, *_LIMIT.split(".")) is not None
    limit = (_LIMIT if by_deploy else "mem_limit") if compose else "--memory"
    swap, reserved = _stated(workload, _SWAP), _stated(workload, _RESERVED)
    span = workload.span if memory is None else memory.span
    if swap and swap[2] > 0 and (memory is None or (isinstance(memory, Known) and not memory.value)):
        yield Problem(
            f"{swap[0]} {swap[1]} stands without {limit}, and docker refuses it",
            f"add {limit}, or leave {swap[0]} out",
            "it is memory and swap together, of which the limit of memory is a part",
            span=span,
            severity=Severity.WARNING,  # a kernel that doesn't count swap takes any
        )
    if swap and isinstance(memory, Known) and 0 < swap[2] < memory.value:
        yield Problem(
            f"{swap[0]} {swap[1]} is below {limit} {memory.text}, and docker refuses it",
            f"write {swap[0]} {memory.text} for no swap, or leave it out",
            "it is memory and swap together, and may not be less than memory alone",
            span=span,
            severity=Severity.WARNING,
        )
    if reserved and isinstance(memory, Known) and 0 < memory.value < reserved[2]:
        yield Problem(
            f"{reserved[0]} {reserved[1]} is above {limit} {memory.text}, and docker refuses it",
            f"write at most {memory.text}",
            "what is reserved is a part of what the container may have",
            span=span,
            severity=Severity.WARNING if "deploy" in reserved[0] else None,  # Swarm's own business
        )


def _stated(workload: Workload, names: tuple[str, ...]) -> tuple[str, str, int] | None:
    """Return the name, the text and the bytes of the first of these that a text sets as a size."""
    for name in names:
        value = workload.rest.get(name)
        text = str(value[-1] if isinstance(value, tuple) and value else value)
        size = engine_bytes(text) if name in workload.rest else None
        if size is not None:
            return name.removeprefix("service."), text, size
    return None
