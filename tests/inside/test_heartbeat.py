"""The page in which processes note that they wait for a batch."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.inside import heartbeat, process
from trainlaunch.inside.batch_waits import follow
from trainlaunch.inside.heartbeat import LINE, LINES, Heartbeat

from tests.conftest import ROOT

OURS = {"PYTHONPATH": str(ROOT / "launcher")}  # whatever is installed
BLANK = b" " * LINE * LINES


class Loader:
    """An iterator whose `wait` runs inside `__next__`."""

    def __init__(self, wait: Callable[[], Any]) -> None:
        self.wait = wait

    def __next__(self) -> Any:
        return self.wait()


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "heartbeat"
    path.write_bytes(BLANK)
    return path


@pytest.fixture
def kind(page: Path) -> Iterator[type[Loader]]:
    """Return an iterator class whose waits are noted, as torch's own are."""
    made: Any = type("Followed", (Loader,), {"__next__": Loader.__next__})
    follow(made, Heartbeat(str(page)), lambda: None)
    return made


def notes_of(kind: Any) -> Any:
    return kind.__next__._trainlaunch


def lines(page: Path) -> list[list[int]]:
    """Return the numbers of each line that is taken, without the process's start: pid, rank, since, batches."""
    numbers = [[int(word) for word in line.split()] for line in page.read_text().splitlines() if line.strip()]
    return [[pid, *rest] for pid, _, *rest in numbers]


def now() -> int:
    return int(float(Path("/proc/uptime").read_text().split()[0]))


def test_a_wait_is_noted_while_it_lasts(page: Path, kind: type[Loader]) -> None:
    """By the clock of /proc/uptime; batches count to 2, and nothing is noted between them."""
    seen: list[list[int]] = []
    for _ in range(4):
        assert next(kind(lambda: seen.extend(lines(page)) or "batch")) == "batch"  # type: ignore[func-returns-value]
    assert [each[0] for each in seen] == [os.getpid()] * 4
    assert [each[3] for each in seen] == [0, 1, 2, 2]
    assert all(0 <= now() - each[2] <= 5 for each in seen)
    assert lines(page) == [[os.getpid(), 0, 0, 2]]


def test_an_end_and_an_error_end_the_wait(page: Path, kind: type[Loader]) -> None:
    """They are the script's, and no batch."""

    def ends() -> None:
        raise StopIteration

    with pytest.raises(StopIteration):
        next(kind(ends))
    with pytest.raises(ZeroDivisionError):
        next(kind(lambda: 1 / 0))
    assert lines(page) == [[os.getpid(), 0, 0, 0]]


def test_a_loader_inside_a_loader_leaves_the_outer_wait(page: Path, kind: type[Loader]) -> None:
    """The wait of a dataset that iterates another loader began with the outer one."""
    seen: list[int] = []

    def outer() -> None:
        before = lines(page)[0][2]
        next(kind(lambda: seen.append(lines(page)[0][2])))
        seen.extend((before, lines(page)[0][2]))

    next(kind(outer))
    assert len(set(seen)) == 1
    assert seen[0] > 0
    assert lines(page)[0][2] == 0


def test_threads_that_wait_at_once_leave_nothing_behind(page: Path, kind: type[Loader]) -> None:
    """Whoever returns first, the longest wait of all stands there."""
    releases = [threading.Event() for _ in range(3)]
    begun = [threading.Event() for _ in range(3)]

    def wait(number: int) -> None:
        begun[number].set()
        releases[number].wait(30)

    threads = [threading.Thread(target=lambda n=n: next(kind(lambda: wait(n)))) for n in range(3)]  # type: ignore[misc]
    for thread, each in zip(threads, begun, strict=True):
        thread.start()
        each.wait(30)
    for number in (1, 0, 2):
        assert lines(page)[0][2] > 0
        releases[number].set()
        threads[number].join(30)
    assert lines(page)[0][2] == 0


def test_a_signals_handler_may_load_data(page: Path, kind: type[Loader], monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come while the process notes its own wait, in the same thread."""
    second, ended = Heartbeat._second, threading.Event()

    def interrupted(beat: Heartbeat, time: int) -> bytes:
        monkeypatch.setattr(Heartbeat, "_second", second)
        next(kind(lambda: "of the handler"))
        return second(beat, time)

    def wait() -> None:
        next(kind(lambda: "takes the line"))
        for _ in range(3):
            monkeypatch.setattr(Heartbeat, "_second", interrupted)
            notes_of(kind).beat.until = 1  # another second
            next(kind(lambda: "batch"))
            assert Heartbeat._second is second
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    assert ended.wait(30)
    assert lines(page)[0][2:] == [0, 2]


def test_a_line_says_when_its_process_started(page: Path, kind: type[Loader]) -> None:
    """As the kernel does, so that nobody is taken for it who has its pid later."""
    next(kind(lambda: "batch"))
    kernel = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    assert page.read_text().split()[:2] == [str(os.getpid()), kernel[19]]
    assert [len(each) for each in page.read_text().splitlines()[:1]] == [LINE - 1]


def test_a_wait_is_told_by_the_clock_that_the_check_reads(
    page: Path, kind: type[Loader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some containers' /proc/uptime begins with the container, and the kernel's clocks don't."""
    real = open

    def own_uptime(path: Any, *args: Any) -> Any:
        return io.StringIO("500.00 1.00\n") if path == "/proc/uptime" else real(path, *args)

    monkeypatch.setattr(heartbeat, "open", own_uptime, raising=False)
    seen: list[int] = []
    next(kind(lambda: seen.append(lines(page)[0][2])))
    assert 498 <= seen[0] <= 510


def test_processes_that_begin_at_once_have_a_line_each(page: Path) -> None:
    """As many as the page holds; one more is off."""
    text = (
        "import sys; from trainlaunch.inside import batch_waits, heartbeat\n"
        "class Ready:\n"
        "    def __next__(self): return 1\n"
        "batch_waits.follow(Ready, heartbeat.Heartbeat(sys.argv[1]), lambda: None)\n"
        "sys.stdin.readline(); next(Ready()); print(flush=True); sys.stdin.readline()\n"
    )
    page.write_bytes(b"".join(b"%-63d\n" % os.getpid() for _ in range(LINES - 8)) + b" " * LINE * 8)
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", text, str(page)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **OURS, "RANK": str(rank)},
        )
        for rank in range(9)
    ]
    try:
        for act in ("write", "read"):
            for each in ranks:
                assert each.stdin is not None
                assert each.stdout is not None
                if act == "write":
                    each.stdin.write("\n")
                    each.stdin.flush()
                else:
                    each.stdout.readline()
        own = [line.split() for line in page.read_text().splitlines() if len(line.split()) > 1]
        taken = {(int(line[0]), int(line[2])) for line in own}
        assert len(own) == 8
        assert taken < {(each.pid, rank) for rank, each in enumerate(ranks)}
    finally:
        said = [each.communicate("\n")[1] for each in ranks]
    assert sum("heartbeat is off in process" in each for each in said) == 1


def test_a_forked_process_has_a_line_of_its_own(page: Path, kind: type[Loader]) -> None:
    """Whoever forks while it waits goes on waiting; a line of a dead process is taken again."""

    def fork() -> None:
        child = os.fork()
        if child == 0:
            next(kind(lambda: None))
            os._exit(0 if len(lines(page)) == 2 else 1)
        assert os.waitpid(child, 0)[1] == 0

    next(kind(fork))
    next(kind(fork))
    assert [each[0] for each in lines(page)][:1] == [os.getpid()]
    assert len(lines(page)) == 2


def test_a_process_forked_inside_a_wait_returns_from_it(page: Path, kind: type[Loader]) -> None:
    """It returns from a wait that its own notes don't know."""
    child = next(kind(os.fork))
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert lines(page)[0][2] == 0


def test_a_worker_has_no_line(page: Path) -> None:
    """What a worker's dataset iterates is the wait of whoever waits for that worker."""
    made: Any = type("Followed", (Loader,), {"__next__": Loader.__next__})
    follow(made, Heartbeat(str(page)), lambda: "a worker")
    assert next(made(lambda: 1)) == 1
    assert page.read_bytes() == BLANK


@pytest.mark.parametrize("damage", ["missing", "short", "full", "folder"])
def test_a_page_that_cannot_be_used_fails_no_job(
    page: Path, kind: type[Loader], damage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Said once."""
    if damage == "short":
        page.write_text("")
    elif damage == "full":
        page.write_bytes(b"".join(b"%-63d\n" % os.getppid() for _ in range(LINES)))
    else:
        page.unlink()
        if damage == "folder":
            page.mkdir()
    assert [next(kind(lambda: 1)) for _ in range(3)] == [1, 1, 1]
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"trainlaunch: heartbeat is off in process {os.getpid()}: ")


@pytest.mark.parametrize(
    ("env", "rank"), [({}, 0), ({"RANK": "3", "LOCAL_RANK": "1"}, 3), ({"RANK": "x"}, 0), ({"SLURM_PROCID": "5"}, 5)]
)
def test_a_rank_is_its_launchers(monkeypatch: pytest.MonkeyPatch, env: dict[str, str], rank: int) -> None:
    """As the sentence of the health check names it."""
    for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert process.rank() == rank


def test_a_wait_that_goes_on_can_be_read_from_another_process(page: Path) -> None:
    """An mmap moves no mtime, but its text is there at once."""
    text = (
        "import sys, time; from trainlaunch.inside import batch_waits, heartbeat\n"
        "class Slow:\n"
        "    def __next__(self): print(flush=True); time.sleep(60)\n"
        "batch_waits.follow(Slow, heartbeat.Heartbeat(sys.argv[1]), lambda: None); next(Slow())\n"
    )
    argv = [sys.executable, "-c", text, str(page)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={**os.environ, **OURS})
    try:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(1.1)
        ((pid, rank, since, batches),) = lines(page)
        assert (pid, rank, batches) == (process.pid, 0, 0)
        assert 1 <= now() - since <= 30
    finally:
        process.kill()
        process.communicate()


def test_a_loop_is_noted_by_less_after_its_second_batch(page: Path) -> None:
    """What is done for each batch then is within one function; an end and another epoch are told in full again."""

    def loads() -> str:
        if ends:
            raise StopIteration
        return "batch"

    made: Any = type("Followed", (Loader,), {"__next__": Loader.__next__})
    follow(made, Heartbeat(str(page)), lambda: None)
    ends: list[bool] = []
    iterator, plain = made(loads), []
    for _ in range(4):
        next(iterator)
        plain.append(iterator._trainlaunch_wait.plain)
    ends.append(True)
    assert next(iterator, None) is None
    plain.append(iterator._trainlaunch_wait.plain)
    assert plain == [False, True, True, True, False]
    assert lines(page)[0][2:] == [0, 2]
