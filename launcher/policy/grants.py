"""What gives a container more than its own: privileges, the host's namespaces, capabilities, folders of the host.

Without a policy a patch may give it on an engine; under one it needs that policy's list.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from launcher.diagnostics import Span
from launcher.job.ceilings import Policy

_NAMESPACES = frozenset({"network", "network_mode", "pid", "ipc", "uts", "userns", "userns_mode", "cgroupns", "cgroup"})
_SECURITY = frozenset({"security-opt", "security_opt"})
# Options that confine: another profile or label may be one that lets everything pass.
_CONFINES = frozenset({"no-new-privileges", "no-new-privileges=true", "seccomp=builtin", "apparmor=docker-default"})
# The engine itself; any node of the host, which MKNOD makes; what other containers mount.
_ALWAYS = frozenset({"use-api-socket", "device-cgroup-rule", "device_cgroup_rules", "volumes_from"})
_ONLY_CONFINED = "no privileges beyond restricted and baseline"


def is_privilege(key: str, value: str) -> bool:
    """Return whether a flag of docker run or a key of a Compose service, with one of its values, is a privilege."""
    if key == "privileged" or key in _ALWAYS:
        return value.lower() not in {"false", "f", "0"}
    if key in _SECURITY:
        return value.replace(":", "=", 1) not in _CONFINES
    return key in _NAMESPACES and any(_of_others(each) for each in (value, *_named(value)))


def _named(value: str) -> Iterator[str]:
    """Yield the network of the long form `name=NETWORK,alias=…`."""
    parts = (each.partition("=") for each in value.split(","))
    yield from (name for key, _, name in parts if key.strip().lower() == "name")


def _of_others(namespace: str) -> bool:
    """Return whether a namespace is the host's or another container's, which may be the host's too."""
    return namespace.strip().lower() == "host" or namespace.startswith("container:")


def refused_privilege(policy: Policy) -> Iterator[tuple[str, Span]]:
    """Yield what a policy allows in place of privileges, and where: each list without `privileged`, or that none is."""
    lists = policy.allowed.get("allowed_pod_security", ())
    if not lists:
        yield _ONLY_CONFINED, Span(policy.files[0], 1, 1, 1, 1)
    for values, span in lists:
        if "privileged" not in values:
            yield ", ".join(values), span


def refused_capability(policy: Policy, name: str) -> Iterator[tuple[str, Span]]:
    """Yield what capabilities a policy allows, and where, each time that `name` isn't one of them."""
    lists = policy.allowed.get("allowed_capabilities", ())
    if not lists:
        yield "no capability", Span(policy.files[0], 1, 1, 1, 1)
    for values, span in lists:
        if name.upper().removeprefix("CAP_") not in {each.removeprefix("CAP_") for each in values}:
            yield ", ".join(values), span


def refused_host_path(policy: Policy, path: str) -> Iterator[tuple[str, Span]]:
    """Yield which folders of the host a policy allows, and where, each time that `path` is in none of them.

    Links are not followed: a text is checked on another machine than it runs on.
    """
    for values, span in policy.allowed.get("allowed_host_paths", ()):
        folders = [absolute(span.file, each).rstrip("/") for each in values]
        if not any(path == each or path.startswith(f"{each}/") for each in folders):
            yield ", ".join(values), span


def absolute(file: str, path: str) -> str:
    """Return the path that `path` is, seen from the folder of `file`."""
    return os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(file)), path))  # noqa: PTH100, PTH118, PTH120
