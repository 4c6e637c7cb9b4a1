"""Kubernetes manifests, YAML or JSON, as somebody wrote them: one Workload for each container of each pod."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator

from trainlaunch.formats.kubernetes.objects import KubernetesObject, Path, read_object
from trainlaunch.formats.workload import Workload
from trainlaunch.yamltree.tolerant import documents

__all__ = ["containers_of", "read_kubernetes"]


def read_kubernetes(text: str, file: str) -> tuple[Workload, ...]:
    """Return the containers of every pod and pod template in `text`, in any kind of object; nothing is raised.

    What is no YAML from some place on is read up to there, so a text full of templates may give nothing. A value that a
    template (`{{ … }}`) decides is Unknown, and so is one of a type that the API server refuses.
    """
    objects = (each for node in documents(text, file).nodes for each in read_object(node, final=False))
    return tuple(workload for each in objects for _, _, workload in containers_of(each))


def containers_of(found: KubernetesObject) -> Iterator[tuple[Path, str, Workload]]:
    """Yield each container of an object with the path of its pod and its place in that, as `containers[0]`."""
    for path, pod in found.pods:
        for workload in pod.workloads:
            whole = workload._replace(
                place=found.place(path, workload.place),
                name=found.name,
                labels=found.labels,
                rest=ChainMap(dict(workload.rest), pod.rest, found.rest),
            )
            yield path, workload.place, whole
