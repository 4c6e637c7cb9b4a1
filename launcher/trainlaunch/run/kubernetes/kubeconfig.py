"""Which cluster is meant: the kubeconfig files as kubectl reads them, else the pod that this runs in.

The official client's own merge lets the last file of KUBECONFIG set the current context; kubectl takes the first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOME_CONFIG = "~/.kube/config"


@dataclass(frozen=True, slots=True)
class Access:
    """A cluster that the kubeconfig knows; `files` and `context` are empty inside a pod.

    `namespace` is the context's own, else `default`.
    """

    context: str
    server: str
    namespace: str
    files: str

    @property
    def words(self) -> str:
        """The cluster as a sentence names it."""
        return f"context {self.context}" if self.context else "the cluster that this pod runs in"


def find_access(context: str | None) -> Access:
    """Return the cluster of a context, or of the current one; raises TargetUnavailable (TL521) where there is none."""
    files = _existing_files()
    if not files and context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return _of_this_pod()
    known = {path: _read(path) for path in files}
    contexts = _merged(known.values(), "contexts")
    name = context or next((str(each["current-context"]) for each in known.values() if each.get("current-context")), "")
    if not name or name not in contexts:
        raise TargetUnavailable([_no_context(name, context, contexts, files)])
    chosen = contexts[name].get("context") or {}
    cluster = _merged(known.values(), "clusters").get(str(chosen.get("cluster")), {}).get("cluster") or {}
    return Access(
        context=name,
        server=str(cluster.get("server") or ""),
        namespace=str(chosen.get("namespace") or "default"),
        files=os.pathsep.join(path for path, content in known.items() if content),
    )


def configured() -> bool:
    """Whether there is a kubeconfig, or this process runs in a pod; what it says is not looked at."""
    return bool(_existing_files() or os.environ.get("KUBERNETES_SERVICE_HOST"))


def _existing_files() -> list[str]:
    stated = os.environ.get("KUBECONFIG")
    paths = [each for each in (stated or HOME_CONFIG).split(os.pathsep) if each]
    return [path for each in paths if Path(path := os.path.expanduser(each)).exists()]  # noqa: PTH111  as kubectl


def _of_this_pod() -> Access:
    try:
        namespace = (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        namespace = ""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    return Access("", f"https://{host}:{port}", namespace or "default", "")


def _read(path: str) -> Mapping[str, Any]:
    """Return a kubeconfig file's content; an empty file has none."""
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as cause:
        raise TargetUnavailable([_unreadable(path, str(cause))]) from cause
    if content is not None and not isinstance(content, dict):
        raise TargetUnavailable([_unreadable(path, "it holds no mapping")])
    return content or {}


def _merged(contents: Any, section: str) -> dict[str, dict[str, Any]]:
    """Return the named entries of a section; the first file that has a name wins, as for kubectl."""
    found: dict[str, dict[str, Any]] = {}
    for content in contents:
        for each in content.get(section) or ():
            if isinstance(each, dict) and "name" in each:
                found.setdefault(str(each["name"]), each)
    return found


def _unreadable(path: str, why: str) -> Diagnostic:
    return Diagnostic(
        "TL521",
        f"the kubeconfig {path} can't be read",
        "correct the file, or name another one in KUBECONFIG",
        why=" ".join(why.split()),
    )


def _no_context(name: str, asked: str | None, contexts: Mapping[str, object], files: list[str]) -> Diagnostic:
    listed = ", ".join(sorted(contexts))
    if not files:
        stated = os.environ.get("KUBECONFIG")
        where = f"KUBECONFIG names {stated}, which does not exist" if stated else f"{HOME_CONFIG} does not exist"
        return Diagnostic(
            "TL521",
            f"no kubeconfig was found{f' with the context {asked}' if asked else ''}",
            "set KUBECONFIG to your cluster's kubeconfig, or let your provider's tool write ~/.kube/config",
            why=f"{where}, and this is not a pod of a cluster",
        )
    if not name:
        return Diagnostic(
            "TL521",
            "the kubeconfig has no current context",
            f"add `--context {min(contexts)}`, or run `kubectl config use-context NAME`"
            if contexts
            else "let your provider's tool write a context into it",
            why=f"it knows the contexts {listed}" if listed else "it knows no context at all",
        )
    return Diagnostic(
        "TL521",
        f"the kubeconfig has no context {name}",
        f"add `--context {min(contexts)}`" if contexts else "set KUBECONFIG to the file that has it",
        why=f"it knows the contexts {listed}" if listed else "it knows no context at all",
    )
