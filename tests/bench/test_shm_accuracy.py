"""bench/shm_accuracy.py judges as it says, and docs/measurements.md shows what the plan computes today."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.units import MIB

from bench import shm_accuracy as bench

SIZING = Path(__file__).resolve().parents[2] / "docs" / "measurements.md"
ALL = {each.name: each for each in bench.configurations(bench.CONFIGURATIONS)}
LIBRARIES = {each.name: each for each in bench.configurations(bench.LIBRARIES)}
BESIDE_AN_ITERATOR = {
    *("nested-evaluation", "evaluation-by-steps", "evaluation-by-steps-persistent", "break-persistent")
}
TIGHT, LOOSE, TWO_RANKS = ALL["one-worker"], ALL["padding"], ALL["spawn-two-ranks-tensors-in-dataset"]


def measured(peak: int, *, exit_code: int = 0, before: int = 0, said: str = "") -> bench.Measured:
    """Return what a container would tell."""
    return bench.Measured({"exit_code": exit_code, "before": before, "peak": peak}, said)


def test_at_least_25_configurations_and_four_exact_shapes_are_measured() -> None:
    """The file holds 25 configurations or more, each name once, and four shapes whose need is proved to the page."""
    entries = bench.plain_yaml.load(bench.CONFIGURATIONS.read_text())
    assert len(entries) == len(ALL) >= 25
    assert sum(each.exact for each in ALL.values()) == 4


def test_all_that_run_several_epochs_are_held_to_multi_epoch_but_loaders_beside_a_living_iterator() -> None:
    """Whoever adds a loop of several epochs proves it in a container of exactly that, or names it here."""
    several = {name for name, each in ALL.items() if each.program.get("epochs", 1) > 1}
    assert several - {name for name, each in ALL.items() if each.epochs} == BESIDE_AN_ITERATOR
    assert len(several) >= 20


def test_need_multi_epoch_and_worst_case_are_in_order_in_each_row() -> None:
    """Also where libraries are measured."""
    for each in (*ALL.values(), *LIBRARIES.values()):
        assert each.plan.shm.need <= each.plan.shm.multi_epoch <= each.plan.shm.worst_case, each.name


def test_a_peak_of_hard_agrees_and_one_page_more_does_not() -> None:
    """The bound is worst_case itself."""
    worst_case = TIGHT.plan.shm.worst_case
    assert bench.judged(TIGHT, measured(worst_case)).problem == ""
    assert (
        bench.judged(TIGHT, measured(worst_case + bench.PAGE)).problem
        == f"peak {worst_case + bench.PAGE} exceeds worst_case {worst_case}"
    )


def test_need_may_be_one_batch_and_one_mib_above_the_peak_and_not_a_page_more() -> None:
    """One batch of 1 MiB + 1 MiB below need is the limit of a tight configuration."""
    lowest = TIGHT.plan.shm.need - 2 * MIB
    assert bench.judged(TIGHT, measured(lowest)).problem == ""
    assert "above the peak" in bench.judged(TIGHT, measured(lowest - bench.PAGE)).problem


def test_a_loose_configuration_is_held_to_hard_only() -> None:
    """A configuration with a reason may stay any distance below need, and not above worst_case."""
    assert bench.judged(LOOSE, measured(0)).problem == ""
    assert "exceeds worst_case" in bench.judged(LOOSE, measured(LOOSE.plan.shm.worst_case + 1)).problem


def test_a_configuration_of_several_epochs_is_held_to_multi_epoch() -> None:
    """A page more is a problem, far below worst_case."""
    in_turn = ALL["in-turn"]
    lasting = in_turn.plan.shm.multi_epoch
    assert bench.judged(in_turn, measured(lasting)).problem == ""
    assert bench.judged(in_turn, measured(lasting + bench.PAGE)).problem.endswith(f"exceeds multi_epoch {lasting}")


def test_difference_counts_one_batch_of_each_loader_and_rank() -> None:
    """Two ranks of one loader of 1 MiB: 4 MiB below need are two batches of each."""
    assert bench.judged(TWO_RANKS, measured(TWO_RANKS.plan.shm.need - 4 * MIB)).difference == 2.0


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        (
            bench.Measured({}, "docker: no such image\n\nRun 'docker run --help'"),
            "the program failed: docker: no such image",
        ),
        (bench.Measured({}, ""), "the program failed: it said nothing"),
        (measured(TIGHT.plan.shm.need, exit_code=1, said="Killed"), "the program failed: Killed"),
        (measured(TIGHT.plan.shm.need, before=4096), "/dev/shm held 4096 bytes before the program"),
    ],
)
def test_a_run_that_measured_nothing_is_a_problem(told: bench.Measured, problem: str) -> None:
    """A container that fails, a program that fails and a /dev/shm that was in use are never a pass."""
    assert bench.judged(TIGHT, told).problem == problem


@pytest.mark.parametrize(("at_need", "below", "holds"), [(3, 0, True), (2, 0, False), (3, 1, False)])
def test_exactness_wants_every_run_at_need_and_none_below(at_need: int, below: int, holds: bool) -> None:
    """One failure at need, or one pass a page below it, disproves the number."""
    assert bench.Exactness("shape", 4096, 3, at_need, below, ()).holds is holds


def test_a_container_that_hangs_counts_as_failed_and_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the deadline the container is removed by its name and the run has not passed."""
    commands: list[Any] = []

    def hangs_once(command: Any, **kw: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        if len(commands) == 1:
            raise subprocess.TimeoutExpired(command, kw["timeout"])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", hangs_once)
    told = bench.run("image", TIGHT, shm_bytes=TIGHT.plan.shm.need)
    assert not told.passed
    assert told.said.startswith("hangs")
    assert f"--name={commands[1][-1]}" in commands[0]
    assert commands[1][:3] == ("docker", "rm", "--force")


def test_the_plans_own_argv_starts_the_ranks() -> None:
    """The sampler runs torchrun exactly as the plan has it, with train.py in the command's place."""
    argv = bench.argv_of(TWO_RANKS)
    assert argv[:3] == ("python3", "/bench/sample.py", "torchrun")
    assert argv[2:-3] == TWO_RANKS.plan.argv[:-1]
    told = json.loads(argv[-1])
    assert told["program"]["gloo"] is True
    assert told["loaders"][0]["sample"] == [{"shape": [16384], "dtype": "float32"}]


def test_only_refuses_a_name_that_does_not_exist() -> None:
    """--only with an unknown name lists the known ones instead of measuring nothing."""
    with pytest.raises(SystemExit, match="no configuration is called nothing; there are one-worker, "):
        bench.main(["--only", "nothing", "--image", "unused"])


def test_sizing_page_shows_the_need_and_hard_of_every_configuration() -> None:
    """The table in docs/measurements.md has a row for each configuration, with the numbers of the plan today."""
    found = re.findall(r"^\| `([\w-]+)` \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", SIZING.read_text(), re.MULTILINE)
    planned = [(each.name, each.plan.shm) for each in ALL.values()]
    sizes = [(name, shm.need, shm.multi_epoch, shm.worst_case) for name, shm in planned]
    assert found == [(name, *(f"{size / MIB:.3f}" for size in three)) for name, *three in sizes]


@pytest.mark.docker
@pytest.mark.long  # the next one measures in containers too
def test_two_configurations_agree_in_real_containers(torch_image: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A numpy and a small-tensor configuration take all of need and never more than worst_case.

    Stacked tensors are those of the examples, whose peaks are tested there.
    """
    names = ("numpy-collate", "many-small-tensors")
    only = [word for name in names for word in ("--only", name)]
    assert bench.main([*only, "--image", torch_image, "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["configurations"]
    assert sorted(each["name"] for each in rows) == sorted(names)
    assert all(each["need"] <= each["peak"] <= each["worst_case"] for each in rows)


@pytest.mark.docker
def test_need_suffices_and_one_page_less_does_not(torch_image: str) -> None:
    """/dev/shm of exactly need trains; with one page less torch ends with ENOSPC."""
    proved = bench.exactness(torch_image, ALL["prefetch-1"], runs=1)
    assert proved.holds, proved
    assert proved.ends == ("No space left on device",)


@pytest.mark.libraries
def test_real_libraries_agree_with_what_the_docs_say_to_state(
    examples_image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Peaks within worst_case, and exactly multi_epoch trains three epochs of each that docs/frameworks.md promises."""
    done = bench.main(["--libraries", "--image", examples_image, "--output", "json"])
    rows = json.loads(capsys.readouterr().out)["configurations"]
    assert {each["name"]: each["problem"] for each in rows if each["problem"]} == {}
    assert (done, {each["name"] for each in rows}) == (0, set(LIBRARIES))
