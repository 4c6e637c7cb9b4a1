"""Kubernetes manifests, YAML or JSON, as somebody wrote them: one Workload for each container of each pod."""

from __future__ import annotations

from collections import ChainMap

from launcher.formats.kubernetes.objects import read_object
from launcher.formats.workload import Workload
from launcher.yamltree.documents import documents

__all__ = ["read_kubernetes"]


def read_kubernetes(text: str, file: str) -> tuple[Workload, ...]:
    """Return the containers of every pod and pod template in `text`, in any kind of object; nothing is raised.

    What is no YAML from some place on is read up to there, so a text full of templates may give nothing. A value that a
    template (`{{ … }}`) decides is Unknown, and so is one of a type that the API server refuses.
    """
    found: list[Workload] = []
    for node in documents(text, file).nodes:
        for each in read_object(node, final=False):
            for path, pod in each.pods:
                found += (
                    workload._replace(
                        place=each.place(path, workload.place),
                        name=each.name,
                        labels=each.labels,
                        rest=ChainMap(dict(workload.rest), pod.rest, each.rest),
                    )
                    for workload in pod.workloads
                )
    return tuple(found)
