"""Runs a job's script to find its fastest setting: once where settings change under its loop, else once for each."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from trainlaunch.inside.tune.task import Setting, Space, next_setting
from trainlaunch.measure.tune.limit import agreed_limit
from trainlaunch.measure.tune.result import Tuned, best_of, middle
from trainlaunch.measure.tune.trial import RecordCollector, RunEnd, Trial, TunedLoader, never_timed
from trainlaunch.plan.instrumentation import TUNE
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.lock_overrides import MATH
from trainlaunch.plan.workers_and_threads import whole_cpus
from trainlaunch.units import counted, format_duration

LADDER = (0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128)
PREFETCH = (4, 8)

# The plan of the job with a setting; None where the job can't have it.
PlanWith = Callable[[Setting], LaunchPlan | None]
VARIABLE = "TRAINLAUNCH_TUNE"
OVER = 60.0  # seconds beyond the budget: for a slow start of the script, and for the run that confirms
EACH = 0.035  # of the budget, for one setting
MIN_SECONDS, MAX_SECONDS = 1.0, 8.0  # seconds for one setting
CONFIRMED = 2  # settings at most, where the first dies in a process of its own


class Limited(NamedTuple):
    """A space, and what ends it: max_workers, shm_size or memory."""

    space: Space
    ended_by: str


def limited_space(as_it_is: LaunchPlan, plan_with: PlanWith) -> Limited:
    """Return what a job may try; `as_it_is` is its plan without a setting."""
    job = as_it_is.job
    ceiling = job.ceiling("num_workers")
    most = min(job.data_loader.max_workers, ceiling.value if ceiling else job.data_loader.max_workers)
    prefetch = job.data_loader.loaders[0].prefetch_factor
    wanted = [*(each for each in LADDER if each < most), most]
    plans = {each: _fitting(plan_with, Setting(each, prefetch)) for each in wanted}
    fitting = [each for each in wanted if plans[each] is not None]
    ended_by = "max_workers" if fitting and fitting[-1] == most else _ended_by(as_it_is)
    more = []
    for factor in PREFETCH:
        held = [each for each in fitting if each and _fitting(plan_with, Setting(each, factor)) is not None]
        if factor > prefetch and held:
            more.append((factor, held[-1]))
    cpus = whole_cpus(job) or most
    space = Space(tuple(fitting), tuple(more), bool(job.resources.gpus), max(1, cpus // as_it_is.ranks.value))
    return Limited(space._replace(threads=_threads_by_workers(space, plan_with)), ended_by)


def _threads_by_workers(space: Space, plan_with: PlanWith) -> tuple[tuple[int, int], ...] | None:
    """Return torch's threads beside each number of workers, as the plan has them; None where the job sets its own."""
    found = []
    for workers in space.workers:
        plan = plan_with(Setting(workers))
        if plan is None or plan.job.data_loader.inject == "off" or any(name in plan.job.env for name in MATH):
            return None
        threads = dict(plan.threads).get(MATH[0])
        if threads is not None:
            found.append((workers, threads.value))
    return tuple(found)


def _fitting(plan_with: PlanWith, setting: Setting) -> LaunchPlan | None:
    """Return the plan of a setting that fits in every epoch, with the estimated memory of its processes."""
    plan = plan_with(setting)
    if plan is None:
        return None
    shm, limit = plan.shm, plan.memory.limit
    held = limit is None or shm.need + plan.memory.working_set.value <= limit
    return plan if held and shm.multi_epoch <= max(shm.size.value, shm.need) else None


def _ended_by(plan: LaunchPlan) -> str:
    return "shm_size" if plan.job.shm_size is not None else "memory"


class Start(Protocol):
    """Runs a plan on its target."""

    def __call__(self, plan: LaunchPlan, take: Callable[[Mapping[str, Any]], bool], seconds: float) -> RunEnd:
        """Run `plan` to its end; stop it once `take` returns True for a record, or after `seconds`."""


class Plans(NamedTuple):
    """The plans of a job: as it is and with a setting, and those of the runs that time it so."""

    as_it_is: LaunchPlan
    plan_with: PlanWith
    measuring: LaunchPlan
    measuring_with: PlanWith


class Tuning:
    """One job's search within `budget` seconds.

    `begins` is told of each run, `times` of each setting that a run begins to time, `seen` of each timing.
    """

    def __init__(self, plans: Plans, limited: Limited, start: Start, *, budget: float) -> None:
        self._plans, self._limited, self._start = plans, limited, start
        self._until = time.monotonic() + budget
        self._budget = budget
        self._each = min(MAX_SECONDS, max(MIN_SECONDS, budget * EACH))
        self._trials: list[Trial] = []
        self._run_seconds = 0.0
        self._unfinished = ""
        self._script_ended = False  # before its first run had timed all
        self._takes_it: bool | None = None
        self.seen: Callable[[Trial, TunedLoader], None] = lambda *_: None
        self.times: Callable[[Setting], None] = lambda _: None
        self.begins: Callable[[str], None] = lambda _: None

    def run(self) -> Tuned:
        """Time all that there is time for. Raises NotMeasured where the script gives nothing to time."""
        self.begins("the script, with the setting that it has")
        loader = self._first_run()
        if loader.changes_in_place and not self._script_ended:
            best, confirmed, was = self._confirm(loader)
        else:
            self._one_by_one(loader)
            best, confirmed, was = self._of_own_runs(loader)
        space = self._limited.space
        most = max(space.workers, default=0)
        if {*space.workers} <= {self._trials[0].setting.num_workers}:
            self._unfinished = f"{self._limited.ended_by} leaves no other number of workers to try"
        plan = self._plans.as_it_is
        return Tuned(
            job=plan.job.name,
            target=plan.target,
            ranks=plan.ranks.value,
            loader=loader,
            trials=tuple(self._trials),
            best=best,
            limit=agreed_limit(
                [each for each in (confirmed, middle(self._trials, best)) if each is not None],
                loader,
                at_the_end=self._limited.ended_by if best.num_workers >= most else "",
            ),
            confirmed=confirmed,
            was=was,
            takes_it=self._takes_it,
            planned_threads=dict(space.threads or ()).get(best.num_workers),
            unfinished=self._unfinished,
        )

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _first_run(self) -> TunedLoader:
        heard = RecordCollector(self.seen, self.times, fresh=False)
        ended = self._start(self._with_task(self._plans.measuring, self._task()), heard.take, self._budget + OVER)
        ending = time.monotonic() - heard.ended_at if heard.ended_at else 0.0
        self._trials += heard.trials
        self._run_seconds = heard.startup + self._each * 1.3 + ending
        if heard.loader is None or not any(each.rate for each in self._trials):
            raise never_timed(self._plans.as_it_is, heard, ended, self._budget)
        if heard.ended == "time":
            self._unfinished = f"--budget {format_duration(round(self._budget) * 3)} has room for more settings"
        elif ended.code == 0 and not heard.complete:
            self._script_ended = True
        elif not heard.complete:
            self._died(heard, ended)
        return heard.loader

    def _died(self, heard: RecordCollector, ended: RunEnd) -> None:
        """Note the setting that a run ended in before it had told all."""
        what = "the budget was over" if ended.code is None else f"the script ended with exit code {ended.code}"
        if heard.now is not None and ended.code is not None:
            self._trials.append(Trial(heard.now, 0.0, 0.0, 0, error=what))
        workers = "" if heard.now is None else f" while {counted(heard.now.num_workers, 'worker')} ran"
        self._unfinished = f"{what}{workers}"

    def _confirm(self, loader: TunedLoader) -> tuple[Setting, Trial | None, Trial | None]:
        """Return the best setting with its timing in a process of its own, and that of the setting as it is."""
        first = self._trials[0].setting
        for _ in range(CONFIRMED):
            best = best_of(tuple(self._trials))
            if self._left() < self._run_seconds and (best == first or self._run_seconds > OVER):
                return best, None, None
            confirmed = self._fresh(best, loader)
            if confirmed is None:
                return best, None, None
            if confirmed.rate:
                break
            dead = [each._replace(rate=0.0, error=confirmed.error) for each in self._trials]
            pairs = zip(self._trials, dead, strict=True)
            self._trials = [gone if each.setting == best else each for each, gone in pairs]
        else:
            return best_of(tuple(self._trials)), None, None
        if best == first or self._left() < self._run_seconds:
            return best, confirmed, confirmed if best == first else None
        was = self._fresh(first, loader)
        if was is not None and was.rate >= confirmed.rate:
            return first, was, was
        return best, confirmed, was if was is not None and was.rate else None

    def _of_own_runs(self, loader: TunedLoader) -> tuple[Setting, Trial | None, Trial | None]:
        """Return what _confirm does, from timings in processes of their own."""
        best = best_of(tuple(self._trials))
        last = {each.setting: each for each in self._trials if each.rate and each.fresh}
        if best not in last and loader.changes_in_place:
            return self._confirm(loader)
        return best, last.get(best), last.get(self._trials[0].setting)

    def _one_by_one(self, loader: TunedLoader) -> None:
        while True:
            left = int(self._left() / max(self._run_seconds, 0.1))
            setting = next_setting(self._limited.space, [each.timed for each in self._trials], left)
            if setting is None:
                if len({each.setting for each in self._trials}) < len(self._limited.space.workers) and left <= 1:
                    enough = format_duration(round(self._run_seconds * (len(self._limited.space.workers) + 4)))
                    self._unfinished = f"each setting is a run of its own here; --budget {enough} has room for all"
                return
            trial = self._fresh(setting, loader)
            if trial is None:
                return
            self._trials.append(trial)

    def _fresh(self, setting: Setting, loader: TunedLoader) -> Trial | None:
        """Return the timing of a setting in a process of its own, with its threads from the start.

        None where that process was too late, which tells nothing of the setting.
        """
        own = setting == self._trials[0].setting
        self.begins(f"a fresh process with {counted(setting.num_workers, 'worker')}")
        plan = self._plans.measuring if own else self._plans.measuring_with(setting)
        if plan is None:
            return Trial(setting, 0.0, 0.0, 0, error="the job can't have this setting")
        heard = RecordCollector(self.seen, self.times, fresh=True)
        task = self._task(setting=list(setting), loader=loader.key)
        seconds = max(self._left(), 2 * self._run_seconds) + self._each
        ended = self._start(self._with_task(plan, task), heard.take, seconds)
        if not own and heard.loader is not None:
            self._takes_it = heard.loader.setting.num_workers == setting.num_workers
        if heard.trials:
            return heard.trials[-1]
        if ended.code is None:
            self._unfinished = f"a fresh process with {counted(setting.num_workers, 'worker')} did not train in time"
            return None
        why = f"with exit code {ended.code}" if ended.code else "too soon to be timed"
        return Trial(setting, 0.0, 0.0, 0, error=f"the script ended {why}", fresh=True)

    def _task(self, **more: object) -> str:
        space = self._limited.space
        return json.dumps(
            {
                "each": self._each,
                "seconds": self._budget,
                "space": space._asdict(),
                "own_cgroup": self._plans.as_it_is.target_record.starts_container,
                **more,
            }
        )

    @staticmethod
    def _with_task(plan: LaunchPlan, task: str) -> LaunchPlan:
        return plan._replace(inside=plan.inside.with_part(TUNE, (VARIABLE, task)))
