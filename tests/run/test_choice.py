"""Which runs RUN means, whose they are, and what `down` takes of them."""

from __future__ import annotations

import pytest
from trainlaunch.errors import UsageError
from trainlaunch.run.base.run_query import Run, RunQuery, check_argument, matching, removable


def known(job: str, run: str, name: str = "", *, owner: str = "me", created: float = 0.0, running: bool = False) -> Run:
    """Return a run as a target would tell of it; those without a name have their job's."""
    names = frozenset({name or job, run})
    return Run("docker", job, run, names, owner, owner == "me", running, created, "exited", held=None)


OLD = known("mnist", "3f9a2c11", "mnist-3f9a2c11", created=1.0)
NEW = known("mnist", "3f9a77aa", created=2.0)
OTHER_NAME = known("mnist", "5dc0ffee", "second", created=3.0)
OTHER_JOB = known("cifar", "abcdef01", created=4.0)
ALL = (OLD, NEW, OTHER_NAME, OTHER_JOB)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("mnist", (OTHER_NAME, NEW, OLD)),
        ("second", (OTHER_NAME,)),
        ("mnist-3f9a2c11", (OLD,)),
        ("3f9a2c11", (OLD,)),
        ("3f9a2", (OLD,)),
        ("5dc0", (OTHER_NAME,)),
        ("5dc", ()),
        ("mni", ()),
        ("5DC0", ()),
    ],
)
def test_a_name_then_a_job_then_the_start_of_an_id(typed: str, meant: tuple[Run, ...]) -> None:
    """Newest first; three digits are no id, and letters beyond f neither."""
    assert matching(ALL, RunQuery(typed)) == meant


def test_an_exact_name_wins_over_a_job_of_that_name() -> None:
    """A run that `--name cifar` gave its name is not the runs of job cifar."""
    named = known("mnist", "11112222", "cifar")
    assert matching((*ALL, named), RunQuery("cifar")) == (named,)
    assert matching((*ALL, named), RunQuery("job.yaml", "cifar")) == (OTHER_JOB,)


def test_a_job_wins_over_the_start_of_an_id() -> None:
    """A job may be called `beef`."""
    beef, run = known("beef", "00001111"), known("mnist", "beef0000")
    assert matching((beef, run), RunQuery("beef")) == (beef,)
    assert matching((beef, run), RunQuery("beef0")) == (run,)


def test_the_start_of_two_ids_is_refused_with_a_list() -> None:
    """By every verb: which of them is meant would be a guess."""
    with pytest.raises(UsageError) as refused:
        matching(ALL, RunQuery("3f9a"))
    assert refused.value.exit_code == 2
    assert "3f9a2c11" in refused.value.diagnostics[0].why
    assert "3f9a77aa" in refused.value.diagnostics[0].why


@pytest.mark.parametrize("typed", ["", "*", " ", "?", "a b", "a*", "-x", "a\n", "../x", "x" * 300, "a\x1b[0m"])
def test_a_run_that_nothing_is_called_is_usage(typed: str) -> None:
    """An engine takes an empty label filter, and a folder of runs a `*`, for every job's runs."""
    with pytest.raises(UsageError) as refused:
        check_argument(typed)
    assert refused.value.diagnostics[0].code == "TL118"


def test_down_takes_the_one_that_runs_else_the_newest() -> None:
    """Ended ones are left while one runs."""
    assert removable((NEW._replace(running=False), OLD._replace(running=True)), "mnist").id == OLD.id
    assert removable((NEW, OLD), "mnist") == NEW


@pytest.mark.parametrize(
    "found",
    [
        (NEW._replace(running=True), OLD._replace(running=True)),
        (NEW._replace(running=True), OLD._replace(owner="bob", is_mine=False)),
        (NEW._replace(owner="", is_mine=False),),
    ],
)
def test_down_refuses_where_it_would_guess_or_take_somebody_elses(found: tuple[Run, ...]) -> None:
    """TL119 with each run, its state and its owner."""
    with pytest.raises(UsageError) as refused:
        removable(found, "mnist")
    (problem,) = refused.value.diagnostics
    assert (refused.value.exit_code, problem.code) == (2, "TL119")
    assert all(each.id in problem.why and (each.owner or "no owner") in problem.why for each in found)


def test_a_long_list_is_cut() -> None:
    """Ten, and how many more."""
    many = tuple(known("mnist", f"{each:08x}", running=True) for each in range(40))
    with pytest.raises(UsageError) as refused:
        removable(many, "mnist")
    assert refused.value.diagnostics[0].why.count("\n") == 11
    assert "and 30 more" in refused.value.diagnostics[0].why
