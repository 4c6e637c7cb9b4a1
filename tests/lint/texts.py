"""What the tests of lint share: kinds by the fence of a manual, near-misses, and findings in short."""

from __future__ import annotations

from trainlaunch.lint.linter import Linted, lint_text

DEFECTS = ("defects",)
BOTH = (*DEFECTS, "practice")
KINDS = {"workflow": "github-actions"}
NAMES = {"template": "chart/templates/pod.yaml"}


def linted(text: str, fence: str, groups: tuple[str, ...] = BOTH) -> Linted:
    """Return the findings of a text of the kind that a manual's fence names."""
    if fence in NAMES:
        return lint_text(text, NAMES[fence], None, groups)
    return lint_text(text, "text", KINDS.get(fence, fence), groups)


def codes(text: str, fence: str) -> list[str]:
    """Return the codes of a text's defects, in its order."""
    return [each.diagnostic.code for each in linted(text, fence, DEFECTS).findings]


def pod(container: str = "", volumes: str = "", spec: str = "", image: str = "trainer:1", kind: str = "Pod") -> str:
    """Return a manifest of one pod with these lines in its container, its volumes and its spec."""
    lines = [f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: train}}\nspec:"]
    lines += [f"  {each}" for each in spec.splitlines()]
    lines += ["  containers:", "  - name: train", f"    image: {image}"]
    lines += [f"    {each}" for each in container.splitlines()]
    lines += [f"  volumes: [{volumes}]"] if volumes else []
    return "\n".join(lines) + "\n"


MOUNT = "volumeMounts: [{name: dshm, mountPath: /dev/shm}]"
LIMIT = "resources: {limits: {memory: 16Gi}}"
SIZED = "{name: dshm, emptyDir: {medium: Memory, sizeLimit: 4Gi}}"
