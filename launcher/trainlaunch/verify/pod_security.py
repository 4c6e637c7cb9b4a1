"""The Pod Security Standards: what a pod's spec says that its level doesn't allow.

Source: kubernetes.io/docs/concepts/security/pod-security-standards. Rendered files pass their level by construction;
this judges what a patch makes of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trainlaunch.verify.documents import mapping, mappings

PRIVILEGED, RESTRICTED = "privileged", "restricted"
_LISTS = ("containers", "initContainers", "ephemeralContainers")
# fmt: off
_BASELINE_CAPABILITIES = frozenset((
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
))
# fmt: on
_BASELINE_SYSCTLS = re.compile(
    r"kernel\.shm_rmid_forced|net\.ipv4\.(?:ip_local_port_range|ip_unprivileged_port_start|tcp_syncookies|"
    r"ping_group_range|ip_local_reserved_ports|tcp_keepalive_(?:time|intvl|probes)|tcp_fin_timeout|tcp_[rw]mem)"
)
# fmt: off
_RESTRICTED_VOLUMES = frozenset((
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
    "image",
))
# fmt: on
_SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})


def violations(pod: dict[str, Any], level: str) -> Iterator[tuple[str, str]]:
    """Yield each field of a pod's spec that `level` doesn't allow, by its path in the spec, with what it says."""
    if level == PRIVILEGED:
        return
    yield from _host(pod)
    for path, part in _parts(pod):
        yield from _contained(path, part, level)
    if level == RESTRICTED:
        yield from _restricted(pod)


def _parts(pod: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the pod and each container that have a securityContext, with their path."""
    yield "", pod
    for name in _LISTS:
        for index, each in enumerate(mappings(pod.get(name))):
            yield f"{name}.{index}.", each


def _host(pod: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(name):
            yield name, str(pod[name]).lower()
    for index, volume in enumerate(mappings(pod.get("volumes"))):
        if "hostPath" in volume:
            yield f"volumes.{index}.hostPath", str(mapping(volume["hostPath"]).get("path"))
    for path, part in _parts(pod):
        for index, port in enumerate(mappings(part.get("ports"))):
            if port.get("hostPort") and not pod.get("hostNetwork"):
                yield f"{path}ports.{index}.hostPort", str(port["hostPort"])


def _contained(path: str, part: dict[str, Any], level: str) -> Iterator[tuple[str, str]]:
    context = mapping(part.get("securityContext"))
    where = f"{path}securityContext"
    if context.get("privileged"):
        yield f"{where}.privileged", "true"
    added = mapping(context.get("capabilities")).get("add") or []
    allowed = {"NET_BIND_SERVICE"} if level == RESTRICTED else _BASELINE_CAPABILITIES
    for each in added if isinstance(added, list) else [added]:
        if each not in allowed:
            yield f"{where}.capabilities.add", str(each)
    if context.get("procMount") not in (None, "Default"):
        yield f"{where}.procMount", str(context["procMount"])
    for name in ("seccompProfile", "appArmorProfile"):
        if mapping(context.get(name)).get("type") == "Unconfined":
            yield f"{where}.{name}.type", "Unconfined"
    selinux = mapping(context.get("seLinuxOptions"))
    if selinux.get("type", "") not in _SELINUX_TYPES or selinux.get("user") or selinux.get("role"):
        yield f"{where}.seLinuxOptions", str(selinux)
    for index, each in enumerate(mappings(context.get("sysctls"))):
        if not _BASELINE_SYSCTLS.fullmatch(str(each.get("name"))):
            yield f"{where}.sysctls.{index}", str(each.get("name"))
    if mapping(context.get("windowsOptions")).get("hostProcess"):
        yield f"{where}.windowsOptions.hostProcess", "true"
    for hook in ("postStart", "preStop"):
        yield from _hosts_of(f"{path}lifecycle.{hook}", mapping(mapping(part.get("lifecycle")).get(hook)))
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        yield from _hosts_of(f"{path}{probe}", mapping(part.get(probe)))


def _hosts_of(path: str, action: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the host that a probe or hook asks in place of its own pod, which Kubernetes 1.34 and later refuses."""
    for name in ("httpGet", "tcpSocket"):
        host = mapping(action.get(name)).get("host")
        if host:
            yield f"{path}.{name}.host", str(host)


def _restricted(pod: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for index, volume in enumerate(mappings(pod.get("volumes"))):
        for kind in volume.keys() - _RESTRICTED_VOLUMES - {"name", "hostPath"}:
            yield f"volumes.{index}", str(kind)
    own = mapping(pod.get("securityContext"))
    for path, part in _parts(pod):
        context = mapping(part.get("securityContext"))
        where = f"{path}securityContext"
        if context.get("runAsUser") == 0:
            yield f"{where}.runAsUser", "0"
        if path:
            yield from _confined(where, context, own)


def _confined(where: str, context: dict[str, Any], pod: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a container must have under restricted, or its pod for it, and doesn't."""
    if context.get("allowPrivilegeEscalation") is not False:
        yield f"{where}.allowPrivilegeEscalation", "not false"
    dropped = mapping(context.get("capabilities")).get("drop") or []
    if "ALL" not in dropped:
        yield f"{where}.capabilities.drop", "not ALL"
    if context.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        yield f"{where}.runAsNonRoot", "not true"
    seccomp = mapping(context.get("seccompProfile", pod.get("seccompProfile"))).get("type")
    if seccomp not in ("RuntimeDefault", "Localhost"):
        yield f"{where}.seccompProfile.type", str(seccomp)
