"""What `up` does around a job: attempts, signals, the deadline, a lost engine. Without an engine."""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.container.preflight import STOP_MARKER
from trainlaunch.diagnose import explain_end
from trainlaunch.errors import TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.plan_label import Planned
from trainlaunch.run.base.backend import Chunk
from trainlaunch.run.base.console import Console, Event, Events, Outcome, next_event, trapped_signals
from trainlaunch.run.base.retry import backoff
from trainlaunch.run.base.run_evidence import NEVER_SPOKE
from trainlaunch.run.supervise import DEADLINE, Supervisor

from tests.jobs import plan_with
from tests.run.scripted import End, Refusing, Scripted
from tests.runners import ROOT, run_process

NOTHING_PLANNED = Planned()
OURS = Chunk(stderr=True, data=f"{STOP_MARKER} (78): no\n".encode())


class Followed:
    """One `up` on a scripted backend, and what it printed."""

    def __init__(self, plan: LaunchPlan, backend: Scripted, events: list[Event], late: tuple[Event, ...] = ()) -> None:
        self.plan = plan
        self.out = self.err = b""
        self.said: list[str] = []
        self.backend = backend
        queue: Events[Event] = Events()
        for event in events:
            queue.put(event)
        self.left: list[str] = []
        hung = lambda log: "hung" if "_feed" in log else ""  # noqa: E731 - a line of a table

        def say(text: str) -> None:
            self.said.append(text)
            if "starting attempt" in text:
                for event in late:
                    queue.put(event)

        console = Console(self._out, self._err, say, hung, self.left.append)
        self.outcome: Outcome = Supervisor(self.backend, plan, console, queue).run("0123abcd")

    def _out(self, data: bytes) -> None:
        self.out += data

    def _err(self, data: bytes) -> None:
        self.err += data


@pytest.fixture
def follow(tmp_path: Path) -> Callable[..., Followed]:
    """Run `up` on a job whose containers end as told; keywords are fields of the job."""

    def run(
        *ends: End, events: tuple[Event, ...] = (), attempts: int = 1, planned: Planned = NOTHING_PLANNED, **fields: Any
    ) -> Followed:
        late = fields.pop("late", ())
        plan = plan_with(tmp_path, restart={"max_attempts": attempts, **fields.pop("restart", {})}, **fields)
        return Followed(plan, Scripted(list(ends), planned), list(events), late)

    return run


def test_the_jobs_code_and_bytes_are_up_s(follow: Callable[..., Followed]) -> None:
    """Each stream has its own bytes, and the exit code is the container's."""
    output = (Chunk(False, b"a\xff"), Chunk(True, b"e"), Chunk(False, b"b"))
    done = follow(End(code=3, output=output, silent=True))
    assert (done.outcome.exit_code, done.out, done.err) == (3, b"a\xffb", b"e")


@pytest.mark.parametrize(
    ("end", "creations"),
    [
        (End(code=0), 1),
        (End(code=1), 3),
        (End(code=75), 3),
        (End(code=75, output=(Chunk(True, f"{STOP_MARKER} (75): full\n".encode()),)), 3),
        (End(code=78), 1),
        (End(code=78, output=(OURS,)), 1),
        (End(code=125), 1),
        (End(code=126), 1),
        (End(code=127), 1),
        (End(code=128), 3),
        (End(code=137, oom_killed=True), 3),
        (End(code=143, signals=(15,)), 1),
        (End(code=1, signals=(10,)), 3),
        (End(code=1, removed=True), 1),
    ],
)
def test_an_attempt_follows_where_it_may_help(follow: Callable[..., Followed], end: End, creations: int) -> None:
    """Never after success, 78, a command that can't start, or a stop by anyone."""
    done = follow(end, end, end, attempts=3)
    assert done.backend.calls == [f"create {number}" for number in range(1, creations + 1)]
    assert done.outcome.exit_code == end.code


@pytest.mark.parametrize(("code", "creations"), [(4, 3), (75, 3), (5, 1), (137, 1), (78, 1), (127, 1)])
def test_on_exit_codes_says_after_which_codes(follow: Callable[..., Followed], code: int, creations: int) -> None:
    """75 is always one of them, since another machine may do."""
    done = follow(*[End(code=code)] * 3, attempts=3, restart={"on_exit_codes": [4, 9]})
    assert done.backend.calls == [f"create {number}" for number in range(1, creations + 1)]


def test_attempts_wait_longer_each_time(follow: Callable[..., Followed], monkeypatch: pytest.MonkeyPatch) -> None:
    """restart.backoff, then twice as long; the wait is said."""
    waits: list[float] = []
    monkeypatch.setattr(Supervisor, "_waited", lambda _, attempt, seconds: waits.append(seconds) or True)
    done = follow(*[End(code=1)] * 4, attempts=4, restart={"backoff": "40s"})
    assert waits == [40, 80, 160]
    assert done.said[1].endswith("starting attempt 3 in 1m20s (restart.backoff)")
    job = plan_with(Path(done.plan.job.path).parent, restart={"max_attempts": 9, "backoff": "40s"}).job
    assert [backoff(job, ended) for ended in (4, 5, 8)] == [320, 360, 360]
    assert backoff(job._replace(backoff=900), 3) == 900
    assert backoff(job._replace(backoff=None), 3) == 0


@pytest.mark.parametrize("name", ["Ctrl-C", "SIGTERM"])
def test_a_signal_while_it_waits_is_an_end(follow: Callable[..., Followed], name: str) -> None:
    """No job runs that could be stopped; the last attempt's code counts. A lost terminal changes nothing."""
    events = (Event("hangup", "SIGHUP"), Event("signal", name))
    done = follow(End(code=1, output=()), attempts=3, restart={"backoff": "1h"}, late=events)
    assert (done.backend.calls, done.outcome.exit_code) == (["create 1"], 1)
    assert done.said[-1] == f"{name}: no further attempt"
    assert done.left == ["SIGHUP"]


def test_the_deadline_counts_while_it_waits(follow: Callable[..., Followed]) -> None:
    """As on Kubernetes, where pods that wait count too."""
    done = follow(End(code=1), attempts=3, restart={"backoff": "1h"}, active_deadline="1s")
    assert (done.backend.calls, done.outcome.exit_code) == (["create 1"], 1)
    assert done.said[-1] == "active_deadline: no further attempt"


def test_a_run_that_is_removed_while_it_waits_is_not_made_again(follow: Callable[..., Followed]) -> None:
    """`down` took what had ended: its next attempt would undo that."""
    done = follow(End(code=1, removed_late=True), attempts=3, restart={"backoff": "1s"})
    assert done.backend.calls == ["create 1"]


def test_an_attempt_that_can_not_be_started_is_no_end_of_its_own(follow: Callable[..., Followed]) -> None:
    """The code is that of the last one that ran, and why no other followed is said."""
    done = follow(End(code=4), End(refused=True), attempts=2)
    assert done.outcome.exit_code == 4
    assert done.said[-1].startswith("attempt 2 can't be started: TL501")


def test_a_later_attempt_may_succeed(follow: Callable[..., Followed]) -> None:
    """The last attempt's code counts, and each new attempt has its line."""
    done = follow(End(code=1), End(code=0), attempts=3)
    assert done.outcome.exit_code == 0
    assert done.said == ["attempt 1 of 3 ended with exit code 1; starting attempt 2"]


@pytest.mark.parametrize("name", ["Ctrl-C", "SIGTERM"])
def test_the_first_signal_stops_and_is_told(follow: Callable[..., Followed], name: str) -> None:
    """It says who and how long, and the job's own code stays."""
    done = follow(End(code=9, until_stopped=True), events=(Event("signal", name),), attempts=2, stop_grace_period="90s")
    assert done.backend.calls == ["create 1", "stop"]
    assert done.outcome.exit_code == 9
    assert done.said[0].startswith(f"{name}: stopping the job; it has 1m30s to end")
    assert done.outcome.evidence is not None
    assert [each.symptom for each in explain_end(done.outcome.evidence)] == ["stopped"]


def test_a_second_ctrl_c_kills(follow: Callable[..., Followed]) -> None:
    """A job that ignores the stop ends with 137, and a third signal changes nothing."""
    twice = tuple(Event("signal", "Ctrl-C", at=at) for at in (1.0, 2.0, 3.0))
    done = follow(End(until_stopped=True, ignores=True), events=twice)
    assert sorted(done.backend.calls) == ["create 1", "kill", "stop"]
    assert done.outcome.exit_code == 137
    assert done.said.count("killing it") == 1


@pytest.mark.parametrize(
    "events",
    [
        (Event("signal", "Ctrl-C", at=1.0), Event("signal", "Ctrl-C", at=1.9)),
        (Event("signal", "SIGTERM", at=1.0), Event("signal", "SIGTERM", at=9.0)),
        (Event("signal", "SIGTERM", at=1.0), Event("signal", "Ctrl-C", at=9.0)),
        (Event("signal", "Ctrl-C", at=1.0), Event("signal", "SIGTERM", at=9.0)),
        (Event("signal", "Ctrl-C", at=1.0), Event("hangup", "SIGHUP", at=5.0), Event("hangup", "SIGHUP", at=9.0)),
    ],
)
def test_no_other_second_signal_kills(follow: Callable[..., Followed], events: tuple[Event, ...]) -> None:
    """A press that a wrapper hands on, `timeout` with its two SIGTERM, a closing terminal: the job saves its state."""
    done = follow(End(code=5, until_stopped=True), events=events)
    assert (done.backend.calls, done.outcome.exit_code) == (["create 1", "stop"], 5)
    assert "killing it" not in done.said


def test_a_lost_terminal_stops_nothing(follow: Callable[..., Followed]) -> None:
    """The job goes to its end, and further attempts are made; the screen is told each time, and leaves once."""
    hangups = (Event("hangup", "SIGHUP"), Event("hangup", "SIGHUP"))
    done = follow(End(code=1), End(code=0), attempts=2, events=hangups)
    assert (done.backend.calls, done.outcome.exit_code) == (["create 1", "create 2"], 0)
    assert done.left == ["SIGHUP", "SIGHUP"]


def test_who_sends_sigterm_is_told_how_long_to_wait(follow: Callable[..., Followed]) -> None:
    """A scheduler that sends SIGKILL sooner kills what would have told the engine to stop, not the job."""
    end = End(code=5, until_stopped=True)
    (said, *_) = follow(end, events=(Event("signal", "SIGTERM"),), stop_grace_period="90s").said
    assert said.endswith("whoever sent SIGTERM must wait longer than stop_grace_period 1m30s with SIGKILL")
    (said, *_) = follow(end, events=(Event("signal", "Ctrl-C"),)).said
    assert "SIGKILL" not in said


def test_the_deadline_stops_all_attempts(follow: Callable[..., Followed]) -> None:
    """It is said, no attempt follows, and the code is the one that the job ended with."""
    done = follow(End(code=143, until_stopped=True), attempts=3, active_deadline="1s")
    assert done.backend.calls == ["create 1", "stop"]
    assert done.outcome.exit_code == 143
    assert done.said[0].startswith("active_deadline 1s is over: stopping the job")
    assert done.outcome.evidence is not None
    assert done.outcome.evidence.stopped_by == DEADLINE


def test_a_lost_engine_is_125_and_told(follow: Callable[..., Followed]) -> None:
    """The job may go on, so the way to follow it again is told; no attempt follows."""
    done = follow(End(lost=True), attempts=2)
    assert done.outcome == Outcome(125, None)
    assert "the engine was lost while following" in done.said[0]
    assert "trainlaunch logs -f digits" in done.said[1]


def test_a_code_that_is_known_outlives_the_engine(follow: Callable[..., Followed]) -> None:
    """The engine went away after it told the job's end: the code is the job's, and only the cause stays unknown."""
    done = follow(End(code=3, lost_late=True))
    assert done.outcome == Outcome(3, None)
    assert "the engine was lost while following" in done.said[0]


@pytest.mark.parametrize(
    ("peak", "said"),
    [
        (40 << 20, "data_loader:\n  batch_bytes: {size: 10Mi, tensors: 1}"),
        (4096, "used up to 4.0 KiB and no DataLoader worker"),
    ],
)
def test_an_unsized_run_tells_its_peak(follow: Callable[..., Followed], peak: int, said: str) -> None:
    """The line to paste, or that there was no batch to size; also where the job failed."""
    end = End(code=1, health_output=f"shm used=0 peak={peak} size=67108864 workers=0/2")
    planned = Planned(queued_batches=4, unsized=True)
    assert said in "\n".join(follow(end, planned=planned).said)


def test_a_hang_is_said_once(follow: Callable[..., Followed]) -> None:
    """While it runs, not afterwards."""
    traceback = Chunk(True, b"_feed\nRuntimeError: full\n")
    done = follow(End(output=(traceback, traceback)))
    assert [re.sub(r"[\d:]{8}", "…", each) for each in done.said] == ["since … hung"]


def test_a_target_that_refuses_the_first_attempt_is_an_error(tmp_path: Path) -> None:
    """Nothing ran, so there is no outcome."""
    console = Console(lambda data: None, lambda data: None, print, lambda log: "")
    with pytest.raises(TargetUnavailable):
        Supervisor(Refusing([]), plan_with(tmp_path), console, Events()).run("0123abcd")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_again_at_the_end_takes_no_exit_code(number: signal.Signals) -> None:
    """`timeout` sends two; a loaded machine may deliver the second when `up` is about to end with the job's code."""
    program = (
        "import queue, signal, sys\nfrom trainlaunch.run.base.console import trapped_signals\n"
        "with trapped_signals(queue.SimpleQueue()):\n    signal.raise_signal(int(sys.argv[1]))\n"
        "signal.raise_signal(int(sys.argv[1]))\nsys.exit(7)"
    )
    done = run_process([sys.executable, "-c", program, str(int(number))], cwd=ROOT)
    assert done.returncode == 7, done.stderr


def test_a_signal_that_was_ignored_before_stays_ignored() -> None:
    """`nohup trainlaunch up` goes on when its terminal closes."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        events: Events[Event] = Events()
        with trapped_signals(events):
            signal.raise_signal(signal.SIGHUP)
        assert events.empty()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_that_another_thread_gets_is_heard() -> None:
    """The kernel gives one to any thread of a process, and a wait of the main one isn't woken by that."""
    events: Events[Event] = Events()
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    before = signal.getsignal(signal.SIGINT)
    other.start()
    late = threading.Timer(0.2, signal.pthread_kill, (other.ident, signal.SIGINT))
    try:
        with trapped_signals(events):
            late.start()
            assert next_event(events, 30).value == "Ctrl-C"
    finally:
        signal.signal(signal.SIGINT, before)
        over.set()


def test_signals_become_events_and_are_given_back() -> None:
    """SIGINT, SIGTERM and SIGHUP, in order; afterwards the old handlers stand of those that did not come."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(each) for each in numbers]
    events: Events[Event] = Events()
    with trapped_signals(events):
        pass
    assert before == [signal.getsignal(each) for each in numbers]
    try:
        with trapped_signals(events):
            for each in numbers:
                signal.raise_signal(each)
    finally:
        for each, old in zip(numbers, before, strict=True):
            signal.signal(each, old)
    heard = [events.get_nowait() for _ in range(3)]
    assert [(each.kind, each.value) for each in heard] == [
        ("signal", "Ctrl-C"),
        ("signal", "SIGTERM"),
        ("hangup", "SIGHUP"),
    ]
    assert all(each.at > 0 for each in heard)


def test_a_second_ctrl_c_is_told_as_one(follow: Callable[..., Followed]) -> None:
    """The grace period was not over when it was killed."""
    twice = (Event("signal", "Ctrl-C", at=1.0), Event("signal", "Ctrl-C", at=2.5))
    done = follow(End(until_stopped=True, ignores=True), events=twice)
    assert done.outcome.evidence is not None
    assert (done.outcome.evidence.stopped_by, done.outcome.evidence.killed_by) == ("Ctrl-C", "Ctrl-C")


@pytest.mark.parametrize("output", [(), (Chunk(True, b"hi\n"),)], ids=["nothing", "its-own-lines"])
def test_a_run_whose_preflight_never_spoke_is_125(follow: Callable[..., Followed], output: tuple[Chunk, ...]) -> None:
    """A shell-form ENTRYPOINT ends with 0 and has run nothing of the job; that is not tried again."""
    done = follow(End(output=output, silent=True), restart={"max_attempts": 3})
    assert done.outcome.exit_code == 125
    assert [each for each in done.said if "preflight" in each] == [NEVER_SPOKE]
    assert done.backend.calls == ["create 1"]


@pytest.mark.parametrize("end", [End(), End(code=3, silent=True)], ids=["spoke", "failed"])
def test_other_ends_keep_their_code(follow: Callable[..., Followed], end: End) -> None:
    """A code of its own is told as it is, whatever was printed."""
    done = follow(end)
    assert (done.outcome.exit_code, NEVER_SPOKE in done.said) == (end.code, False)


ILL = "unhealthy: rank 0 has waited 12 s for one batch, 10 s are allowed (stall_after)"
STOPPING: dict[str, Any] = {"healthcheck": {"stall_after": "10s", "on_unhealthy": "stop"}}


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainlaunch.run.base.watch.HEALTH_SECONDS", 0.01)


@pytest.mark.usefixtures("_at_once")
def test_an_unhealthy_job_is_stopped_and_has_failed(follow: Callable[..., Followed]) -> None:
    """Another attempt follows, as a cluster makes one; the diagnosis has the check's words."""
    stalls, ends = End(code=143, until_stopped=True, unhealthy=ILL), End(code=0)
    done = follow(stalls, ends, attempts=2, **STOPPING)
    assert (done.backend.calls, done.outcome.exit_code) == (["create 1", "stop", "create 2"], 0)
    reason = ILL.removeprefix("unhealthy: ")
    assert [each for each in done.said if reason in each] == [
        f"the health check says: {ILL}",
        f"{reason}: stopping the job; it has 30s to end, Ctrl-C pressed twice kills it",
    ]
    done = follow(End(code=143, until_stopped=True, unhealthy=ILL), **STOPPING)
    assert done.outcome.evidence is not None
    (diagnosis,) = explain_end(done.outcome.evidence)
    assert (diagnosis.symptom, diagnosis.evidence[0].text) == ("unhealthy", reason)


@pytest.mark.usefixtures("_at_once")
def test_a_job_that_saves_and_ends_well_when_it_is_stopped_has_another_attempt(follow: Callable[..., Followed]) -> None:
    """Its code is 0, and it has not finished."""
    saves = End(code=0, until_stopped=True, unhealthy=ILL)
    assert follow(saves, End(code=0), attempts=2, **STOPPING).backend.calls == ["create 1", "stop", "create 2"]


@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize(
    ("said", "fields"),
    [
        (ILL, {"healthcheck": {"stall_after": "10s"}}),
        ("Health check exceeded timeout (10s)", STOPPING),
        ("", STOPPING),
    ],
    ids=["report", "slow-check", "silent-check"],
)
def test_a_job_is_stopped_for_what_its_check_said_alone(
    follow: Callable[..., Followed], said: str, fields: dict[str, Any]
) -> None:
    """Not by default, nor for a check that a busy machine didn't finish."""
    waits = End(code=3, until_stopped=True, unhealthy=said, output=(Chunk(True, b"x"),))
    done = follow(waits, active_deadline="1s", **fields)
    assert done.outcome.evidence is not None
    assert (done.outcome.evidence.stopped_by, done.outcome.evidence.unhealthy) == (DEADLINE, "")


@pytest.mark.usefixtures("_at_once")
def test_a_stop_by_somebody_is_no_failure_of_an_unhealthy_job(follow: Callable[..., Followed]) -> None:
    """Ctrl-C ends it for good."""
    ill = End(code=130, until_stopped=True, unhealthy=ILL)
    done = follow(ill, End(), attempts=2, events=(Event("signal", "Ctrl-C"),), **STOPPING)
    assert done.backend.calls == ["create 1", "stop"]
