"""How a search goes on over several runs of a script: what each is asked, and what follows from what it tells."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.errors import JobFileRejected, NotMeasured
from trainlaunch.inside.tune.task import Setting, Space, next_setting
from trainlaunch.measure.tune.html_report import report
from trainlaunch.measure.tune.result import WIDTH, Tuned, summary, table, trial_line, tuned_document
from trainlaunch.measure.tune.trial import RunEnd, trial_of
from trainlaunch.measure.tune.tuning import Plans, Tuning, limited_space
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.units import MIB

from tests.jobs import plan_with as planned
from tests.measure.tune import made

SAMPLE = {"shape": [3, 64, 64], "dtype": "float32"}
Take = Callable[[Mapping[str, Any]], bool]


class Script:
    """A script with a rate for each number of workers, run as its container would; `dies` with some of them.

    `in_place`: settings change under its loop. `own` is its own number of workers where it takes none from the plan.
    """

    def __init__(
        self, rates: Mapping[int, float], *, in_place: bool = True, dies: Mapping[int, int] | None = None
    ) -> None:
        self.rates, self.in_place, self.dies = rates, in_place, dies or {}
        self.own: int | None = None
        self.fresh_rates: Mapping[int, float] = rates
        self.tasks: list[dict[str, Any]] = []
        self.plans: list[LaunchPlan] = []

    def start(self, plan: LaunchPlan, take: Take, seconds: float) -> RunEnd:
        task = json.loads(dict(plan.inside.settings)["TRAINLAUNCH_TUNE"])
        self.tasks.append(task)
        self.plans.append(plan)
        assert seconds > 0
        workers = plan.num_workers.value if self.own is None else self.own
        own = Setting(workers)
        take(
            self.record("loader", own, key="train.py:9 key", batch_size=64, cpus=2.0, at="train.py:9", **{"class": "L"})
        )
        setting = task.get("setting")
        if setting is not None:
            assert task["loader"] == "train.py:9 key"
            return self.timed(take, Setting(*setting), self.fresh_rates)
        done = [Setting(workers)]
        if self.in_place:
            space = Space(**{**task["space"], "prefetch": tuple(map(tuple, task["space"]["prefetch"]))})
            return self.search(take, space, own)
        return self.timed(take, done[0], self.rates)

    def search(self, take: Take, space: Space, own: Setting) -> RunEnd:
        from trainlaunch.inside.tune.task import Timed

        timed: list[Timed] = []
        setting: Setting | None = own
        while setting is not None:
            ended = self.timed(take, setting, self.rates, last=False)
            if ended.code:
                return ended
            timed.append(Timed(setting, self.rates[setting.num_workers]))
            setting = next_setting(space, timed, 30 - len(timed))
        take({"kind": "tune-end", "rank": 0, "reason": "done"})
        return RunEnd(0, "")

    def timed(self, take: Take, setting: Setting, rates: Mapping[int, float], *, last: bool = True) -> RunEnd:
        take({"kind": "tune-start", "rank": 0, "setting": list(setting)})
        take({"kind": "tune-start", "rank": 1, "setting": [7, 7, None, None]})  # another rank's is nobody's
        if setting.num_workers in self.dies:
            return RunEnd(self.dies[setting.num_workers], "Bus error")
        take(self.record("setting", setting, rate=rates[setting.num_workers], wait_share=0.5, cpus_used=0.4))
        if last:
            take({"kind": "tune-end", "rank": 0, "reason": "seconds"})
        return RunEnd(0, "")

    def record(self, kind: str, setting: Setting, **more: object) -> dict[str, Any]:
        facts = {"changes_in_place": self.in_place, "reason": "" if self.in_place else "the dataset is a stream"}
        return {"kind": f"tune-{kind}", "rank": 0, "setting": list(setting), **facts, **more}


def searched(folder: Path, script: Script, *, budget: float = 180.0, **fields: Any) -> Tuned:
    """Return what a search over a script finds, of a job with 2 CPUs."""
    resources = fields.pop("resources", {"cpus": 2, "memory": "8Gi"})

    def plan(setting: Setting) -> LaunchPlan | None:
        try:
            return plan_of(setting)
        except JobFileRejected:
            return None

    def plan_of(setting: Setting | None) -> LaunchPlan:
        stated = {"num_workers": setting.num_workers, "prefetch_factor": setting.prefetch_factor} if setting else {}
        loader = {"batch_size": 64, "sample": SAMPLE, "max_workers": 8, **stated}
        return planned(folder, "docker", data_loader=loader, resources=resources, **fields)

    as_it_is = plan_of(None)
    limited = limited_space(as_it_is, plan)
    return Tuning(Plans(as_it_is, plan, as_it_is, plan), limited, script.start, budget=budget).run()


RATES = {0: 10.0, 1: 9.0, 2: 18.0, 3: 21.0, 4: 21.1, 5: 21.0, 6: 21.2, 7: 20.0, 8: 20.0}


def test_one_run_searches_and_two_confirm(tmp_path: Path) -> None:
    """The winner and the setting as it is, each in a process of its own with the threads of its plan."""
    script = Script(RATES)
    tuned = searched(tmp_path, script)
    assert tuned.best == Setting(3)  # alike to 4 and 6, with fewer workers
    assert [each.get("setting") for each in script.tasks] == [None, [3, 2, None, None], [0, 2, None, None]]
    assert tuned.confirmed is not None
    assert tuned.was is not None
    assert (tuned.gain, tuned.takes_it) == (2.1, True)
    first = script.tasks[0]
    assert first["space"]["workers"] == [0, 1, 2, 3, 4, 6, 8]
    assert first["space"]["threads"] == [[0, 2], [1, 1], [2, 1], [3, 1], [4, 1], [6, 1], [8, 1]]
    assert first["own_cgroup"] is True
    assert dict(script.plans[1].threads)["OMP_NUM_THREADS"].value == 1
    assert dict(script.plans[2].threads)["OMP_NUM_THREADS"].value == 2
    assert script.plans[1].inside.parts == ("tune",)


def test_a_winner_that_does_not_win_alone_is_not_taken(tmp_path: Path) -> None:
    """In a fresh process the setting as it is was as fast: nothing is changed."""
    script = Script(RATES)
    script.fresh_rates = {**RATES, 0: 25.0}
    tuned = searched(tmp_path, script)
    assert (tuned.best, tuned.confirmed and tuned.confirmed.rate) == (Setting(0), 25.0)
    assert next(summary(tuned)) == "fastest: num_workers 0, as it is"


def test_a_script_that_takes_no_workers_from_the_plan_is_told(tmp_path: Path) -> None:
    """It had its own in the fresh run."""
    script = Script(RATES)
    script.own = 1
    assert searched(tmp_path, script).takes_it is False


def test_a_fresh_process_that_is_late_says_nothing_of_its_setting(tmp_path: Path) -> None:
    """What was timed under one loop stands, and is not confirmed."""

    class Late(Script):
        def timed(self, take: Take, setting: Setting, rates: Mapping[int, float], *, last: bool = True) -> RunEnd:
            return RunEnd(None, "") if last else super().timed(take, setting, rates, last=last)

    tuned = searched(tmp_path, Late(RATES))
    assert (tuned.best, tuned.confirmed, tuned.rates[Setting(3)]) == (Setting(3), None, 21.0)
    assert tuned.unfinished == "a fresh process with 3 workers did not train in time"


def test_a_winner_that_dies_alone_leaves_it_to_the_next(tmp_path: Path) -> None:
    """And the setting as it is stays the first."""

    class Dies(Script):
        def timed(self, take: Take, setting: Setting, rates: Mapping[int, float], *, last: bool = True) -> RunEnd:
            dead = last and setting.num_workers == 3
            return RunEnd(137, "") if dead else super().timed(take, setting, rates, last=last)

    tuned = searched(tmp_path, Dies(RATES))
    assert (tuned.best, tuned.as_it_is, tuned.rates[Setting(3)]) == (Setting(4), Setting(0), 0.0)
    assert tuned.confirmed is not None


def test_where_the_loop_has_a_state_each_setting_has_a_run(tmp_path: Path) -> None:
    """The same search, and no further run to confirm: all were fresh."""
    script = Script(RATES, in_place=False)
    tuned = searched(tmp_path, script)
    asked = [each.get("setting") for each in script.tasks]
    assert asked[:6] == [None, *([workers, 2, None, None] for workers in (1, 2, 3, 4, 6))]
    assert asked[-1] == [0, 2, None, None]
    assert (tuned.best, tuned.confirmed and tuned.confirmed.fresh) == (Setting(3), True)


def test_a_setting_in_which_the_container_dies_is_not_taken(tmp_path: Path) -> None:
    """What was timed before stands, and the reason is said."""
    tuned = searched(tmp_path, Script(RATES, dies={3: 137}))
    assert tuned.best == Setting(2)
    assert tuned.unfinished == "the script ended with exit code 137 while 3 workers ran"
    assert any("exit code 137" in line for line in table(tuned))
    alone = searched(tmp_path, Script(RATES, in_place=False, dies={3: 137}))
    assert alone.best == Setting(4)


@pytest.mark.parametrize(
    ("ended", "records", "words"),
    [
        (RunEnd(3, "ModuleNotFoundError: No module named 'x'"), [], "exit code 3 before a loader was timed"),
        (RunEnd(None, ""), [], "nothing was timed within the budget of 30s"),
        (
            RunEnd(0, ""),
            [{"kind": "tune-end", "rank": 0, "reason": "script", "loaders": [{"at": "a.py:3"}]}],
            "the script ended before a loader was timed",
        ),
        (
            RunEnd(0, ""),
            [
                {"kind": "tune-start", "rank": 0, "setting": [1, 2, []]},
                {"kind": "tune-loader", "rank": 0, "setting": [1, 2, {}], "cpus": {}},
                {"kind": ["tune-end"], "rank": 0},
                {"kind": "tune-end", "rank": 0, "reason": "script", "loaders": 5},
            ],
            "the script ended before a loader was timed",
        ),
        (RunEnd(0, ""), [], "the script ended before a loader was timed"),
        (
            RunEnd(1, ""),
            [{"kind": "tune-end", "rank": 0, "reason": "script", "loaders": [{"at": "a.py:3"}]}],
            "exit code 1 before a loader was timed",
        ),
        (
            RunEnd(0, ""),
            [{"kind": "tune-end", "rank": 0, "reason": "nothing", "loaders": [{"at": "a.py:3"}]}],
            "nothing was timed within the budget of 30s",
        ),
    ],
    ids=["fails", "late", "short", "not-ours", "none", "raises", "only-evaluates"],
)
def test_nothing_to_time_is_one_error(tmp_path: Path, ended: RunEnd, records: list[dict[str, Any]], words: str) -> None:
    """With the script's own last words."""

    class Silent(Script):
        def start(self, plan: LaunchPlan, take: Take, seconds: float) -> RunEnd:
            for each in records:
                take(each)
            return ended

    with pytest.raises(NotMeasured) as raised:
        searched(tmp_path, Silent(RATES), budget=30)
    (said,) = raised.value.diagnostics
    assert words in said.message
    assert ended.log in said.why


def test_a_workers_own_error_is_what_its_row_shows() -> None:
    """Torch puts its traceback around it."""
    text = (
        "ValueError: Caught ValueError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
    )
    failed = made.trial(2, 0.0, error=f'{text}  File "train.py", line 3\nValueError: a handle that no worker has\n')
    assert trial_line(failed, made.LOADER).endswith("  ValueError: a handle that no worker has")
    plain = made.trial(2, 0.0, error="RuntimeError: it takes several lines\nto say so")
    assert trial_line(plain, made.LOADER).endswith("  RuntimeError: it takes several lines")
    assert len(trial_line(made.trial(2, 0.0, error="x" * 500), made.LOADER)) < WIDTH


def test_a_loader_without_an_optimizer_is_said_to_be_one() -> None:
    """Below the table, and in the document."""
    told = made.tuned(made.LOADER._replace(stepped=False))
    assert any("no optimizer of torch stepped" in line for line in summary(told))
    assert not any("no optimizer of torch stepped" in line for line in summary(made.tuned()))


def test_what_does_not_fit_is_not_tried(tmp_path: Path) -> None:
    """Neither in a stated /dev/shm nor beside the processes' memory; the largest prefetch factor has its own bound."""
    script = Script(RATES)
    tuned = searched(tmp_path, script, shm_size="31Mi")
    assert script.tasks[0]["space"]["workers"] == [0, 1, 2, 3]
    assert script.tasks[0]["space"]["prefetch"] == [[4, 1]]
    assert (tuned.best, tuned.limit.what) == (Setting(3), "shm_size")
    script = Script(RATES)
    searched(tmp_path, script, resources={"cpus": 2, "memory": "800Mi"})
    assert script.tasks[0]["space"]["workers"] == [0, 1, 2, 3, 4]


def test_a_limit_that_leaves_nothing_to_try_is_said(tmp_path: Path) -> None:
    """Not that storage were slow."""
    alone = searched(tmp_path, Script(RATES), resources={"cpus": 2, "memory": "256Mi"})
    assert (alone.best, alone.limit.what) == (Setting(0), "memory")
    assert "not all was timed: memory leaves no other number of workers to try" in list(summary(alone))


def test_no_time_is_left_to_confirm(tmp_path: Path) -> None:
    """Which the result says; a winner that isn't the setting as it is has a minute more."""

    class Slow(Script):
        def search(self, take: Take, space: Space, own: Setting) -> RunEnd:
            time.sleep(2.1)
            return super().search(take, space, own)

    tuned = searched(tmp_path, Slow(dict.fromkeys(RATES, 10.0)), budget=2.0)
    assert tuned.confirmed is None
    assert any("not confirmed in a fresh run" in line for line in summary(tuned))


@pytest.mark.parametrize(("rate", "said"), [(24.0, ""), (9.2, ", 0.40 × its rate above")])
def test_a_fresh_run_that_is_much_slower_confirms_nothing(rate: float, said: str) -> None:
    """Its own rate stands beside that under the script's loop."""
    fresh = made.trial(14, rate, 4, fresh=True)
    assert f"in a fresh run: {rate:.2f} batches/s, as it is 2.20{said}" in summary(made.tuned(confirmed=fresh))


def test_the_table_fits_eighty_columns_and_the_document_has_it_all(tmp_path: Path) -> None:
    """Rows by workers, a star at the one to take."""
    tuned = searched(tmp_path, Script({key: rate * 98_765 for key, rate in RATES.items()}))
    lines = list(table(tuned))
    assert max(map(len, lines)) < WIDTH
    assert [line for line in lines if line.startswith("*")] == [
        next(line for line in lines if line.split()[1:2] == ["3"])
    ]
    document = json.loads(json.dumps(tuned_document(tuned)))
    assert document["chosen"] == {"num_workers": 3, "prefetch_factor": 2, "pin_memory": None, "threads": None}
    assert len(document["timings"]) == len(tuned.trials)
    assert document["limit"]["what"] == "io"


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"setting": [1, 2], "rate": 1},
        {"setting": [1, 2, None, None]},
        {"setting": [-1, 2, None, None], "rate": 1.0},
        {"setting": [True, 2, None, None], "rate": 1.0},
        {"setting": [1, 2, "yes", None], "rate": 1.0},
        {"setting": [1, 2, None, None], "rate": float("nan")},
        {"setting": [1, 2, None, None], "rate": float("inf")},
        {"setting": [1, 2, None, None], "rate": "1"},
        {"setting": {"a": 1}, "rate": 1.0},
    ],
)
def test_records_that_are_none_are_left_out(record: dict[str, Any]) -> None:
    """They come from the job's container."""
    assert trial_of(record, fresh=False) is None


def test_figures_that_are_none_cost_only_themselves() -> None:
    """A rate is enough."""
    figures = {"shm_peak": -1, "cpus_used": "2", "wait_share": 7.0, "gpu_busy": [1]}
    odd = {"setting": [1, 2, None, None], "rate": 2.0, **figures}
    trial = trial_of(odd, fresh=True)
    assert trial is not None
    assert (trial.shm_peak, trial.cpus_used, trial.wait_share, trial.gpu_busy) == (0, None, 1.0, None)
    assert trial_of({"setting": [1, 2, None, None], "rate": 2.0, "shm_peak": MIB}, fresh=True) is not None


def test_one_setting_alone_is_the_fastest_of_nothing(tmp_path: Path) -> None:
    """It isn't called so, is not chosen, and has no star and no plots of one dot."""
    alone = searched(tmp_path, Script(RATES), resources={"cpus": 2, "memory": "256Mi"})
    assert not alone.compared
    assert next(summary(alone)) == "nothing was compared: num_workers 0 is the only setting that was timed"
    assert not any("fastest" in line for line in summary(alone))
    assert not any(line.startswith("*") for line in table(alone))
    assert tuned_document(alone)["chosen"] is None
    assert "<svg" not in report(alone)
    assert "<svg" in report(searched(tmp_path, Script(RATES)))


def test_what_threads_bring_alone_is_told_apart(tmp_path: Path) -> None:
    """Of 3 × as it is, 2 × came of the threads, with the script's own workers."""
    rates = {Setting(0, threads=2): 10.0, Setting(0, threads=1): 20.0, Setting(2, threads=1): 30.0}
    trials = tuple(made.trial(0, rate)._replace(setting=setting) for setting, rate in rates.items())
    tuned = made.tuned(trials=trials, best=Setting(2, threads=1), confirmed=None, was=None, planned_threads=1)
    assert (tuned.gain, tuned.gain_of_threads, tuned.own_threads) == (3.0, 2.0, None)
    assert "1 thread beside num_workers 0 alone: 2.00 × as it is; the rest is the workers'" in list(summary(tuned))
    assert tuned._replace(planned_threads=2).own_threads == 1
    rows = [line.lstrip("*").split() for line in table(tuned)]
    assert [each[2] for each in rows][1:] == ["1", "2", "1"]
