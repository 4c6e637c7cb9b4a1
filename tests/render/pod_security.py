"""Pod Security's levels by their published rules, for pod specs as dictionaries.

https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

LEVELS = ("restricted", "baseline", "privileged")
_BASELINE_CAPABILITIES = {
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}  # fmt: skip
_RESTRICTED_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
}  # fmt: skip
_SAFE_SYSCTLS = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_syncookies", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
}  # fmt: skip
_SELINUX_TYPES = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}


def violations(spec: dict[str, Any], level: str) -> list[str]:
    """Return what a pod breaks of a level, none where a namespace that enforces it takes the pod."""
    if level == "privileged":
        return []
    return [*_baseline(spec), *(_restricted(spec) if level == "restricted" else ())]


def containers_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all containers of a pod, init containers too."""
    return [each for kind in ("initContainers", "containers", "ephemeralContainers") for each in spec.get(kind, [])]


def _contexts(spec: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each security context: the pod's, then each container's."""
    yield "pod", spec.get("securityContext", {})
    yield from ((each["name"], each.get("securityContext", {})) for each in containers_of(spec))


def _baseline(spec: dict[str, Any]) -> Iterator[str]:
    yield from (f"{each} is true" for each in ("hostNetwork", "hostPID", "hostIPC") if spec.get(each))
    yield from (f"volume {each['name']} is a hostPath" for each in spec.get("volumes", []) if "hostPath" in each)
    for name, context in _contexts(spec):
        if context.get("privileged"):
            yield f"{name} is privileged"
        if context.get("windowsOptions", {}).get("hostProcess"):
            yield f"{name} is a host process"
        if not set(context.get("capabilities", {}).get("add", [])) <= _BASELINE_CAPABILITIES:
            yield f"{name} adds capabilities"
        if context.get("procMount", "Default") != "Default":
            yield f"{name} has another /proc"
        if context.get("seccompProfile", {}).get("type") == "Unconfined":
            yield f"{name} has no seccomp profile"
        if context.get("appArmorProfile", {}).get("type") == "Unconfined":
            yield f"{name} has no AppArmor profile"
        linux = context.get("seLinuxOptions", {})
        if linux.get("type", "") not in _SELINUX_TYPES or linux.get("user") or linux.get("role"):
            yield f"{name} has SELinux options"
        if not {each["name"] for each in context.get("sysctls", [])} <= _SAFE_SYSCTLS:
            yield f"{name} sets sysctls"
    for each in containers_of(spec):
        if any(port.get("hostPort") for port in each.get("ports", [])):
            yield f"{each['name']} takes a port of the host"


def _restricted(spec: dict[str, Any]) -> Iterator[str]:
    for each in spec.get("volumes", []):
        if not set(each) - {"name"} <= _RESTRICTED_VOLUMES:
            yield f"volume {each['name']} is of another type"
    pod = spec.get("securityContext", {})
    yield from (f"{name} runs as root" for name, context in _contexts(spec) if context.get("runAsUser") == 0)
    for each in containers_of(spec):
        own = each.get("securityContext", {})
        if own.get("allowPrivilegeEscalation") is not False:
            yield f"{each['name']} may gain privileges"
        if own.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
            yield f"{each['name']} may run as root"
        if own.get("seccompProfile", pod.get("seccompProfile", {})).get("type") not in {"RuntimeDefault", "Localhost"}:
            yield f"{each['name']} states no seccomp profile"
        capabilities = own.get("capabilities", {})
        if "ALL" not in capabilities.get("drop", []) or set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
            yield f"{each['name']} keeps capabilities"
