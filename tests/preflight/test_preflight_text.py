"""The text of the wrapper and of the health check, without running it."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
from trainlaunch.container.container import container_of
from trainlaunch.container.preflight import STOP_MARKER, forwarded_signals, health_text, plan_variables, preflight_text
from trainlaunch.job.reserved import PLAN_VARIABLE
from trainlaunch.job.tokens import has_token
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.workers_and_threads import CPUS_PER_WORKER_ON_CPU, MIN_CPUS_FOR_WORKERS
from trainlaunch.rules import check_plan
from trainlaunch.templating.environment import TEMPLATES, constant_text

from tests.preflight.plans import FOLDERS, LOADER, NAMED, automatic, plan, wrapper_alone

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


def numbers_of(made: LaunchPlan) -> str:
    """Return the value of the plan's variable."""
    return plan_variables(made)[PLAN_VARIABLE]


EVERY_PLAN = pytest.mark.parametrize("each", PLANS.values(), ids=PLANS)


SCRIPTS = ("preflight.sh", "health.sh")
CLEAN = (*SCRIPTS, "live.sh")


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_can_be_read(name: str) -> None:
    """By whoever reviews the first manifest; in all others they are the same."""
    lines = constant_text(name).splitlines()
    assert len(lines) <= 210
    assert max(map(len, lines)) <= 120


@EVERY_PLAN
def test_every_job_has_the_same_scripts_and_numbers_of_its_own(each: LaunchPlan) -> None:
    """Each number is one that a script begins with, so an image's variable of its name is none."""
    container = container_of(each)
    assert container.health == constant_text("health.sh").rstrip("\n")
    assert container.entrypoint[-2:] == (constant_text("preflight.sh").rstrip("\n"), "trainlaunch")
    stated = {f"tl_{name}" for name in re.findall(r"(?:^| )([a-z]+)=", numbers_of(each))}
    usual = [set(re.findall(r"\b(tl_\w+)=", constant_text(name).partition("eval ")[0])) for name in SCRIPTS]
    assert stated <= set.union(*usual)
    assert dict(container.env)["TRAINLAUNCH_PLAN"] == numbers_of(each)


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


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_hold_no_tab_or_trailing_blank(name: str) -> None:
    """So that a YAML literal block can hold them as they are."""
    text = constant_text(name)
    assert "\t" not in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_numbers_are_the_same_bytes_on_every_target() -> None:
    """What was proved on one target is proved on all."""
    fields: dict[str, Any] = {"resources": {"cpus": 4, "memory": "8Gi"}, "script": "true", "command": None}
    plans = [automatic(target=target, **fields) for target in ("docker", "compose", "kubernetes")]
    assert len({numbers_of(each) for each in plans}) == 1


@pytest.mark.parametrize("shell", ["dash", "bash --posix", "busybox sh"])
def test_a_text_without_numbers_is_said(shell: str) -> None:
    """As where somebody starts the image of a rendering without its variable."""
    for text, code in ((preflight_text(), 78), (health_text(), 1)):
        done = subprocess.run(
            [*shell.split(), "-c", text], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False
        )
        assert (done.returncode, "TRAINLAUNCH_PLAN has no numbers of this job" in done.stdout + done.stderr) == (
            code,
            True,
        )


def test_wrapper_sets_no_variable_that_a_job_could_have() -> None:
    """An assignment to an inherited variable would change what the job gets, so all names have our own prefix."""
    lines = preflight_text().splitlines()
    words = " ".join(each for each in lines if not each.startswith("#")).replace("=", "= ").split()
    assigned = {word[:-1] for word in words if word.endswith("=") and word[:-1].isidentifier()}
    others = {name for name in assigned if not name.startswith(("tl_", "TRAINLAUNCH_"))}
    parts = {"PYTHONPATH", "TMPDIR"}  # for those that a job asks for
    assert others == {"IFS", "PET_RDZV_CONF", *parts, *NAMED, *FOLDERS}  # and by `tl_set`, what nobody set


def test_stop_marker_stands_before_the_last_sentence() -> None:
    """`up` tells the preflight's 75 and 78 from the job's own by it."""
    assert STOP_MARKER == "trainlaunch: preflight stopped"
    assert 'tl_say "preflight stopped ($1): $2"' in wrapper_alone(PLANS["stated"])


@pytest.mark.parametrize("shell", ["dash", "bash --posix", "busybox sh"])
def test_wrapper_without_tokens_leaves_the_arguments_alone(shell: str) -> None:
    """Byte for byte, whatever stands in them."""
    words = [
        "printf",
        "%s\\0",
        "x={num_workers",
        "{num_workers} ",
        "{other}",
        "a=*",
        "=",
        "",
        "'$HOME\n\n",
        "[a]=b",
        "-n",
        "\\",
    ]
    argv = [*shell.split(), "-c", wrapper_alone(plan(command=words)), "trainlaunch", *words]
    done = subprocess.run(argv, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    assert done.stdout.split("\0")[:-1] == words[2:], done.stderr


def test_script_gets_variables_but_no_tokens() -> None:
    """Braces are the script's own."""
    for script in ("{num_workers}", "python train.py --workers={num_workers}"):
        assert not any(map(has_token, plan(command=None, script=script).argv))


def test_stop_signal_is_handed_on_besides_the_usual_ones() -> None:
    """Spelled as `kill -s` takes it, whatever the job's spelling."""
    usual = ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2")
    assert forwarded_signals(None) == usual
    assert forwarded_signals("SIGINT") == usual
    assert forwarded_signals("sigrtmin+3") == (*usual, "RTMIN+3")
    assert forwarded_signals("10") == (*usual, "10")
    assert f"for tl_key in {' '.join(usual)} $tl_signal; do" in constant_text("preflight.sh")
    assert " signal=RTMIN+3 " in numbers_of(PLANS["script"])


def test_unsized_job_must_get_the_planned_size() -> None:
    """Its need is unknown, so the size that the files state is the least that is accepted."""
    unsized = PLANS["unsized"]
    assert f" size={unsized.shm.size.value} " in numbers_of(unsized)
    assert " unsized=1 " in numbers_of(unsized)
    assert f" least={unsized.shm.size.value}" in numbers_of(unsized)


def test_sized_job_must_get_its_need() -> None:
    """The floor above it is a reserve."""
    stated = PLANS["stated"]
    assert LOADER["batch_size"] == 64
    assert stated.shm.need < stated.shm.size.value
    assert f" need={stated.shm.need} " in numbers_of(stated)
    assert "unsized" not in numbers_of(stated)
    assert "least" not in numbers_of(stated)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_any_number_of_literals_renders(count: int) -> None:
    """`{{num_workers}}` and its three siblings may each stand alone or together."""
    made = plan(command=["echo", *LITERALS[:count]])
    argv = ["sh", "-c", wrapper_alone(made), "trainlaunch", *made.argv]
    done = subprocess.run(argv, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    assert done.stdout.split() == list(TOKENS[:count]), done.stderr


def test_workers_beyond_the_jobs_own_cpus_are_said_once() -> None:
    """`up` and `render` have warned of them; the wrapper warns where only the machine has too few CPUs."""
    warned = plan(loader={"num_workers": 3}, resources={"cpus": 2})
    assert "TL206" in {each.code for each in check_plan(warned)}
    assert " stated=0 " in numbers_of(warned)
    for cpus in ({}, {"cpus": 3}):
        quiet = plan(loader={"num_workers": 3}, resources=cpus)
        assert "TL206" not in {each.code for each in check_plan(quiet)}
        assert "stated" not in numbers_of(quiet), "as many as there are workers"
