"""Who keeps a run, and what this host keeps of it: one keeper at a time, and files that can't do anything."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch import __version__
from trainlaunch.run.base.backend import Peak
from trainlaunch.run.base.private_files import UnusableState
from trainlaunch.run.base.run_evidence import EndNote
from trainlaunch.run.base.secret_values import Redactor
from trainlaunch.run.run_lock import hold, keeper_of
from trainlaunch.run.run_record import RunRecord, plan_from

from tests.jobs import plan_with
from tests.runners import ROOT

HOLDS = (
    "import sys; from trainlaunch.run.run_lock import hold; print(hold(sys.argv[1]) is not None, flush=True); input()"
)


@pytest.fixture
def run() -> str:
    """Return a run's id of its own."""
    return os.urandom(4).hex()


def holder(run: str) -> subprocess.Popen[str]:
    """Start a process that tries to hold a run."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "launcher")}
    words = [sys.executable, "-c", HOLDS, run]
    return subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_one_process_keeps_a_run_and_its_death_frees_it(run: str) -> None:
    """Also a SIGKILL: no file is left that would say otherwise."""
    first, second = holder(run), holder(run)
    with first, second:
        assert first.stdout is not None
        assert second.stdout is not None
        words = {each.pid: each.stdout.readline() for each in (first, second) if each.stdout is not None}
        assert sorted(words.values()) == ["False\n", "True\n"]
        keeper = keeper_of(run)
        assert keeper is not None
        assert words[keeper.pid] == "True\n"
        assert (keeper.over, keeper.since > 0) == (False, True)
        for each in (first, second):
            each.kill()
    assert keeper_of(run) is None
    held = hold(run)
    assert held is not None
    held.over = True
    assert (told := keeper_of(run)) is not None
    assert (told.pid, told.over) == (os.getpid(), True)
    held.release()
    assert keeper_of(run) is None


@pytest.mark.parametrize("label", ["", "x", "../../etc", "0123abcd\n", "*"])
def test_a_label_that_is_no_run_id_is_kept_nowhere(label: str, tmp_path: Path) -> None:
    """Labels are anybody's; no file outside of the folder is read or written for one."""
    kept = RunRecord(label, tmp_path / "kept")
    kept.keep(plan_with(tmp_path / "job"))
    kept.say("text")
    kept.remove()
    assert (kept.plan(), kept.said(), keeper_of(label)) == (None, (), None)
    assert not (tmp_path / "kept").exists()


def test_a_plan_and_notes_come_back(run: str, tmp_path: Path) -> None:
    """As they were, for their user alone."""
    plan = plan_with(tmp_path, secrets={"TOKEN": {"env": "TOKEN"}}, mounts=[])
    kept = RunRecord(run, tmp_path / "kept")
    kept.keep(plan)
    kept.say("one")
    kept.end(2, EndNote("Ctrl-C", "", 4096))
    assert kept.plan() == plan
    assert [each.text for each in kept.said()] == ["one"]
    assert (kept.ended(2), kept.ended(1)) == (EndNote("Ctrl-C", "", 4096), EndNote())
    assert [each.stat().st_mode & 0o777 for each in sorted((tmp_path / "kept" / run).iterdir())] == [0o600] * 2
    kept.remove()
    assert (kept.plan(), kept.said()) == (None, ())


def test_damaged_notes_cost_their_line_alone(run: str, tmp_path: Path) -> None:
    """A full disk cuts a line, and a number may be anything."""
    kept = RunRecord(run, tmp_path)
    kept.keep(plan_with(tmp_path / "job"))
    with (tmp_path / run / "notes").open("wb") as file:
        file.write(b'{"at": 1.0, "sa\n\xff\xfe\n[1]\n{"at": "x", "said": "y"}\n' + b"[" * 100_000 + b"\n")
        file.write(b'{"at": 2.0, "attempt": 1, "end": {"peak": "9"}}\n{"at": 3.0, "said": "whole"}\n')
    assert [each.text for each in kept.said()] == ["whole"]
    assert kept.ended(1).peak is None


def test_the_highest_peak_of_each_node_is_kept(run: str, tmp_path: Path) -> None:
    """Whoever saw it; what is no peak is left out."""
    kept = RunRecord(run, tmp_path)
    kept.keep(plan_with(tmp_path / "job"))
    for peak in (Peak(5, 2, 3), Peak(9, 4), Peak(7, 1), None):
        kept.saw(1, None, peak)
    kept.saw(1, 1, Peak(11, None))
    kept.saw(2, None, Peak(1, 1))
    with (tmp_path / run / "notes").open("a") as file:
        file.write('{"at": 2.0, "attempt": 1, "node": null, "peak": {"held": true}}\n')
        file.write('{"at": 2.0, "attempt": 1, "node": null, "peak": 99}\n')
        file.write('{"at": 2.0, "attempt": 1, "node": null, "peak": {"held": 10, "workers": -1, "largest": "3"}}\n')
    assert [kept.peak(1, None), kept.peak(1, 1), kept.peak(2, None)] == [Peak(10, None, 3), Peak(11), Peak(1, 1)]
    assert kept.peak(3, None) is None
    assert len((tmp_path / run / "notes").read_text().splitlines()) == 4 + 3


class Planted:
    """What unpickling must not run."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch planted",)


@pytest.mark.parametrize("data", [pickle.dumps(Planted()), pickle.dumps("text"), b"", b"\x80\x05.", b"cos\nsystem\n."])
def test_a_file_that_holds_no_plan_does_nothing(
    data: bytes, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only trainlaunch's own tuples are made of it."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pickle.UnpicklingError):
        plan_from(data)
    kept = RunRecord(run, tmp_path / "kept")
    kept.keep(plan_with(tmp_path / "job"))
    (tmp_path / "kept" / run / "plan").write_bytes(f"{__version__}\n".encode() + data)
    assert kept.plan() is None
    assert not (tmp_path / "planted").exists()


OTHERS = {
    "another's file": lambda file: os.chown(file, 12345, 12345),
    "a file for a group": lambda file: file.chmod(0o660),
    "a file for all": lambda file: file.chmod(0o606),
    "a link": lambda file: file.symlink_to(file.rename(file.parents[3] / "moved")),
    "a pipe": lambda file: (file.unlink(), os.mkfifo(file)),
    "another's folder": lambda file: os.chown(file.parent, 12345, 12345),
    "a folder for all": lambda file: file.parent.chmod(0o777),
    "a link to a folder": lambda file: file.parent.symlink_to(file.parent.rename(file.parents[3] / "moved")),
    "another's folder of all runs": lambda file: os.chown(file.parents[1], 12345, 12345),
    "another's state": lambda file: os.chown(file.parents[2], 12345, 12345),
}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("where", ["plan", "notes"])
@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_nothing_is_read_that_another_could_have_written(
    run: str, tmp_path: Path, change: Callable[[Path], object], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan says what a keeper runs; its pickle isn't even opened, and nothing is added to what others own."""
    monkeypatch.setattr("trainlaunch.run.run_record.plan_from", lambda _: pytest.fail("it was unpickled"))
    kept = RunRecord(run, tmp_path / "state" / "kept")
    kept.keep(plan_with(tmp_path / "job"))
    kept.say("mine")
    file = tmp_path / "state" / "kept" / run / where
    change(file)
    if where == "plan":
        assert kept.plan() is None
        with pytest.raises(UnusableState, match=r"link|write|uid 12345|plain|can't be read"):
            kept.own_plan()
        return
    kept.end(1, EndNote("Ctrl-C"))
    assert (kept.said(), kept.ended(1)) == ((), EndNote())


def test_a_state_folder_may_be_linked_to_another_disk(run: str, tmp_path: Path) -> None:
    """By its owner, from above; the plan that is found there is this user's."""
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "state").symlink_to(tmp_path / "disk")
    kept, plan = RunRecord(run, tmp_path / "state" / "kept"), plan_with(tmp_path / "job")
    kept.keep(plan)
    assert kept.own_plan() == plan


def test_what_is_said_is_kept_without_secrets(run: str, tmp_path: Path) -> None:
    """What a health check had against a run too; a value would be on disk for whoever reads the folder."""
    kept = RunRecord(run, tmp_path / "state" / "kept", Redactor([("KEY", "sk-secret")]))
    kept.keep(plan_with(tmp_path / "job"))
    kept.say("got sk-secret")
    kept.end(1, EndNote(unhealthy="told sk-secret"))
    assert [each.text for each in kept.said()] == ["got [secret KEY]"]
    assert kept.ended(1).unhealthy == "told [secret KEY]"


def test_a_plan_that_others_could_write_is_not_taken(run: str, tmp_path: Path) -> None:
    """Nor one of another version, whose fields may mean something else."""
    kept = RunRecord(run, tmp_path / "kept")
    kept.keep(plan_with(tmp_path / "job"))
    file = tmp_path / "kept" / run / "plan"
    file.chmod(0o620)
    assert kept.plan() is None
    file.chmod(0o600)
    assert kept.plan() is not None
    if os.getuid() == 0:
        os.chown(file, 12345, 12345)
        assert kept.plan() is None
        os.chown(file, 0, 0)
    file.write_bytes(b"0.0.0\n" + file.read_bytes().partition(b"\n")[2])
    assert kept.plan() is None
