"""What a pod of a job is: its name, labels, identity and readiness, whichever kind makes it."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.container.name_hash import template_hash
from trainlaunch.job.fields.kubernetes import POD_KEYS
from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX, LABEL_PREFIX
from trainlaunch.job.spec import JobSpec, numeric_user
from trainlaunch.kinds import KINDS
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.target_names import longest_cluster_name, shortened

Pairs = tuple[tuple[str, str], ...]  # labels or notes of a Container
PULL_POLICIES = {"always": "Always", "missing": "IfNotPresent", "never": "Never"}
# Options of an annotation that holds several, comma-separated.
ARGO_CD = {
    "argocd.argoproj.io/sync-options": "Prune=false",
    "argocd.argoproj.io/compare-options": "IgnoreExtraneous",
}
FLUX_PRUNE = "kustomize.toolkit.fluxcd.io/prune"
MANAGED_BY = "app.kubernetes.io/managed-by"
LOCAL_ADDRESS = "PET_LOCAL_ADDR"  # torchrun's


def kubernetes_name(plan: LaunchPlan) -> str:
    """Return `metadata.name`, short enough for the names that controllers make from it.

    The template of a Job, or of what makes one, can't change in the cluster, so its name carries a hash of that unless
    `--name` or kubernetes.stable_name fixed it.
    """
    kind = KINDS[plan.job.kubernetes.kind]
    name = shortened(plan.name, longest_cluster_name(kind, plan.nodes, fixed=plan.stable_name))
    return f"{name}-{template_hash(plan)}" if kind.immutable and not plan.stable_name else name


def kubernetes_labels(plan: LaunchPlan, labels: Pairs) -> dict[str, str]:
    """Return the labels of every object: ours under `trainlaunch.dev/`, and the two that Kubernetes' tools look for."""
    known = {"app.kubernetes.io/name": plan.job.name, MANAGED_BY: "trainlaunch"}
    kind = KINDS[plan.job.kubernetes.kind]
    if not kind.levels:  # no controller labels its pod
        known[kind.pod_label] = kubernetes_name(plan)
    return known | {_kubernetes_key(key): value for key, value in labels}


def pod_labels(plan: LaunchPlan, labels: Pairs) -> dict[str, str]:
    """Return the labels of the pods, which their controller manages."""
    of_objects = kubernetes_labels(plan, labels)
    made = bool(KINDS[plan.job.kubernetes.kind].levels)
    return {key: value for key, value in of_objects.items() if key != MANAGED_BY or not made}


def object_annotations(plan: LaunchPlan) -> dict[str, str]:
    """Return the annotations of every object: the job's, and those that keep controllers from deleting what runs.

    A change gives another name, so Git no longer holds the object that trains, nor what serves it. They are in no hash.
    """
    stated = dict(plan.job.annotations)
    if plan.job.kubernetes.prune or not KINDS[plan.job.kubernetes.kind].immutable:
        return stated
    for key, option in ARGO_CD.items():
        options = [each.strip() for each in stated.get(key, "").split(",") if each.strip()]
        known = {each.partition("=")[0] for each in options}
        stated[key] = ",".join(options if option.partition("=")[0] in known else [*options, option])
    return {**stated, FLUX_PRUNE: stated.get(FLUX_PRUNE, "disabled")}


def pod_annotations(plan: LaunchPlan, notes: Pairs) -> dict[str, str]:
    """Return the annotations of the pods: the job's, and what `status` reads."""
    own = {_kubernetes_key(key): value for key, value in notes}
    return {**plan.job.annotations, **plan.job.kubernetes.annotations, **own}


def _kubernetes_key(key: str) -> str:
    if not key.startswith(LABEL_PREFIX):
        return key
    return KUBERNETES_LABEL_PREFIX + key.removeprefix(LABEL_PREFIX)


class Security(NamedTuple):
    """Whose the processes and volumes of a pod are; None leaves it to the cluster or image, the volume as it is."""

    uid: int | None
    gid: int | None
    fs_group: int | None
    restricted: bool
    seccomp: bool


def security(job: JobSpec) -> Security:
    """Return the ids that the pod sets: always under `restricted`, else those that the job asks for."""
    platform = job.kubernetes
    restricted = platform.pod_security == "restricted"
    seccomp = platform.pod_security != "privileged"
    if platform.run_as == "assigned":
        return Security(None, None, None, restricted, seccomp)
    uid, gid = numeric_user(job.user) or (1000, 1000)
    if not restricted and job.user is None:
        return Security(None, None, platform.fs_group, False, seccomp)
    fs_group = platform.fs_group if platform.fs_group is not None or not uid else 1000
    stated_gid = gid if restricted or ":" in str(job.user) else None
    return Security(uid, stated_gid, fs_group, restricted, seccomp)


def stated_in_pod(job: JobSpec) -> dict[str, str]:
    """Return the keys of the pod's spec that have a field's value as it is, in the order of the table of fields."""
    stated = {key: getattr(job.kubernetes, field) for key, field in POD_KEYS.items()}
    return {key: value for key, value in stated.items() if value is not None}


def needs_local_address(job: JobSpec) -> bool:
    """Return whether torchrun must be told by which address the other nodes reach it: a node's name may not do."""
    stated = LOCAL_ADDRESS in {*job.env, *job.secrets}
    return job.nodes > 1 and job.kubernetes.host_network and not stated
