"""The runs that `tune` makes: under a name of their own, with the job's own limits, shown only where one fails."""

from __future__ import annotations

import argparse
import math
import shlex
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trainlaunch.measure.measuring_fields import PREPARES
from trainlaunch.measure.tune.hearing import Ended

if TYPE_CHECKING:
    from trainlaunch.plan.launch_plan import LaunchPlan
    from trainlaunch.run.kubernetes.client import Cluster

KEPT = 64  # pieces of output: the last lines are shown where a run fails


class Runs:
    """Makes runs that measure `job`, one after the other. Lines of ours about them go to `say`, each once."""

    def __init__(self, args: argparse.Namespace, say: Callable[[str], None], cluster: Cluster | None, job: str) -> None:
        self._typed = shlex.join(["trainlaunch", *args.words])
        self._say, self._cluster, self._job = say, cluster, job
        self._said: set[str] = set()

    def start(self, plan: LaunchPlan, take: Callable[[Mapping[str, Any]], bool], seconds: float) -> Ended:
        """Run `plan` to its end, or until `take` returns True, for `seconds` at most once it is scheduled.

        Raises KeyboardInterrupt where the user ended it, and TargetUnavailable where it can't be started.
        """
        from trainlaunch.measure.measuring_run import Shown, run_measuring
        from trainlaunch.run.base.secret_values import Redactor, values_here

        output: deque[bytes] = deque(maxlen=KEPT)
        limit = math.ceil(seconds) + (PREPARES if self._cluster is not None else 0)
        limited = plan._replace(job=plan.job._replace(active_deadline=limit), measures=self._job)
        ran = run_measuring(limited, take, Shown(output.append, self._say_once), self._typed, self._cluster)
        if ran.interrupted:
            self._say(f"{ran.interrupted}: nothing more is timed, and nothing is written")
            raise KeyboardInterrupt
        words = Redactor(values_here(plan).items())(b"".join(output).decode(errors="replace"))
        return Ended(None if ran.deadline else ran.exit_code, words)

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(text)
