"""The Role that docs/kubernetes-runs.md gives, and a user of a real cluster who has nothing else."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path
from typing import Any

from tests import plain_yaml
from tests.conftest import ROOT
from tests.kubernetes.contract.things import ask, talking
from tests.kubernetes.contract.user import Place

PAGE = ROOT / "docs" / "kubernetes-runs.md"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def documented_role() -> dict[str, Any]:
    """Return the Role of the page, which has one."""
    (text,) = re.findall(r"```yaml\n(.*?kind: Role\n.*?)```", PAGE.read_text(), re.S)
    role: dict[str, Any] = plain_yaml.load(text)
    return role


def allowed(role: dict[str, Any]) -> set[tuple[str, str]]:
    """Return what a Role allows, as pairs of a verb and a resource."""
    return {(verb, what) for rule in role["rules"] for verb in rule["verbs"] for what in rule["resources"]}


def with_role_alone(place: Place, folder: Path) -> Place:
    """Return a real place for a ServiceAccount of its own that has the documented Role, made in the namespace."""
    name = f"modest-{uuid.uuid4().hex[:6]}"
    role = documented_role()
    subject = {"kind": "ServiceAccount", "name": name, "namespace": place.namespace}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [subject],
    }
    space = f"namespaces/{place.namespace}"
    with talking(place) as api:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        ask(api, "POST", f"/api/v1/{space}/serviceaccounts", account)
        ask(api, "POST", f"{RBAC}/{space}/roles", role | {"metadata": {"name": name}})
        ask(api, "POST", f"{RBAC}/{space}/rolebindings", binding)
        wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
        made = ask(api, "POST", f"/api/v1/{space}/serviceaccounts/{name}/token", wanted)
    return place.with_kubeconfig(_kubeconfig(place, folder, name, made["status"]["token"]))


def _kubeconfig(place: Place, folder: Path, user: str, token: str) -> str:
    """Return a KUBECONFIG whose first file has a context of that user on the place's own cluster."""
    files = place.kubeconfig.split(os.pathsep)
    known = [plain_yaml.load(Path(each).read_text()) for each in files]
    context = next(each["context"] for config in known for each in config.get("contexts") or ())
    path = folder / f"{user}.yaml"
    path.write_text(
        plain_yaml.dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": user,
                "contexts": [{"name": user, "context": {**context, "user": user}}],
                "users": [{"name": user, "user": {"token": token}}],
                "clusters": [],
            }
        )
    )
    return os.pathsep.join([str(path), *files])
