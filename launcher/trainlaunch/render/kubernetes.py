"""The kubernetes target's text: the objects of one kind around one pod template, in the order of their creation."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trainlaunch.container.manifest import manifest_context
from trainlaunch.kinds import KINDS
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render.header import header_lines
from trainlaunch.templating.environment import template_text

KUSTOMIZATION = "kustomization.yaml"
RESOURCE_SUFFIX = ".kubernetes.yaml"
FIRST_LINE = (
    "# Written by trainlaunch: all renderings of this folder. `trainlaunch render --layout kustomize` and "
    "`trainlaunch check --fix` write it again."
)


def text(plan: LaunchPlan, *, base: Path | None) -> str:
    """Return the manifest of the kind that the job names; `base` is the folder that it will lie in."""
    template = KINDS[plan.job.kubernetes.kind].template
    return template_text(template, header=header_lines(plan, base=base), **manifest_context(plan))


def kustomization_text(names: Iterable[str]) -> str:
    """Return the kustomization.yaml of files with these names; the order is that of the names."""
    resources = sorted(set(names))
    return template_text("kubernetes/kustomization.yaml.j2", first_line=FIRST_LINE, resources=resources)


def resources_in(folder: Path) -> list[str]:
    """Return the names of the rendered files for Kubernetes that lie in `folder`, nothing where there is none."""
    return [path.name for path in folder.glob(f"*{RESOURCE_SUFFIX}")]


def is_own_kustomization(path: Path, text: str) -> bool:
    """Whether `text`, or its beginning, at `path` is ours to write again; a person's own is left alone."""
    return path.name == KUSTOMIZATION and text.startswith(FIRST_LINE + "\n")
