"""The text of the wrapper and of the health check, without running it."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from trainlaunch.container.kubernetes import IDENTITY
from trainlaunch.container.preflight import STOP_MARKER, forwarded_signals, health_text, preflight_text
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.workers_and_threads import CPUS_PER_WORKER_ON_CPU, MIN_CPUS_FOR_WORKERS
from trainlaunch.rules import check_plan
from trainlaunch.templating.environment import TEMPLATES, constant_text

from tests.preflight.plans import LOADER, automatic, plan

TOKENS = ("{num_workers}", "--prefetch={prefetch_factor}", "{batch_size}", "n={nproc_per_node}")
LITERALS = tuple(each.replace("{", "{{").replace("}", "}}") for each in TOKENS)
ON_GPUS: dict[str, Any] = {"resources": {"gpus": 4, "cpus": 64, "memory": "256Gi"}, "torchrun": {}}
PLANS = {
    "stated": plan(),
    "none": plan(loader={"num_workers": 0}),
    "off": plan(loader={"inject": "off"}),
    "automatic": automatic(resources={"cpus": 16, "memory": "32Gi"}),
    "automatic-off": automatic(loader={"inject": "off"}, command=list(TOKENS)),
    "two-loaders": automatic(
        loader={"timeout": 30, "persistent_workers": True, "loaders": {"a": {}, "b": {"num_workers": 1}}}
    ),
    "unsized": plan(loader={"sample": None}),
    "gpus": automatic(**ON_GPUS, command=[*TOKENS, *LITERALS], loader={"loaders": {"a": {}, "b": {"num_workers": 1}}}),
    "script": automatic(command=None, script="python train.py\n", resources={"cpus": 16}, stop_signal="SIGRTMIN+3"),
    "nodes": automatic(target="kubernetes", resources={"cpus": 8, "memory": "8Gi"}, torchrun={"nnodes": 3}),
}
EVERY_PLAN = pytest.mark.parametrize("each", PLANS.values(), ids=PLANS)


SCRIPTS = ("preflight.sh", "health.sh")
CLEAN = (*SCRIPTS, "live.sh")


@EVERY_PLAN
def test_wrapper_is_short(each: LaunchPlan) -> None:
    """Every reviewer of a manifest reads it; the first lines are the job's numbers, all others are the same."""
    lines = preflight_text(each).splitlines()
    assert len(lines) <= 130
    assert max(map(len, lines[3:])) <= 120


@EVERY_PLAN
def test_texts_are_a_prologue_before_lines_of_the_constant_script(each: LaunchPlan) -> None:
    """Two manifests differ in their prologue and their spec alone."""
    for name, text in zip(SCRIPTS, (preflight_text(each), health_text(each)), strict=True):
        lines, constant = text.splitlines(), constant_text(name).splitlines()
        start = lines.index(constant[0])
        prologue = [each for each in lines[:start] if not each.startswith("tl_")]
        assert prologue == []
        left = iter(constant)
        assert all(line in left for line in lines[start:])  # in their order


@pytest.mark.parametrize("name", CLEAN)
def test_scripts_are_shellcheck_clean(name: str) -> None:
    """The real files are POSIX sh, as shellcheck sees it, at its strictest level."""
    checked = subprocess.run(
        ["shellcheck", "--shell=sh", "--severity=style", str(TEMPLATES / name)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout) == (0, "")


def test_numbers_of_the_constant_script_are_those_of_the_plan() -> None:
    """The rule of workers on CPUs stands in the plan and, for what the container really has, in the script."""
    script = constant_text("preflight.sh")
    assert f"tl_cpus < {MIN_CPUS_FOR_WORKERS} ? 0 : tl_cpus / ({CPUS_PER_WORKER_ON_CPU} * tl_ranks)" in script


@EVERY_PLAN
def test_texts_end_with_one_line_break_and_hold_no_tab_or_trailing_blank(each: LaunchPlan) -> None:
    """So that a YAML literal block can hold them as they are."""
    for text in (preflight_text(each), health_text(each)):
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert "\t" not in text
        assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_texts_are_the_same_bytes_on_every_target() -> None:
    """What was proved on one target is proved on all."""
    fields: dict[str, Any] = {"resources": {"cpus": 4, "memory": "8Gi"}, "script": "true", "command": None}
    plans = [automatic(target=target, **fields) for target in ("docker", "compose", "kubernetes")]
    assert len({preflight_text(each) for each in plans}) == 1
    assert len({health_text(each) for each in plans}) == 1


def test_wrapper_sets_no_variable_that_a_job_could_have() -> None:
    """An assignment to an inherited variable would change what the job gets, so all names have our own prefix."""
    lines = "\n".join(preflight_text(each) for each in PLANS.values()).splitlines()
    words = " ".join(each for each in lines if not each.startswith("#")).replace("=", "= ").split()
    assigned = {word[:-1] for word in words if word.endswith("=") and word[:-1].isidentifier()}
    others = {name for name in assigned if not name.startswith(("tl_", "TRAINLAUNCH_"))}
    assert others == {"IFS", "PET_RDZV_CONF", *IDENTITY}  # and by `tl_set`, thread variables that nobody set


def test_stop_marker_stands_before_the_last_sentence() -> None:
    """`up` tells the preflight's 75 and 78 from the job's own by it."""
    assert STOP_MARKER == "trainlaunch: preflight stopped"
    assert 'tl_say "preflight stopped ($1): $2"' in preflight_text(PLANS["stated"])


@pytest.mark.parametrize("word", ["x={num_workers", "{num_workers} ", "{other}"])
def test_wrapper_without_tokens_leaves_the_arguments_alone(word: str) -> None:
    """Only a command that names a token is rebuilt."""
    assert "for tl_arg" not in preflight_text(plan(command=["python", word]))


def test_script_gets_variables_but_no_tokens() -> None:
    """Braces are the script's own."""
    assert "for tl_arg" not in preflight_text(plan(command=None, script="{num_workers}"))


def test_stop_signal_is_handed_on_besides_the_usual_ones() -> None:
    """Spelled as `kill -s` takes it, whatever the job's spelling."""
    usual = ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2")
    assert forwarded_signals(None) == usual
    assert forwarded_signals("SIGINT") == usual
    assert forwarded_signals("sigrtmin+3") == (*usual, "RTMIN+3")
    assert forwarded_signals("10") == (*usual, "10")


def test_unsized_job_must_get_the_planned_size() -> None:
    """Its need is unknown, so the size that the files state is the least that is accepted."""
    unsized = PLANS["unsized"]
    assert f" tl_size={unsized.shm.size.value}" in preflight_text(unsized)
    assert " tl_unsized=1 " in preflight_text(unsized)
    assert f"tl_least={unsized.shm.size.value} " in health_text(unsized)


def test_sized_job_must_get_its_need() -> None:
    """The floor above it is a reserve."""
    stated = PLANS["stated"]
    assert LOADER["batch_size"] == 64
    assert stated.shm.need < stated.shm.size.value
    assert f" tl_need={stated.shm.need} " in preflight_text(stated)
    assert " tl_unsized=0 " in preflight_text(stated)
    assert f"tl_least={stated.shm.need} " in health_text(stated)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_any_number_of_literals_renders(count: int) -> None:
    """`{{num_workers}}` and its three siblings may each stand alone or together."""
    assert "for tl_arg" in preflight_text(plan(command=["echo", *LITERALS[:count]]))


def test_workers_beyond_the_jobs_own_cpus_are_said_once() -> None:
    """`up` and `render` have warned of them; the wrapper warns where only the machine has too few CPUs."""
    warned = plan(loader={"num_workers": 3}, resources={"cpus": 2})
    assert "TL206" in {each.code for each in check_plan(warned)}
    assert " tl_stated=0 " in preflight_text(warned)
    for cpus in ({}, {"cpus": 3}):
        quiet = plan(loader={"num_workers": 3}, resources=cpus)
        assert "TL206" not in {each.code for each in check_plan(quiet)}
        assert " tl_stated=3 " in preflight_text(quiet)
