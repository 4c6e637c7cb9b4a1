"""The job files of this folder as plans."""

from __future__ import annotations

from pathlib import Path

from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy import read_job
from trainlaunch.rules import plan_job

FOLDER = Path(__file__).parent
GOLDENS = FOLDER / "golden"
JOBS = ("full", "gpus", "minimal", "script", "secrets")
NODES = "nodes"  # several of them: on Compose alone among these targets
TARGETS = ("docker", "compose", "kubernetes")
FILES = {"docker": "docker-run.sh", "compose": "compose.yaml", "kubernetes": "kubernetes.yaml"}


def job_plan(job: str, target: str, *sets: str) -> LaunchPlan:
    """Return the plan of jobs/JOB.yaml for a target."""
    return plan_job(read_job(FOLDER / "jobs" / f"{job}.yaml", target=target, sets=sets))
