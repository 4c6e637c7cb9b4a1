"""The field reports of tests/cases get their own cause first, whatever their logs went through."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product

import pytest
from trainlaunch.diagnose import all_causes
from trainlaunch.diagnose.base.case import CERTAIN
from trainlaunch.diagnose.base.evidence import Evidence

from tests.diagnose.corpus import CASES, DRESSES, dressed, evidence_for, generated, harmless, rows, rows_of
from tests.sampling import diagonals, every

ROWS = rows()
ENDS = rows_of(CASES / "ends.jsonl")


def first(evidence: Evidence) -> str:
    """Return the first symptom, `` where nothing is found."""
    return next((each.symptom for each in all_causes(evidence)), "")


@pytest.mark.parametrize("name", ROWS)
def test_a_field_report_gets_its_cause_first(name: str) -> None:
    """The row's own field has what counts as right."""
    assert first(evidence_for(ROWS[name])) in ROWS[name]["symptom"]


@pytest.mark.parametrize("name", every(6, ROWS))
def test_a_cause_is_found_among_ten_thousand_harmless_lines_on_either_side(name: str) -> None:
    """The first cause is often far above the end, and its place is told by its line."""
    row = ROWS[name]
    found = all_causes(evidence_for(row, harmless(10_000) + row["input"] + harmless(10_000, seed=3)))
    assert found[0].symptom in row["symptom"]
    lines = [seen.line for seen in found[0].evidence if seen.source == "log"]
    assert all(10_000 < line <= 10_000 + len(row["input"].splitlines()) for line in lines)


def answered_wrong(put: Callable[[str], str]) -> list[tuple[str, list[str]]]:
    """Return the ends that are not told by their own words, with what is said of them."""
    wrong = []
    for name, row in ENDS.items():
        causes = [each for each in all_causes(evidence_for(row, put(row["input"]))) if each.symptom != "unknown"]
        named = [each.symptom for each in causes]
        silent = row["nothing"] and all(each.confidence != CERTAIN for each in causes)
        if not silent and not set(named[:1]) & set(row["symptom"]):
            wrong.append((name, named))
    return wrong


@pytest.mark.parametrize("dress", ["plain", pytest.param("docker file", marks=pytest.mark.long)])
def test_an_end_is_told_by_its_own_words_or_not_at_all(dress: str) -> None:
    """What was quoted, caught, warned of, or printed as help names nothing certain."""
    assert answered_wrong(lambda log: dressed(log, dress)) == []


def not_found_in(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Return the rows whose cause isn't the first in their dress, with what is."""
    wrong = []
    for name, dress in pairs:
        log = dressed(harmless(20) + ROWS[name]["input"] + harmless(20, seed=5), dress)
        symptom = first(evidence_for(ROWS[name], log))
        if symptom not in ROWS[name]["symptom"]:
            wrong.append((name, dress, symptom))
    return wrong


def test_a_cause_is_found_through_what_others_put_around_its_lines() -> None:
    """Engines, clusters, launchers and terminals: each of them around four causes, each cause in two of them."""
    assert not_found_in(diagonals(9, ROWS, list(DRESSES))) == []


@pytest.mark.long
def test_every_cause_is_found_through_everything_that_others_put_around_its_lines() -> None:
    """The whole product."""
    assert not_found_in(product(ROWS, DRESSES)) == []


@pytest.mark.parametrize("dress", DRESSES)
def test_harmless_lines_name_nothing(dress: str) -> None:
    """Without an exit code, and with 0."""
    log = dressed(harmless(500), dress)
    assert all_causes(Evidence(None, log)) == ()
    assert all_causes(Evidence(0, log)) == ()


@pytest.mark.parametrize("name", ROWS)
def test_no_fix_is_a_field_that_its_target_refuses(name: str) -> None:
    """A pod has no ulimits, a host no shm_size."""
    row = ROWS[name]
    for target, refused in (("kubernetes", "ulimits: {"), ("local", "set shm_size")):
        row = {**row, "inspect": {**row.get("inspect", {}), "target": target}}
        for found in all_causes(evidence_for(row)):
            assert refused not in found.fix.partition("; on Kubernetes")[0]


FIELDS = re.compile(
    r"\b(?:resources|data_loader|torchrun|kubernetes|restart)\.\w|shm_size|shm_extra|set env: \{|ulimits: \{"
    r"|active_deadline"
    r"|working_dir|pull_policy"
)


@pytest.mark.parametrize("target", ["docker", "kubernetes", "local", "run"])
def test_without_a_job_file_no_way_out_is_a_field_of_one(target: str) -> None:
    """Whoever has a log from elsewhere has an engine, a cluster or a shell to type into; `run` has its --set."""
    known, run = ("docker", True) if target == "run" else (target, False)
    rows = [{**row, "inspect": {**(row.get("inspect") or {}), "target": known}} for row in ROWS.values()]
    found = [each for row in rows for each in all_causes(replace(evidence_for(row), has_job=False, by_run=run))]
    fixes = [re.sub(r"`--set [^`]*`", "", each.fix.partition("; on Kubernetes")[0]) for each in found]
    assert [each for each in fixes if FIELDS.search(each)] == []


def test_sizes_and_variables_are_told_as_flags() -> None:
    """As they are typed."""
    full = "RuntimeError: unable to allocate shared memory(shm) for file </torch_1>: No space left on device (28)\n"
    known = Evidence(1, full, shm_size=64 << 20, memory=4 << 30, has_job=False)
    (docker,) = all_causes(known)
    (pod,) = all_causes(replace(known, target="kubernetes"))
    (crash,) = all_causes(Evidence(139, has_job=False))
    assert (
        docker.fix == "start the container with `--shm-size=1g` and at least `--memory=4160m`"
        or "--memory=" in docker.fix
    )
    assert "sizeLimit: 1Gi at /dev/shm, and set limits.memory" in pod.fix
    assert crash.fix == "set PYTHONFAULTHANDLER=1 and run again for a traceback"


def test_inspect_shm_size_is_not_believed_with_ipc_host() -> None:
    """With ipc host the engine still reports 64 MiB, which no process sees: neither text names it."""
    evidence = Evidence(exit_code=135, ipc_mode="host", private_shm=False, shm_size=64 << 20)
    (diagnosis,) = all_causes(evidence)
    assert "64 MiB" not in diagnosis.sentence + diagnosis.fix
    assert "host's /dev/shm" in diagnosis.sentence
    assert "ls -l /dev/shm" in diagnosis.fix


@pytest.mark.parametrize("name", every(9, ROWS))
def test_a_cause_is_found_in_megabytes_of_which_no_two_lines_are_alike(name: str) -> None:
    """Such a log is read in another way; causes, their lines and their tracebacks are the same."""
    row = ROWS[name]
    before, after = generated(40_000), generated(5_000, seed=7)
    found = all_causes(evidence_for(row, before + row["input"] + after))
    plain = all_causes(evidence_for(row, harmless(10) + row["input"] + harmless(10)))
    assert [each.symptom for each in found] == [each.symptom for each in plain]
    lines = [[seen.line for seen in each.evidence if seen.source == "log"] for each in found]
    assert lines == [[seen.line - 10 + 40_000 for seen in each.evidence if seen.source == "log"] for each in plain]


def test_a_command_of_run_gets_its_options() -> None:
    """`run` has no job file, and no engine's flags are typed to it."""
    run = Evidence(137, oom_killed=True, memory=4 << 30, has_job=False, by_run=True)
    full = "RuntimeError: unable to write to file </torch_1_2_3>: No space left on device (28)"
    fixes = [each.fix for each in (*all_causes(run), *all_causes(replace(run, exit_code=1, log=full, oom_killed=None)))]
    assert [each.partition(",")[0] for each in fixes[:2]] == [
        "add `--memory 6Gi`",
        "add `--set shm_size=1Gi --memory 5Gi`",
    ]
