"""What a job asks for: the job file as typed, frozen values, with the place that each came from.

Sizes are bytes, CPUs thousandths, durations seconds. None always means "not set": auto, or the image's own.
NamedTuples, since every start defines these classes: a frozen dataclass with slots takes four times as long to define.
Where a module has many, its annotations are evaluated: Python compiles each that is a string at every start.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from trainlaunch.diagnostics import Span
from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.job.ceilings import Ceiling, Policy
from trainlaunch.job.loader_spec import DataLoaderSpec, ProbeMeasurement, Tune
from trainlaunch.job.reserved import SECRETS_FOLDER
from trainlaunch.job.starter import Starter
from trainlaunch.job.starter_search import starter_of
from trainlaunch.kinds import KINDS, Kind
from trainlaunch.targets import Target, target_record

if TYPE_CHECKING:
    from trainlaunch.job.code_folder import CodeFolder
    from trainlaunch.job.patch import Patch


class Origin(NamedTuple):
    """Where a value came from: `kind` is policy, profile, job, target_overrides, lock, --set or default.

    The last two have no span.
    """

    kind: str
    span: Span | None = None

    def __str__(self) -> str:
        if self.span is None:
            return self.kind
        place = f"{self.span.file}:{self.span.line}"
        return place if self.kind == "job" else f"{place} ({self.kind})"


DEFAULT = Origin("default")


def numeric_user(user: str | None) -> tuple[int, int] | None:
    """Return uid and gid on Kubernetes (1000 where not set), or None for a name, which only an image resolves."""
    match = re.fullmatch(r"(\d+)(?::(\d+))?", "1000" if user is None else user)
    return (int(match[1]), int(match[2] or 1000)) if match else None


def is_floating(image: str) -> bool:
    """Return whether an image's reference has neither a digest nor a tag other than latest."""
    name = image.rsplit("/", 1)[-1]
    return "@" not in name and (":" not in name or name.endswith(":latest"))


def secret_path(name: str) -> str:
    """Return where a container has the secret `name` as a file."""
    return f"{SECRETS_FOLDER}/{name}"


def path_variable(name: str) -> str:
    """Return the variable that holds the path of the secret `name` as a file."""
    return f"{name}_FILE"


class Secret(NamedTuple):
    """A secret by reference: host variable `env`, host `file`, or Kubernetes `name/key`; never its value.

    `as_file`: the job sees a file instead of a variable.
    """

    env: str | None
    file: str | None
    kubernetes: str | None
    as_file: bool


class Mount(NamedTuple):
    """One mount; source is None for tmpfs and scratch. Code is a bind where paths of this host are mounted."""

    type: str
    source: str | None
    target: str
    read_only: bool


class Gpus(NamedTuple):
    """GPUs asked for: a `count`, or device `ids`, or `all` of the machine (count is then 0)."""

    count: int  # type: ignore[assignment]  # a tuple's own count is of no use here
    ids: tuple[str, ...]
    all: bool

    def __bool__(self) -> bool:
        return self.all or self.count > 0

    @property
    def words(self) -> str:
        """What was asked for, as a sentence names it: `all`, the ids, or the count."""
        return ALL_GPUS if self.all else ", ".join(self.ids) or str(self.count)


class Resources(NamedTuple):
    """Limits of one container; `cpus` in thousandths, `memory` in bytes with /dev/shm included."""

    cpus: int | None
    memory: int | None
    gpus: Gpus
    gpu_resource: str
    ephemeral_storage: int | None
    extended: Mapping[str, int]
    gpu_vendor: str = "nvidia"


class ShmExtra(NamedTuple):
    """Another owner of /dev/shm (Ray, vLLM, a checkpoint stage) and its bytes, None where its own law says them."""

    name: str
    size: int | None


class Torchrun(NamedTuple):
    """torchrun's own arguments; `nproc_per_node` None means GPUs, else 1."""

    nproc_per_node: int | None
    nnodes: int
    rdzv_backend: str
    rdzv_port: int
    max_restarts: int


class Ulimit(NamedTuple):
    """A soft and a hard limit of one resource; -1 is unlimited."""

    name: str
    soft: int
    hard: int


class KubernetesSpec(NamedTuple):
    """What only Kubernetes knows; `affinity`, `tolerations` and `topology_spread` are its own objects, checked."""

    namespace: str | None
    kind: str
    service_account: str | None = None
    node_selector: Mapping[str, str] = {}
    affinity: Mapping[str, Any] | None = None
    tolerations: tuple[Mapping[str, Any], ...] = ()
    topology_spread: tuple[Mapping[str, Any], ...] = ()
    runtime_class: str | None = None
    host_network: bool = False
    queue: str | None = None
    priority_class: str | None = None
    scheduler_name: str | None = None
    image_pull_secrets: tuple[str, ...] = ()
    fs_group: int | None = None
    run_as: str = "uid"
    pod_security: str = "restricted"
    cpu_limit: bool = True
    annotations: Mapping[str, str] = {}
    token: bool = False
    stable_name: bool = False
    prune: bool = False


class ImagePython(NamedTuple):
    """The Python that an image starts as `python`, and its torch, empty without one; `span`: where the lock has it."""

    version: str
    torch: str
    span: Span


class Measured(NamedTuple):
    """What a job's lock has of measurements of its script: a probe, and what tune found on the job's target.

    `probed` is the job as it is on the probe's target; None where it is no job for that target any more. `python` is
    the image's, None where the lock doesn't tell it or the target starts no image.
    """

    probe: ProbeMeasurement | None
    tune: Tune | None
    probed: "JobSpec | None"
    python: ImagePython | None = None


class HealthCheck(NamedTuple):
    """How the engine asks after the container; all durations in seconds.

    `stall_after` is the longest wait for one batch, None where waits are not watched.
    """

    interval: int
    timeout: int
    retries: int
    start_period: int
    on_unhealthy: str
    stall_after: int | None = None

    @property
    def stops(self) -> bool:
        """Whether an unhealthy job is stopped."""
        return self.on_unhealthy == "stop"


class JobSpec(NamedTuple):
    """One job for one target, overrides and `sets` (as typed) applied. Built by `job.reading` alone.

    `image` is empty where the target starts none and the job file names none.
    """

    path: str
    target: str
    name: str
    image: str
    pull_policy: str
    command: tuple[str, ...] | None
    script: str | None
    image_entrypoint: tuple[str, ...] | None
    working_dir: str | None
    user: str | None
    group_add: tuple[str, ...]
    read_only: bool
    stop_signal: str | None
    env: Mapping[str, str]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    secrets: Mapping[str, Secret]
    mounts: tuple[Mount, ...]
    resources: Resources
    ranks_per_container: int | None
    shm_size: int | None
    shm_extra: tuple[ShmExtra, ...]
    data_loader: DataLoaderSpec
    torchrun: Torchrun | None
    ulimits: tuple[Ulimit, ...]
    healthcheck: HealthCheck
    observe: bool | None
    max_attempts: int
    on_exit_codes: tuple[int, ...] | None
    backoff: int | None
    checkpoint_dir: str | None
    checkpoint_bytes: int | None
    active_deadline: int | None
    stop_grace_period: int
    ttl_after_finished: int | None
    kubernetes: KubernetesSpec
    profile: str | None
    origins: Mapping[str, Origin]
    sets: tuple[str, ...] = ()
    patch: "Patch | None" = None
    policy: Policy | None = None
    measured: Measured | None = None
    code: Mapping[int, "CodeFolder"] = {}  # by the index of its mount, on a target that has no folder of this host

    def ceiling(self, name: str) -> Ceiling | None:
        """Return the policies' limit of that name, or None where there is none."""
        return self.policy.max.get(name) if self.policy else None

    @property
    def target_record(self) -> Target:
        """What is so of its target."""
        return target_record(self.target)

    @property
    def kind(self) -> Kind | None:
        """The Kubernetes kind that runs it; None on a target without kinds."""
        return KINDS[self.kubernetes.kind] if self.target_record.has_kinds else None

    @property
    def nodes(self) -> int:
        """Containers that the job runs in at the same time."""
        return self.torchrun.nnodes if self.torchrun else 1

    @property
    def starter(self) -> Starter | None:
        """What in the command or script starts ranks itself, None where nothing known does."""
        return starter_of(self.command, self.script, self.env)

    def origin(self, field: str) -> Origin:
        """Return where the value of a dotted field came from: `data_loader.loaders.val.batch_size`."""
        return self.origins.get(field, DEFAULT)

    def loader_field(self, loader: str, field: str) -> str:
        """Return the dotted field where a loader's value was set: its own, else the one that all loaders share."""
        own = f"data_loader.loaders.{loader}.{field}"
        return own if own in self.origins else f"data_loader.{field}"

    def span(self, field: str) -> Span | None:
        """Return the place of a dotted field in its file, or None where it was not set there."""
        return self.origin(field).span
