"""What a patch may bring into a text at all: a list for each target, and an error for anything else.

Documents, kinds and names stay those of the rendered file, the training containers stay where they are, once each;
and a key that no rendered file has is on a list here, or no patch adds it. So a new field of an API that would undo
what the plan proves is refused until somebody has looked at it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from trainlaunch.did_you_mean import closest
from trainlaunch.formats.docker.flags import takes_shm
from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX, LABEL_PREFIX
from trainlaunch.render.apply_patch import documents_of
from trainlaunch.verify.documents import mappings
from trainlaunch.verify.pod_security import violations

_DECIDED = "how many pods there are, how long they run and what is done when one fails are the plan's"

# One row a list, as a table reads.
# fmt: off
POD = frozenset((
    "affinity", "automountServiceAccountToken", "containers", "dnsConfig", "dnsPolicy", "enableServiceLinks",
    "hostAliases", "hostNetwork", "hostPID", "hostUsers", "hostname", "imagePullSecrets", "initContainers",
    "nodeName", "nodeSelector", "os", "overhead", "preemptionPolicy", "priority", "priorityClassName",
    "readinessGates", "resourceClaims", "runtimeClassName", "schedulerName", "schedulingGates", "securityContext",
    "serviceAccountName", "setHostnameAsFQDN", "subdomain", "tolerations", "topologySpreadConstraints", "volumes",
))
CONTAINER = frozenset((
    "env", "envFrom", "ports", "resizePolicy", "resources", "securityContext",
    "terminationMessagePolicy", "volumeDevices", "volumeMounts",
))
CONTEXT = frozenset((
    "allowPrivilegeEscalation", "appArmorProfile", "capabilities", "fsGroup", "fsGroupChangePolicy", "privileged",
    "procMount", "runAsGroup", "runAsNonRoot", "runAsUser", "seLinuxChangePolicy", "seLinuxOptions",
    "seccompProfile", "supplementalGroups", "supplementalGroupsPolicy", "sysctls",
))
RESOURCES = frozenset({"claims", "limits", "requests"})
POD_LISTS = ("containers", "initContainers", "ephemeralContainers")
# Beside pods, by the object's kind: paths with a dot that a rendered file need not have. The rest of an object is ours.
BESIDE_PODS: Mapping[str, str] = {
    "Job": r"spec\.(?:suspend|podReplacementPolicy|managedBy)",
    "JobSet": r"spec\.(suspend|managedBy|coordinator|startupPolicy|successPolicy)",
    "TrainJob": r"spec\.(suspend|managedBy|labels|annotations)",
    "PyTorchJob": r"spec\.runPolicy\.(schedulingPolicy|suspend|managedBy)",
    "Service": r"spec\.(ipFamilies|ipFamilyPolicy|sessionAffinity|internalTrafficPolicy)",
}
METADATA = r"(?:.*\.)?metadata\.(?:labels|annotations)"
SERVICE = frozenset((
    "annotations", "attach", "blkio_config", "cap_add", "cap_drop", "cgroup", "cgroup_parent", "configs",
    "cpu_rt_period", "cpu_rt_runtime", "cpu_shares", "cpuset", "depends_on", "devices", "device_cgroup_rules",
    "dns", "dns_opt", "dns_search", "domainname", "environment", "expose", "external_links", "extra_hosts",
    "group_add", "hostname", "labels", "links", "logging", "mac_address", "mem_reservation", "mem_swappiness",
    "memswap_limit", "network_mode", "networks", "oom_kill_disable", "oom_score_adj", "pid", "pids_limit",
    "platform", "ports", "privileged", "runtime", "secrets", "security_opt", "storage_opt", "sysctls", "tmpfs",
    "ulimits", "userns_mode", "uts", "volumes",
))
TOP = frozenset({"services", "networks", "volumes", "secrets", "configs"})
# What gets another container started, another program run, or a file read that nobody checks.
NEVER_IN_SERVICES = frozenset({"provider", "extends", "env_file", "label_file", "use_api_socket"})



class Refused(NamedTuple):
    """What a patch brings that no patch may: what is said of it, and what to do instead."""

    said: str
    fix: str
    why: str = "a patch adds what the plan doesn't decide and nobody else starts; what else it adds, no one has proved"


def refused(target: str, bare: str, text: str, level: str) -> Iterator[tuple[str, Refused]]:
    """Yield what a patched file has that no patch may bring, by what it is called.

    `bare` is the text without the patch, and `level` the job's Pod Security level.
    """
    before, after = documents_of(bare), documents_of(text)
    if target == "compose":
        yield from _compose(before[0], after[0])
        return
    identities = [_identity(each) for each in before], [_identity(each) for each in after]
    if identities[0] != identities[1]:
        said = "changes which objects there are, or an object's apiVersion, kind or name"
        yield "objects", Refused(said, "delete this part of the patch, and write kubernetes.kind or name instead")
        return
    for one, two in zip(before, after, strict=True):
        yield from _object(one, two)
        yield from _pods(one, two, level)


def _identity(document: dict[str, Any]) -> tuple[object, ...]:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return document.get("apiVersion"), document.get("kind"), name


def _object(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, Refused]]:
    """Yield each key of an object outside its pods that is new and on no list, and each value that is changed."""
    beside = BESIDE_PODS.get(str(before.get("kind")), METADATA)
    free, added = re.compile(rf"{beside}(?:\..*)?", re.S), re.compile(rf"(?:{METADATA}|{beside})(?:\..*)?", re.S)
    for path, is_new in _differences(before, after, ""):
        if is_new and not (added.fullmatch(path) and KUBERNETES_LABEL_PREFIX not in path):
            yield path, Refused(f"adds {path}, which no patch may", "delete this part of the patch")
        elif not is_new and (beside == METADATA or not free.fullmatch(path)):
            yield (
                path,
                Refused(f"changes {path}, which the plan decides", "delete this part of the patch", _DECIDED),
            )


def _differences(before: object, after: object, path: str) -> Iterator[tuple[str, bool]]:
    """Yield the outermost keys that differ outside of pods, and whether only `after` has them."""
    if isinstance(before, dict) and isinstance(after, dict):
        if "containers" in before or "containers" in after:
            return  # a pod, which has a list of its own
        one, two = before, after
    elif isinstance(before, list) and isinstance(after, list):
        one, two = dict(enumerate(before)), dict(enumerate(after))
    else:
        if before != after:
            yield path, False
        return
    for key in {**one, **two}:
        inner = f"{path}.{key}" if path else str(key)
        if key in one and key in two:
            yield from _differences(one[key], two[key], inner)
        else:
            yield inner, key in two


def _pods(before: object, after: object, level: str) -> Iterator[tuple[str, Refused]]:
    ours, found = dict(_pods_of(before, "")), dict(_pods_of(after, ""))
    for path in found.keys() ^ ours.keys():
        yield path, Refused(f"adds or takes away the pod at {path}", "delete this part of the patch")
    for path in ours.keys() & found.keys():
        yield from _pod(path, ours[path], found[path])
        yield from _insecure(path, ours[path], found[path], level)


def _insecure(path: str, before: dict[str, Any], after: dict[str, Any], level: str) -> Iterator[tuple[str, Refused]]:
    """Yield what a pod now says that its level doesn't allow, in one sentence for each of its parts."""
    known = set(violations(before, level))
    parts: dict[str, list[str]] = {}
    for field, value in violations(after, level):
        if (field, value) not in known:
            container = re.match(r"\w*[cC]ontainers\.\d+", field)
            parts.setdefault(container[0] if container else field, []).append(f"{field.rpartition('.')[2]} is {value}")
    for part, found in parts.items():
        missing = all(" is not " in each or each.endswith(" is None") for each in found)
        confined = "securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"
        yield (
            f"{path}.{part}",
            Refused(
                f"makes {path}.{part} something that Pod Security {level} refuses: {', '.join(found)}",
                f"add {confined} to it" if missing else "delete it, or set kubernetes.pod_security: privileged",
                "a namespace that enforces the level refuses the pod, and its controller waits without an error",
            ),
        )


def _pods_of(value: object, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each pod's spec by its path: whatever has containers, wherever it stands."""
    if isinstance(value, dict):
        if any(each in value for each in POD_LISTS):
            yield path or "the pod", value
            return
        for key, each in value.items():
            yield from _pods_of(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _pods_of(each, f"{path}.{index}")


def _pod(path: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, Refused]]:
    yield from _beyond(f"{path}", before, after, POD)
    yield from _beyond(f"{path}.securityContext", before.get("securityContext"), after.get("securityContext"), CONTEXT)
    ours = {each["name"]: each for each in before["containers"]}
    for name, container in ours.items():
        there = [(where, each) for where in POD_LISTS for each in mappings(after.get(where))]
        places = [(where, each) for where, each in there if each.get("name") == name]
        if [where for where, _ in places] != ["containers"]:
            said = f"leaves the container {name} {_where(places)}; it must stand once in containers"
            yield f"{path}.containers", Refused(said, "delete this part of the patch")
            continue
        ((_, found),) = places
        yield from _beyond(f"{path}.{name}", container, found, CONTAINER)
        for key, known in (("securityContext", CONTEXT), ("resources", RESOURCES)):
            yield from _beyond(f"{path}.{name}.{key}", container.get(key), found.get(key), known)


def _where(places: list[tuple[str, Any]]) -> str:
    return f"in {' and '.join(where for where, _ in places)}" if places else "nowhere"


def _beyond(path: str, before: object, after: object, allowed: frozenset[str]) -> Iterator[tuple[str, Refused]]:
    """Yield each key that only `after` has and that isn't allowed."""
    had = before if isinstance(before, dict) else {}
    for key in after if isinstance(after, dict) else ():
        if key not in had and key not in allowed and not str(key).startswith("x-"):
            close = closest(str(key), sorted(allowed - had.keys()))
            fix = f"write {close}, or delete this part of the patch" if close else "delete this part of the patch"
            yield f"{path}.{key}", Refused(f"adds {key} to {path}, which no patch may", fix)


def _compose(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, Refused]]:
    yield from _beyond("the file", before, after, TOP)
    yield from _named(before, after)
    had, found = before["services"], after.get("services")
    for name, service in found.items() if isinstance(found, dict) else ():
        if not isinstance(service, dict):
            continue
        if name in had:
            yield from _beyond(f"services.{name}", had[name], service, SERVICE)
            yield from _targets(f"services.{name}", service)
            continue
        for key in sorted(NEVER_IN_SERVICES & service.keys()):
            said = f"adds {key} to services.{name}, which no patch may"
            yield f"services.{name}.{key}", Refused(said, "delete this part of the patch")
        labels = service.get("labels")
        if any(str(each).startswith(LABEL_PREFIX) for each in labels or ()):
            said = f"gives services.{name} a label of trainlaunch's own, by which containers of a job are found"
            yield f"services.{name}.labels", Refused(said, "delete the label")


def _named(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, Refused]]:
    """Yield what a volume, secret or network of the job no longer says; volumes and networks may say more."""
    for key in ("volumes", "secrets", "networks"):
        found = after.get(key)
        for name, ours in (before.get(key) or {}).items():
            theirs = found.get(name) if isinstance(found, dict) else None
            for path, is_new in _differences(ours or {}, theirs or {}, f"{key}.{name}"):
                if not is_new or key == "secrets":
                    said = f"changes {path}, which the plan decides"
                    yield (
                        path,
                        Refused(said, "delete this part of the patch", "the job's mounts and secrets are its own"),
                    )


def _targets(path: str, service: dict[str, Any]) -> Iterator[tuple[str, Refused]]:
    """Yield each config and secret that would hide /dev/shm."""
    for key in ("configs", "secrets"):
        value = service.get(key)
        for index, each in enumerate(value if isinstance(value, list) else ()):
            target = str(each.get("target") or f"/{each.get('source')}") if isinstance(each, dict) else f"/{each}"
            if target.startswith("/") and takes_shm(target):
                said = f"mounts {key}.{index} on {target}, where it would hide /dev/shm"
                yield f"{path}.{key}.{index}", Refused(said, "mount it elsewhere")
