"""The resources that the server knows, and what its discovery says about them."""

from __future__ import annotations

from typing import Any, NamedTuple

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Resource(NamedTuple):
    """One row of discovery."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """`batch/v1`, or `v1` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> tuple[str, str]:
        """What stays the same over versions."""
        return self.group, self.plural


PODS = Resource("", "v1", "pods", "Pod", True, ("po",), ("log", "exec", "status"))
EVENTS = Resource("", "v1", "events", "Event", True, ("ev",))
JOBS = Resource("batch", "v1", "jobs", "Job", True, (), ("status",))
JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", True, (), ("status",))
PYTORCHJOBS = Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", True, (), ("status",))
TRAINJOBS = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob", True, (), ("status",))
RUNTIMES = Resource("trainer.kubeflow.org", "v1alpha1", "trainingruntimes", "TrainingRuntime")
WORKLOADS = Resource("kueue.x-k8s.io", "v1beta1", "workloads", "Workload", True, ("wl",), ("status",))
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False, ("ns",), ("status",))
SERVICES = Resource("", "v1", "services", "Service", True, ("svc",), ("status",))
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", True, ("cm",))
REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False)
SELF_REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False)

RESOURCES = (
    NAMESPACES,
    PODS,
    EVENTS,
    SERVICES,
    CONFIG_MAPS,
    Resource("", "v1", "secrets", "Secret"),
    Resource("", "v1", "serviceaccounts", "ServiceAccount", True, ("sa",)),
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, ("pvc",)),
    Resource("", "v1", "resourcequotas", "ResourceQuota", True, ("quota",)),
    Resource("", "v1", "nodes", "Node", False, ("no",)),
    JOBS,
    REVIEWS,
    SELF_REVIEWS,
    JOBSETS,
    PYTORCHJOBS,
    TRAINJOBS,
    RUNTIMES,
    Resource("trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", False),
    WORKLOADS,
    Resource("kueue.x-k8s.io", "v1beta1", "localqueues", "LocalQueue"),
)
BUILT_IN = frozenset({"", "batch", "authorization.k8s.io"})


class Kinds:
    """The resources that this cluster serves: the built-in ones and the CRDs that are installed."""

    def __init__(self) -> None:
        self.missing: set[str] = set()

    def served(self) -> list[Resource]:
        """Return all rows."""
        return [each for each in RESOURCES if each.group not in self.missing]

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return one row, or None where it isn't served."""
        for each in self.served():
            if (each.group, each.version, each.plural) == (group, version, plural):
                return each
        return None

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the row of a kind."""
        return next((each for each in self.served() if (each.api_version, each.kind) == (api_version, kind)), None)

    def discovery(self, path: str) -> dict[str, Any] | None:
        """Return what a discovery path answers, or None where the path isn't one."""
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        if path == "/apis":
            return {
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": [self._group(each) for each in self._groups()],
            }
        parts = path.strip("/").split("/")
        if parts == ["api", "v1"]:
            return self._resources("", "v1")
        if parts[0] == "apis" and len(parts) == 2 and parts[1] in self._groups():
            return {"kind": "APIGroup", "apiVersion": "v1", **self._group(parts[1])}
        if parts[0] == "apis" and len(parts) == 3 and parts[1] in self._groups():
            return self._resources(parts[1], parts[2])
        return None

    def _groups(self) -> dict[str, str]:
        return {each.group: each.version for each in self.served() if each.group}

    def _group(self, group: str) -> dict[str, Any]:
        version = self._groups()[group]
        preferred = {"groupVersion": f"{group}/{version}", "version": version}
        return {"name": group, "versions": [preferred], "preferredVersion": preferred}

    def _resources(self, group: str, version: str) -> dict[str, Any] | None:
        rows = [each for each in self.served() if (each.group, each.version) == (group, version)]
        if not rows:
            return None
        listed = [row for each in rows for row in _rows_of(each)]
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": rows[0].api_version,
            "resources": listed,
        }


def _rows_of(resource: Resource) -> list[dict[str, Any]]:
    verbs = ["create"] if resource in (REVIEWS, SELF_REVIEWS) else list(ALL_VERBS)
    own: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": verbs,
    }
    if resource.short:
        own["shortNames"] = list(resource.short)
    below = [
        {
            "name": f"{resource.plural}/{each}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": "PodExecOptions" if each == "exec" else resource.kind,
            "verbs": ["create", "get"] if each == "exec" else ["get"],
        }
        for each in resource.subresources
    ]
    return [own, *below]
