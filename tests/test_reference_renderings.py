"""compose/ and k8s/ hold what the example jobs render now, applicable as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.render.kubernetes import KUSTOMIZATION, kustomization_text
from trainlaunch.rules import plan_job
from trainlaunch.targets import TARGETS
from trainlaunch.verify import verified

ROOT = Path(__file__).resolve().parents[1]
SHOWN = (
    "quickstart",
    "own_entrypoint",
    "two_nodes",
    "two_ranks",
)  # the examples whose texts differ in more than names and numbers
JOBS = sorted(job_file for name in SHOWN for job_file in (ROOT / "examples" / name).glob("*.yaml"))
FOLDERS = {"compose": ROOT / "compose", "kubernetes": ROOT / "k8s"}
RENDERED = [(path, target) for target in FOLDERS for path in JOBS]


def reference(job_file: Path, target: str) -> tuple[Path, str]:
    """Return where the rendering of a job is kept, and its text now."""
    folder = FOLDERS[target]
    plan = plan_job(read_job(job_file, target=target))
    text = verified(plan, render(plan, base=folder), base=folder)
    return folder / TARGETS[target].file_name.format(name=plan.job.name), text


@pytest.mark.parametrize(
    ("job_file", "target"), RENDERED, ids=[f"{path.parent.name}-{path.stem}-{target}" for path, target in RENDERED]
)
def test_a_reference_rendering_is_current(
    job_file: Path, target: str, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte; `make regen` writes them."""
    monkeypatch.chdir(ROOT)
    path, text = reference(job_file.relative_to(ROOT), target)
    golden(path, text)


def test_k8s_is_a_base_of_kustomize(golden: Callable[[Path, str], None]) -> None:
    """Its kustomization.yaml names every rendering there."""
    names = [reference(job_file, target)[0].name for job_file, target in RENDERED if target == "kubernetes"]
    golden(ROOT / "k8s" / KUSTOMIZATION, kustomization_text(names))


def test_no_reference_rendering_is_left_over() -> None:
    """A file whose job is gone would be applied by somebody."""
    known = {reference(job_file, target)[0] for job_file, target in RENDERED} | {ROOT / "k8s" / KUSTOMIZATION}
    kept = {path for folder in FOLDERS.values() for path in folder.iterdir()}
    assert kept == known
