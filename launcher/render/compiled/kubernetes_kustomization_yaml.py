"""kubernetes/kustomization.yaml.j2 as Python, written by launcher/render/compiler.py: change that and run `make regen`."""

from __future__ import annotations

from typing import Any

from launcher.render.quoting import comment
from launcher.render.quoting import yaml_string

SOURCES = {
    'kubernetes/kustomization.yaml.j2': '9814ff0a34067faf015fd235a01ab10319f81770eadbcdff79d30a5a641fc410',
}


def text(
    *,
    first_line: Any,
    resources: Any,
    **_unused: Any,
) -> str:
    """Return the text of the template."""
    out: list[str] = []
    out += (
        comment(first_line),
        '\napiVersion: "kustomize.config.k8s.io/v1beta1"\nkind: "Kustomization"\nresources:\n',
    )
    for name_1 in resources:
        out += (
            '  - ',
            yaml_string(name_1),
            '\n',
        )
    return "".join(out)
