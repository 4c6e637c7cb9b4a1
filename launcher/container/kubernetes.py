"""What a pod of a job is: its name, labels, identity and readiness, whichever kind makes it."""

from __future__ import annotations

from typing import NamedTuple

from launcher.job.fields.kubernetes import POD_KEYS
from launcher.job.reserved import CLUSTER_HOME, KUBERNETES_LABEL_PREFIX, LABEL_PREFIX
from launcher.job.spec import JobSpec, numeric_user
from launcher.kinds import KINDS
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.names import longest_cluster_name, shortened

PULL_POLICIES = {"always": "Always", "missing": "IfNotPresent", "never": "Never"}
# A uid that the image doesn't know has no home and no name: getpass.getuser() raises, which PyTorch's Inductor calls.
IDENTITY = {
    "HOME": CLUSTER_HOME,
    "USER": "trainlaunch",
    "LOGNAME": "trainlaunch",
    "XDG_CACHE_HOME": f"{CLUSTER_HOME}/.cache",
    "TORCHINDUCTOR_CACHE_DIR": f"{CLUSTER_HOME}/.cache/torchinductor",
    "TRITON_CACHE_DIR": f"{CLUSTER_HOME}/.cache/triton",
    "MPLCONFIGDIR": f"{CLUSTER_HOME}/.cache/matplotlib",
}
LOCAL_ADDRESS = "PET_LOCAL_ADDR"  # torchrun's
_RECORDS_ONLY = "trap 'exit 0' EXIT # something acts on readiness here, so this check only records\n"


def kubernetes_name(plan: LaunchPlan) -> str:
    """Return `metadata.name`, short enough for the names that controllers make from it.

    The template of a Job, or of what makes one, can't change in the cluster, so its name carries the input hash unless
    `--name` fixed it.
    """
    kind = KINDS[plan.job.kubernetes.kind]
    name = shortened(plan.name, longest_cluster_name(kind, plan.job.nodes, fixed=plan.name_fixed))
    return f"{name}-{plan.input}" if kind.named_by_input and not plan.name_fixed else name


def kubernetes_labels(plan: LaunchPlan, labels: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return `labels` as Kubernetes spells them: ours under `trainlaunch.dev/`, and the two that its tools look for."""
    known = {"app.kubernetes.io/name": plan.job.name, "app.kubernetes.io/managed-by": "trainlaunch"}
    return known | {_kubernetes_key(key): value for key, value in labels}


def _kubernetes_key(key: str) -> str:
    if not key.startswith(LABEL_PREFIX):
        return key
    return KUBERNETES_LABEL_PREFIX + key.removeprefix(LABEL_PREFIX)


class Security(NamedTuple):
    """Whose the processes and volumes of a pod are; None leaves it to the image, or the volume as it is."""

    uid: int | None
    gid: int | None
    fs_group: int | None
    restricted: bool
    seccomp: bool


def security(job: JobSpec) -> Security:
    """Return the ids that the pod states: always under `restricted`, else those that the job asks for."""
    platform = job.kubernetes
    restricted = platform.pod_security == "restricted"
    uid, gid = numeric_user(job.user) or (1000, 1000)
    if not restricted and job.user is None:
        return Security(None, None, platform.fs_group, False, platform.pod_security != "privileged")
    fs_group = platform.fs_group if platform.fs_group is not None or not uid else 1000
    stated_gid = gid if restricted or ":" in str(job.user) else None
    return Security(uid, stated_gid, fs_group, restricted, platform.pod_security != "privileged")


def stated_in_pod(job: JobSpec) -> dict[str, str]:
    """Return the keys of the pod's spec that have a field's value as it is, in the order of the table of fields."""
    stated = {key: getattr(job.kubernetes, field) for key, field in POD_KEYS.items()}
    return {key: value for key, value in stated.items() if value is not None}


def needs_own_home(job: JobSpec) -> bool:
    """Return whether the processes have a uid that the image need not know."""
    return bool(security(job).uid)


def needs_local_address(job: JobSpec) -> bool:
    """Return whether torchrun must be told by which address the other nodes reach it: a node's name may not do."""
    stated = LOCAL_ADDRESS in {*job.env, *job.secrets}
    return job.nodes > 1 and job.kubernetes.host_network and not stated


def missing_identity(plan: LaunchPlan) -> dict[str, str]:
    """Return the variables of a home and its caches that the job doesn't set itself."""
    if not needs_own_home(plan.job):
        return {}
    return {name: value for name, value in IDENTITY.items() if name not in {*plan.job.env, *plan.job.secrets}}


def readiness_text(job: JobSpec, health: str) -> str:
    """Return the readiness command: the health check, which must not fail where readiness decides about the job.

    A queue evicts what is not ready, and a pod that is not ready drops out of the names that its peers look up.
    """
    acted_upon = job.nodes > 1 or job.kubernetes.queue or KINDS[job.kubernetes.kind].acts_on_readiness
    return _RECORDS_ONLY + health if acted_upon else health
