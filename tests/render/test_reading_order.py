"""What a reviewer reads first: the job, in lines that somebody who runs clusters would write; then constant scripts."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.container.preflight import health_text, preflight_text
from trainlaunch.errors import JobFileRejected
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.templating.quoting import kubernetes_dollars

from tests import plain_yaml

ROOT = Path(__file__).resolve().parents[2]
DIVIDES = "# From here on trainlaunch's own scripts, the same in every text of this format"
SMALL, TWO_NODES = ROOT / "examples/quickstart/job.yaml", ROOT / "examples/two_nodes/job.yaml"
OWN = ("args:", "env:", "volumes:", "volumeMounts:", "tolerations:")  # as long as the job has them
EXAMPLES = sorted((ROOT / "examples").glob("*/job*.yaml"))


def manifest_of(job: Path, *sets: str, target: str = "kubernetes") -> str:
    """Return the text of an example; a job file that said the sets itself would have no line of options."""
    lines = render(plan_job(read_job(job, target=target, sets=sets))).splitlines(keepends=True)
    return "".join(each for each in lines if not each.startswith("# options: "))


def above(text: str) -> list[str]:
    """Return the lines of a text before its scripts."""
    lines = text.splitlines()
    return lines[: next(index for index, line in enumerate(lines) if line.strip().startswith(DIVIDES))]


def usual(text: str) -> int:
    """Return how many lines a manifest has before its scripts without header, other objects and lists of the job's."""
    lines = [line for line in above(text.rpartition("---\n")[2]) if not line.startswith("#")]
    depths = [len(line) - len(line.lstrip()) for line in lines]
    count, inside = 0, 99
    for line, depth in zip(lines, depths, strict=True):
        inside = 99 if depth <= inside else inside
        if line.strip() in OWN:
            inside = depth
        count += inside == 99
    return count


def test_a_small_job_is_a_hundred_lines() -> None:
    """The quickstart's, which has one mount and six arguments."""
    assert len(above(manifest_of(SMALL))) <= 100


def test_two_nodes_as_a_job_set_are_a_fifth_more() -> None:
    """With its rendezvous, its restarts and torchrun's own arguments."""
    assert len(above(manifest_of(TWO_NODES, "kubernetes.kind=jobset"))) <= 120


@pytest.mark.parametrize("job", EXAMPLES, ids=lambda each: f"{each.parent.name}-{each.stem}")
def test_every_example_is_that_and_its_own_lines(job: Path) -> None:
    """Arguments, variables, volumes, GPUs and notes of the header are a job's own, and five lines of several nodes."""
    text = manifest_of(job)
    assert usual(text) <= usual(manifest_of(SMALL)) + 5 * ("completions:" in text)


@pytest.mark.parametrize(
    ("job", "target"),
    [pair for pair in product(EXAMPLES, ("kubernetes", "compose", "docker")) if pair != (TWO_NODES, "docker")],
    ids=lambda each: each if isinstance(each, str) else f"{each.parent.name}-{each.stem}",
)
def test_the_scripts_stand_last_and_are_the_same(job: Path, target: str) -> None:
    """What is above them has no line that is too wide for a review, and none of theirs."""
    text = manifest_of(job, target=target)
    lines = above(text)
    assert not [line for line in lines if "tl_" in line]
    if target == "docker":
        assert lines.index("}") - lines.index("docker_run() {") < 30
    else:
        assert max(map(len, lines)) <= 120
    if target == "kubernetes":
        said = strings(list(plain_yaml.load_all(text)))
        assert said >= {kubernetes_dollars(health_text()), kubernetes_dollars(preflight_text())}


def strings(value: Any) -> set[str]:
    """Return all strings of parsed documents."""
    if isinstance(value, dict):
        value = list(value.values())
    return (
        set().union(*map(strings, value)) if isinstance(value, list) else {value} if isinstance(value, str) else set()
    )


@pytest.mark.parametrize("kind", ["job", "jobset", "pytorchjob", "trainjob", "pod"])
def test_a_script_stands_once(kind: str) -> None:
    """Where two pods or two probes need it, the second has an alias."""
    for sets in ((), ("healthcheck={stall_after: 1h, on_unhealthy: stop}",), ("torchrun.nnodes=3",)):
        try:
            text = manifest_of(SMALL, f"kubernetes.kind={kind}", "torchrun={}", *sets)
        except JobFileRejected:
            assert kind == "pod"
            continue
        for script in ("# trainlaunch preflight,", "# trainlaunch health,"):
            assert text.count(script) == 1
