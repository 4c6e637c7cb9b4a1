"""What a container takes, whoever sets it, and what the policies in force say to it.

Each question of a policy is asked here, in `refusals`, and nowhere else: of the job's fields, of flags of docker run
and of every container of a patched file. Who reads those makes Demands of them; those of annotations and labels are
made here, as NVIDIA's runtime and container engines (CDI), containerd's device injector (NRI), CRI-O, KAI and Kueue
read them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from trainlaunch.diagnostics import Span
from trainlaunch.formats.gpus import gives_gpu_nodes, is_gpu_resource, is_no_accelerator
from trainlaunch.formats.quantities import bytes_of
from trainlaunch.job.ceilings import Policy
from trainlaunch.job.reserved import KUEUE_PRIORITY_LABEL
from trainlaunch.policy.registry import in_registry
from trainlaunch.units import format_cpus, format_size

# Kinds of demands. A limit's value is a number, None for no limit; any other's is what the policy's list would name.
MEMORY, CPUS, SHM_SIZE = "memory", "cpus", "shm_size"
LIFTED = "lifted"  # what takes a container's limits away or puts it where they don't hold
GPUS = "gpus"  # what may give GPUs that resources.gpus doesn't count
EXTENDED, HOST_PATH, CLAIM, IMAGE, TOKEN = "extended", "host path", "claim", "image", "token"
CAPABILITY, PRIVILEGE, PRIORITY, QUEUE = "capability", "privilege", "priority class", "queue"

# Volumes of a pod that are no storage of the cluster, or have a list of their own.
POD_VOLUMES = frozenset({
    *("name", "emptyDir", "configMap", "secret", "downwardAPI", "projected"),
    *("hostPath", "image", "persistentVolumeClaim"),
})  # fmt: skip
POD_TOKENS = ("serviceAccountToken", "podCertificate")  # sources of a projected volume by which the API knows a pod
BUILT = "BUILT-HERE/image"  # no registry has it, and no digest
ENGINE_SOCKET = "/var/run/docker.sock"
_NAMESPACES = frozenset({"network", "network_mode", "pid", "ipc", "uts", "userns", "userns_mode", "cgroupns", "cgroup"})
_SECURITY = frozenset({"security-opt", "security_opt"})
# Options that confine: another profile or label may be one that lets everything pass.
_CONFINES = frozenset({"no-new-privileges", "no-new-privileges=true", "seccomp=builtin", "apparmor=docker-default"})
# The engine itself; any node of the host, which MKNOD makes; what other containers mount.
_ALWAYS = frozenset({"use-api-socket", "device-cgroup-rule", "device_cgroup_rules", "volumes_from"})
_NOWHERE = re.compile(r"~|\\|[A-Za-z]:[\\/]")
# The list of each kind that has one, and what a policy without it allows where that isn't all.
_LISTS: Mapping[str, tuple[str, str]] = {
    EXTENDED: ("allowed_extended", ""),
    CLAIM: ("allowed_claims", ""),
    PRIORITY: ("allowed_priority_classes", ""),
    QUEUE: ("allowed_queues", ""),
    CAPABILITY: ("allowed_capabilities", "no capability"),
    PRIVILEGE: ("allowed_pod_security", "no privileges beyond restricted and baseline"),
}
SPELL: Mapping[str, Callable[[int], str]] = {MEMORY: format_size, CPUS: format_cpus, SHM_SIZE: format_size}

CDI = "cdi.k8s.io"  # the domain of its annotations; a vendor's is below it
# Those of NRI and KAI.
GPU_ANNOTATION = re.compile(r"(?:cdi-)?devices\.(?:noderesource\.dev|nri\.io)(?:/.*)?|gpu-(?:fraction|memory)(?:-.*)?")
# CRI-O's, whose values are nodes of the host with commas between them.
NODES_ANNOTATION = re.compile(r"(?:io\.kubernetes\.cri-o\.Devices|devices\.crio\.io)(?:/.*)?")
# CRI-O's size of /dev/shm, of a pod or of one container.
SHM_ANNOTATION = re.compile(r"(?:io\.kubernetes\.cri-o\.ShmSize|shm-size\.crio\.io)(?:/.*)?")
_KINDS: Mapping[str, re.Pattern[str]] = {
    GPUS: GPU_ANNOTATION,
    HOST_PATH: re.compile(r"(?:mounts|devices)\.(?:noderesource\.dev|nri\.io)(?:/.*)?"),
    LIFTED: re.compile(
        r"cpu-quota\.crio\.io(?:/.*)?|(?:unified-cgroup|cgroup2-mount-hierarchy-rw)\.crio\.io(?:/.*)?"
        r"|io\.kubernetes\.cri-o\.(?:UnifiedCgroup|cgroup2-mount-hierarchy-rw)(?:[./].*)?"
    ),
    SHM_SIZE: SHM_ANNOTATION,
    PRIVILEGE: re.compile(r"container\.apparmor\.security\.beta\.kubernetes\.io/.*|seccomp-profile\.crio\.io(?:/.*)?"),
}
_CONFINING_PROFILES = ("runtime/default", "localhost/")


class Demand(NamedTuple):
    """One thing that a container takes: its kind, what it is called there, its value, and the text that says it."""

    kind: str
    name: str
    value: int | str | None
    said: str


class Refusal(NamedTuple):
    """What a policy has against a demand: the limit or list by its field, what that allows, and its place."""

    rule: str
    allowed: str
    span: Span

    @property
    def place(self) -> str:
        """File and line of the rule."""
        return f"{self.span.file}:{self.span.line}"


def refusals(policy: Policy, demand: Demand) -> Iterator[Refusal]:
    """Yield each limit and list of the policies in force that a demand is not within."""
    kind, value = demand.kind, str(demand.value)
    if kind in SPELL:
        yield from _above(policy, demand)
    elif kind in (LIFTED, GPUS):
        yield from _first_ceiling(policy, (MEMORY, CPUS) if kind == LIFTED else ("gpus", "total_gpus"))
    elif kind in _LISTS:
        yield from _unlisted(policy, value, *_LISTS[kind])
    elif kind == HOST_PATH:
        yield from _host_path(policy, value)
    elif kind == IMAGE:
        yield from _image(policy, value)
    elif kind == TOKEN and policy.token_span is not None:
        yield Refusal("forbid_token", "none", policy.token_span)


def _above(policy: Policy, demand: Demand) -> Iterator[Refusal]:
    most = policy.max.get(demand.kind)
    if most is not None and (not isinstance(demand.value, int) or demand.value > most.value):
        yield Refusal(f"max.{demand.kind}", SPELL[demand.kind](most.value), most.span)


def _first_ceiling(policy: Policy, names: tuple[str, ...]) -> Iterator[Refusal]:
    """Yield the first of some limits that a policy has and that a text can't show to be kept."""
    name = next((each for each in names if each in policy.max), None)
    if name is not None:
        value, span = policy.max[name]
        yield Refusal(f"max.{name}", SPELL.get(name, str)(value), span)


def _unlisted(policy: Policy, value: str, rule: str, unstated: str) -> Iterator[Refusal]:
    """Yield each list that lacks a value; without any list a policy allows all, or what `unstated` says."""
    lists = policy.allowed.get(rule, ())
    if unstated and not lists:
        yield Refusal(rule, unstated, Span(policy.files[0], 1, 1, 1, 1))
    for values, span in lists:
        if value not in {each.removeprefix("CAP_") for each in values}:
            yield Refusal(rule, ", ".join(values) or "none", span)


def _host_path(policy: Policy, path: str) -> Iterator[Refusal]:
    """Yield each list that has no folder above `path`. Links are not followed: another machine may run the text."""
    for values, span in policy.allowed.get("allowed_host_paths", ()):
        folders = [absolute(span.file, each).rstrip("/") for each in values]
        if not any(path == each or path.startswith(f"{each}/") for each in folders):
            yield Refusal("allowed_host_paths", ", ".join(values), span)


def _image(policy: Policy, image: str) -> Iterator[Refusal]:
    for values, span in policy.allowed.get("allowed_registries", ()):
        if not any(in_registry(image, each) for each in values):
            yield Refusal("allowed_registries", ", ".join(values), span)
    if policy.digest_span is not None and "@" not in image:
        yield Refusal("require_digest", "a pinned one", policy.digest_span)


def extended(name: str, said: str, resource: str) -> Iterator[Demand]:
    """Yield the demand of a resource that may be a part of a GPU; GPUs are counted, and network cards are none."""
    if not (is_gpu_resource(resource) or is_no_accelerator(resource)):
        yield Demand(EXTENDED, name, resource, said)


def capability(name: str, value: str) -> Demand:
    """Return the demand of a Linux capability, with or without CAP_."""
    return Demand(CAPABILITY, name, value.upper().removeprefix("CAP_"), value)


def privilege(name: str, key: str, value: object) -> Iterator[Demand]:
    """Yield a demand where a flag of docker run or a key of a Compose service, with its value, is a privilege."""
    text = str(value)
    if key == "privileged" or key in _ALWAYS:
        found = is_true(text)
    elif key in _SECURITY:
        found = text.replace(":", "=", 1) not in _CONFINES
    else:
        found = key in _NAMESPACES and any(_of_others(each) for each in (text, *_named(text)))
    if found:
        yield Demand(PRIVILEGE, name, "privileged", text)


def is_true(value: object) -> bool:
    """Return whether a switch of docker run or of Compose is on; what is neither word is taken for on."""
    return str(value).lower() not in {"none", "false", "f", "0", "no", "n", "off"}


def _named(value: str) -> Iterator[str]:
    """Yield the network of the long form `name=NETWORK,alias=…`."""
    parts = (each.partition("=") for each in value.split(","))
    yield from (name for key, _, name in parts if key.strip().lower() == "name")


def _of_others(namespace: str) -> bool:
    """Return whether a namespace is the host's, or one of another container or process, which may be the host's too."""
    return namespace.strip().lower() == "host" or namespace.startswith(("container:", "ns:"))


def host_path(name: str, path: str, folder: str) -> Demand:
    """Return the demand of a path of the host, seen from `folder`; a user's home and Windows' paths are in none."""
    whole = path if _NOWHERE.match(path) else os.path.normpath(os.path.join(folder, path))  # noqa: PTH118
    return Demand(HOST_PATH, name, whole.replace("//", "/"), path)


def device_path(name: str, device: str) -> Iterator[Demand]:
    """Yield the demand of a node of the host, none of a CDI name. The engine sees relative ones from /."""
    if device.startswith("/") or "=" not in device:
        yield host_path(name, device, "/")


def absolute(file: str, path: str) -> str:
    """Return the path that `path` is, seen from the folder of `file`."""
    return os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(file)), path))  # noqa: PTH100, PTH118, PTH120


def annotation_demands(key: str, value: str) -> Iterator[Demand]:
    """Yield what an annotation takes, of a pod, of the object that makes pods, or of a container."""
    said = f"{key}: {' '.join(value.split())}"
    for kind, pattern in _KINDS.items():
        if (pattern.fullmatch(key) or (kind == GPUS and _is_cdi(key))) and not (
            kind == PRIVILEGE and value.startswith(_CONFINING_PROFILES)
        ):
            taken = {SHM_SIZE: bytes_of(value) or None, PRIVILEGE: "privileged"}.get(kind, key)
            yield Demand(kind, "annotation", taken, said)
    for node in filter(None, value.split(",")) if NODES_ANNOTATION.fullmatch(key) else ():
        yield from (each._replace(said=said) for each in device_path("annotation", node.partition(":")[0]))
        if gives_gpu_nodes(node):
            yield Demand(GPUS, "annotation", key, said)


def _is_cdi(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    return bool(slash) and f".{domain}".endswith(f".{CDI}")


def label_demands(key: str, value: str) -> Iterator[Demand]:
    """Yield what a label takes, of a pod or of the object that makes pods."""
    if key == KUEUE_PRIORITY_LABEL:
        yield Demand(PRIORITY, "label", value, f"{key}: {value}")
