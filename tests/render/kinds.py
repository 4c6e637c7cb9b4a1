"""Jobs as each Kubernetes kind, on one node and on several, as far as the kind can say it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trainlaunch.kinds import KINDS
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.verify import verified

from tests import plain_yaml
from tests.render.crds import pod_templates
from tests.render.jobs import FOLDER, JOBS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*/*.yaml"))
FILES = [*(FOLDER / "jobs" / f"{name}.yaml" for name in (*JOBS, "cluster")), *EXAMPLES]
ONE_START = "restart.max_attempts=1"
CASES = [(kind, nodes) for kind in KINDS for nodes in (1, 3) if (kind, nodes) != ("pod", 3)]


def kind_plan(path: Path, kind: str, nodes: int, *sets: str) -> LaunchPlan:
    """Return the plan of a job file as `kind` on `nodes` nodes; what that kind can't say is taken from it."""
    stated = plain_yaml.load(path.read_text(encoding="utf-8"))
    own = [f"kubernetes.kind={kind}"]
    own += [f"torchrun.nnodes={nodes}"] if nodes > 1 or "torchrun" in stated else []
    own += ["kubernetes.queue=null"] if kind == "pod" and "queue" in stated.get("kubernetes", {}) else []
    if kind == "pytorchjob" or (kind == "job" and nodes > 1):
        own.append(ONE_START)
    return plan_job(read_job(path, target="kubernetes", sets=(*own, *sets)))


def documents(plan: LaunchPlan) -> list[dict[str, Any]]:
    """Return the objects of a verified manifest, aliases written out."""
    found = list(plain_yaml.load_all(verified(plan, render(plan))))
    return [json.loads(json.dumps(each)) for each in found]


def templates(plan: LaunchPlan) -> list[dict[str, Any]]:
    """Return every pod template of a verified manifest."""
    return [each for document in documents(plan) for each in pod_templates(document)]
