"""What a policy says of a patched text: each of its questions, asked of every container, volume and file in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainlaunch.job.ceilings import Policy
from trainlaunch.policy.demands import CPUS, MEMORY, SPELL, Demand, refusals
from trainlaunch.render.patched import documents_of
from trainlaunch.verify.compose_demands import file_demands, service_demands
from trainlaunch.verify.pod_demands import container_demands, object_demands, pod_demands
from trainlaunch.verify.sidecars import containers_of, pods_of
from trainlaunch.verify.stated_values import mapping


def broken_by_parts(policy: Policy, bare: str, text: str, folder: str) -> Iterator[tuple[str, str, str]]:
    """Yield what of a patched text the policy doesn't allow: its name, what is allowed, and what it is.

    `bare` is the text without the patch: what that takes is the job's, and its plan has been asked about it already.
    Relative paths are seen from `folder`.
    """
    ours = {each["name"] for each in containers_of(documents_of(bare))}
    ours |= {name for document in documents_of(bare) for name in mapping(document.get("services"))}
    known = set(_demands(bare, ours, folder))
    for part, demand in dict.fromkeys(_demands(text, ours, folder)):
        if (part, demand) not in known:
            for refusal in refusals(policy, demand):
                yield f"{demand.name} of {part}", f"{refusal.rule} {refusal.allowed} ({refusal.place})", demand.said


def _demands(text: str, ours: set[str], folder: str) -> Iterator[tuple[str, Demand]]:
    """Yield all that a text takes, each with the name of the service, container or pod that does."""
    documents = documents_of(text)
    for document in documents:
        services = mapping(document.get("services"))
        taken = [
            (str(name), each)
            for name, service in services.items()
            for each in service_demands(mapping(service), folder, added=name not in ours)
        ]
        yield from (*taken, *_together(taken))
        yield from (("the file", each) for each in file_demands(document, folder))
        yield from (("the pod", each) for each in object_demands(document) if not services)
    for pod in pods_of(documents):
        taken = []
        for container in containers_of(pod):
            name = str(container.get("name"))
            found = [(name, each) for each in container_demands(container, pod, added=name not in ours)]
            yield from found
            taken += found if _stays(container, pod) else []
        yield from _together(taken)
        yield from (("the pod", each) for each in pod_demands(pod))


def _together(taken: list[tuple[str, Demand]]) -> Iterator[tuple[str, Demand]]:
    """Yield the limits of all that a patch adds to a pod or a file: many small ones are as much as a large one."""
    for kind in (MEMORY, CPUS):
        values = [each.value for _, each in taken if each.name == kind and isinstance(each.value, int)]
        if len(values) > 1:
            yield "all that it adds", Demand(kind, kind, sum(values), SPELL[kind](sum(values)))


def _stays(container: dict[str, Any], pod: dict[str, Any]) -> bool:
    """Return whether a container runs beside others: init containers run alone, unless they are restarted."""
    return container in (pod.get("containers") or ()) or container.get("restartPolicy") == "Always"
