"""The plans that these tests start: small stated loaders, and automatic ones that the container may lower."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import Any

from trainlaunch.container.preflight import health_text, plan_variables, preflight_text
from trainlaunch.job.loader_spec import Tune
from trainlaunch.job.spec import Measured
from trainlaunch.plan import make_plan
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.lock_overrides import input_of
from trainlaunch.units import MIB

from tests.jobs import plan_with

SAMPLE = {"shape": [3, 64, 64], "dtype": "float32"}  # 64 of them are exactly 3 MiB
BATCH = 3 * MIB
HOME = "/tmp/trainlaunch-home"  # what the preflight gives a user without one
NAMED = {"USER": "trainlaunch", "LOGNAME": "trainlaunch"}
FOLDERS = {
    "HOME": HOME,
    "XDG_CACHE_HOME": f"{HOME}/.cache",
    "TORCHINDUCTOR_CACHE_DIR": f"{HOME}/.cache/torchinductor",
    "TRITON_CACHE_DIR": f"{HOME}/.cache/triton",
    "MPLCONFIGDIR": f"{HOME}/.cache/matplotlib",
}
LOADER = {"batch_size": 64, "sample": SAMPLE}


def plan(*, loader: dict[str, Any] | None = None, target: str = "docker", **fields: Any) -> LaunchPlan:
    """Return the plan of a small job with two stated workers (it needs 18 MiB and a few pages), with `fields` over it.

    None leaves a key of the loader out.
    """
    merged = {**LOADER, "num_workers": 2, **(loader or {})}
    data_loader = {key: value for key, value in merged.items() if value is not None}
    with tempfile.TemporaryDirectory() as folder:
        return plan_with(Path(folder), target, data_loader=data_loader, **fields)


def automatic(*, loader: dict[str, Any] | None = None, **fields: Any) -> LaunchPlan:
    """Return the plan of such a job with automatic workers; it needs 6 MiB a worker and 6 MiB besides, and pages."""
    return plan(loader={"num_workers": "auto", **(loader or {})}, **fields)


def wrapper_alone(made: LaunchPlan) -> str:
    """Return the wrapper's script behind the plan's variable, for a shell that is given one text."""
    return _alone(made, preflight_text())


def health_alone(made: LaunchPlan) -> str:
    """Return the health check behind the plan's variable."""
    return _alone(made, health_text())


def _alone(made: LaunchPlan, script: str) -> str:
    set_ = "".join(f"{name}={shlex.quote(value)}\n" for name, value in plan_variables(made).items())
    return f"{set_}{script}\n"


def prints(*names: str) -> list[str]:
    """Return a command that prints these variables on one line."""
    return ["sh", "-c", "echo " + " ".join(f'"${name}"' for name in names)]


def tuned(made: LaunchPlan, workers: int) -> LaunchPlan:
    """Return the same job's plan where its lock has a tune with so many workers, on 2 CPUs if it asks for none."""
    cpus = made.job.resources.cpus
    found = Tune(input_of(made.job), cpus, workers, prefetch_factor=2, usable_cpus=None if cpus else 2)
    return make_plan(made.job._replace(measured=Measured(None, found, None)))
