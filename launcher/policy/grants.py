"""What gives a container more than its own: privileges, the host's namespaces, capabilities, folders of the host.

Without a policy a patch may give it on an engine; under one it needs that policy's list.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from launcher.diagnostics import Span
from launcher.job.ceilings import Policy

_HOST = frozenset({"network", "network_mode", "pid", "uts", "userns", "userns_mode", "cgroupns", "cgroup"})
_SECURITY = frozenset({"security-opt", "security_opt"})
_ONLY_CONFINED = "no privileges beyond restricted and baseline"


def is_privilege(key: str, value: str) -> bool:
    """Return whether a flag of docker run or a key of a Compose service, with one of its values, is a privilege."""
    if key == "privileged":
        return value.lower() not in {"false", "f", "0"}
    if key in _SECURITY:
        return "unconfined" in value or value.replace(":", "=").startswith("label=disable")
    return key in _HOST and value == "host"


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
        if name.upper().removeprefix("CAP_") not in values:
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
