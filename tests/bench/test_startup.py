"""bench/startup.py: what it measures and how it judges. The times themselves are no test's business."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from trainlaunch.cli.arguments.verb_table import VERBS

from bench import startup
from bench.startup import BARE, TORCHX, Timed, commands, missed, run_once, table, timed


def results(**times: float) -> list[Timed]:
    """Return results with these medians: bare Python 10 ms, TorchX 500 ms and each `render` 50 ms unless stated."""
    medians = {"bare": 10.0, "torchx": 500.0, "docker": 50.0, "all": 50.0} | times
    names = {each: f"trainlaunch render --target {each}" for each in medians} | {"bare": BARE, "torchx": TORCHX}
    return [Timed(names[each], (time - 1, time, time + 1), time) for each, time in medians.items()]


def test_every_verb_is_measured() -> None:
    """A new verb is in the table without being named in the benchmark."""
    names = set(commands(Path("python"), Path("unused")))
    assert {BARE, TORCHX} <= names
    assert {name.split()[1] for name in names if name.startswith("trainlaunch ")} == {"--version", *VERBS}


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({}, []),
        ({"docker": 100.0}, []),
        ({"docker": 101.0}, ["docker takes 10.1 × bare Python, the goal is 10 ×"]),
        ({"all": 110.0}, []),
        ({"all": 111.0}, ["all takes 11.1 × bare Python, the goal is 11 ×"]),
        ({"torchx": 150.0}, []),
        ({"torchx": 149.0}, ["torchx run --dryrun takes 3.0 × trainlaunch render --target docker, the goal is 3 ×"]),
    ],
)
def test_a_goal_is_missed_just_beyond_its_bound(times: dict[str, float], said: list[str]) -> None:
    """The bound itself still passes; TorchX is compared with each single target, not with all of them."""
    found = list(missed(results(**times)))
    assert len(found) == len(said)
    assert all(each in line for each, line in zip(said, found, strict=True))


def test_median_and_quartiles_are_those_of_the_rounds() -> None:
    """CPU time by quartile, the clock by its median."""
    assert timed("x", [(cpu, 2 * cpu) for cpu in (1.0, 2.0, 3.0, 4.0, 100.0)]) == Timed("x", (2.0, 3.0, 4.0), 6.0)


def test_the_table_compares_with_bare_python() -> None:
    """Each line ends with the factor and the clock."""
    assert [line.split()[-2:] for line in table(results(docker=75.0))][1:] == [
        ["1.0", "10.0"],
        ["50.0", "500.0"],
        ["7.5", "75.0"],
        ["5.0", "50.0"],
    ]


def test_a_command_that_fails_is_not_timed(tmp_path: Path) -> None:
    """A verb that breaks at once would look fast."""
    with pytest.raises(SystemExit, match="exit code 3"):
        run_once([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)


def test_an_existing_torchx_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed into a folder that has it."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "torchx").touch()
    monkeypatch.setattr(startup.venv, "create", lambda *args, **kw: pytest.fail("made another one"))
    startup.install_torchx(tmp_path)
