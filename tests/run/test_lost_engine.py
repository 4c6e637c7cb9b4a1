"""The engine goes away for good while `up` follows: said, 125, and the job goes on. A lost connection is no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Runs
from tests.run.conftest import ROOT, containers_of
from tests.run.proxy import ENGINE, Proxy
from tests.run.test_up import Start, ended, read_until

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not ENGINE.is_socket(), reason=f"the engine is not at {ENGINE}"),
]
SOON = (
    "import sys, trainlaunch.run.base.reconnect as lasting; lasting.BACK_SECONDS = 2.0\n"
    "from trainlaunch.cli.main import main; sys.exit(main())"
)


def test_a_lost_engine_is_125_and_the_job_goes_on(
    make_job: Callable[..., Path], proxy: Proxy, trainlaunch: Runs, job_name: str
) -> None:
    """After a while, here two seconds: no new attempt, the way to follow it again, and its code is still to be had."""
    script = "echo ready; sleep 8; exit 13"
    job = str(make_job(command=["/bin/sh", "-c", script], restart={"max_attempts": 3}))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "launcher"), "DOCKER_HOST": f"unix://{proxy.path}"}
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", SOON, "up", job], env=environment, stdout=pipe, stderr=pipe)
    read_until(process, b"ready\n")
    proxy.cut()
    code, _, err = ended(process)
    assert code == 125
    assert "the engine went away; waiting up to 2s for it to come back" in err
    assert "the engine was lost while following" in err
    assert f"trainlaunch logs -f {job_name}" in err
    assert "attempt 2" not in err
    assert trainlaunch("wait", job).returncode == 13


def test_who_only_looks_outlives_an_engine_that_is_away(
    start: Start, make_job: Callable[..., Path], proxy: Proxy, trainlaunch: Runs, job_name: str
) -> None:
    """`wait`, `logs -f` of all and of a part, `attach`: said, no line lost or doubled, the job's own code."""
    script = "i=0; while [ $i -lt 150 ]; do i=$((i+1)); echo $i; sleep 0.1; done; exit 13"
    assert trainlaunch("up", "-d", str(make_job(command=["/bin/sh", "-c", script]))).returncode == 0
    host = f"unix://{proxy.path}"
    looking = {
        words: start(*words, job_name, DOCKER_HOST=host)
        for words in (("wait",), ("logs", "-f"), ("logs", "-f", "--tail", "2", "--timestamps"), ("attach",))
    }
    seen = {words: read_until(each, b"\n") for words, each in looking.items() if words != ("wait",)}
    read_until(looking["wait",], b" to end\n", stderr=True)  # by then it has reached the engine
    seen["wait",] = b""
    proxy.cut()
    time.sleep(1.5)
    again = Proxy(proxy.path)
    try:
        results = {words: ended(each) for words, each in looking.items()}
    finally:
        again.cut()
    numbers = [str(number) for number in range(1, 151)]
    for words, (code, rest, err) in results.items():
        assert code == 13, (words, err)
        assert err.count("the engine went away; waiting up to 60s for it to come back") == 1, (words, err)
        assert "the engine is back, and the job goes on" in err, (words, err)
        lines = [line.rpartition(" ")[2] for line in (seen[words].decode() + rest).splitlines()]
        assert lines == ([] if words == ("wait",) else numbers[150 - len(lines) :]), words
        assert len(lines) == 150 or words[-1] not in {"-f", "attach"}


def test_a_lost_connection_is_made_again(start: Start, make_job: Callable[..., Path], proxy: Proxy) -> None:
    """Every stream breaks while the engine is there: each line comes once, and the code is the job's."""
    script = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo $i; sleep 0.1; done; exit 13"
    process = start("up", str(make_job(command=["/bin/sh", "-c", script])), DOCKER_HOST=f"unix://{proxy.path}")
    seen = read_until(process, b"\n3\n").decode()
    proxy.hang_up()
    code, rest, err = ended(process)
    assert (code, seen + rest) == (13, "".join(f"{number}\n" for number in range(1, 41))), err


WAITS = "echo ready; until [ -e /wait/over ]; do sleep 0.1; done; echo after; echo dead >&2; exit 13"


@pytest.mark.parametrize("words", [("up",), ("wait",), ("logs", "-f"), ("logs", "-f", "--tail", "5"), ("attach",)])
def test_a_connection_that_falls_silent_is_not_waited_for(
    start: Start, make_job: Callable[..., Path], proxy: Proxy, trainlaunch: Runs, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """As through a dead tunnel: open, and without a byte. The end is the engine's word, and the output its log's."""
    (tmp_path / "wait").mkdir()
    mounts = [{"type": "bind", "source": "./wait", "target": "/wait"}]
    job = str(make_job(command=["/bin/sh", "-c", WAITS], mounts=mounts))
    if words != ("up",):
        assert trainlaunch("up", "-d", job).returncode == 0
    process = start(*words[:1], job, *words[1:], DOCKER_HOST=f"unix://{proxy.path}")
    told = words == ("wait",)
    read_until(process, b" to end\n" if told else b"ready\n", stderr=told)
    until_asked(proxy, "/wait" if told or words == ("up",) else "follow=1")
    proxy.fall_silent()
    (tmp_path / "wait" / "over").touch()
    code, out, err = ended(process, timeout=45)  # an idle connection of the engine's client takes a minute
    assert code == 13, err
    if not told:
        assert out == "after\n"
        assert err.count("dead\n") == 1 + err.count("last line: dead\n")


def test_what_comes_while_a_connection_is_silent_is_shown(
    start: Start, make_job: Callable[..., Path], proxy: Proxy, tmp_path: Path
) -> None:
    """The job goes on and writes: a stream that has none of it is taken up anew."""
    (tmp_path / "wait").mkdir()
    mounts = [{"type": "bind", "source": "./wait", "target": "/wait"}]
    script = "echo ready; for each in 1 2; do until [ -e /wait/$each ]; do sleep 0.1; done; echo $each; done"
    script += "; i=0; until [ -e /wait/over ]; do sleep 1; i=$((i+1)); echo more $i; done"
    process = start(
        "up", str(make_job(command=["/bin/sh", "-c", script], mounts=mounts)), DOCKER_HOST=f"unix://{proxy.path}"
    )
    seen = read_until(process, b"ready\n")
    until_asked(proxy, "/wait")
    proxy.fall_silent()
    (tmp_path / "wait" / "1").touch()
    (tmp_path / "wait" / "2").touch()
    seen += read_until(process, b"more 3\n")
    (tmp_path / "wait" / "over").touch()
    code, out, err = ended(process)
    lines = (seen.decode() + out).splitlines()
    assert (code, lines) == (0, ["ready", "1", "2", *(f"more {each}" for each in range(1, len(lines) - 2))]), err


def test_an_engine_far_away_is_no_dead_one(
    start: Start, make_job: Callable[..., Path], proxy: Proxy, job_name: str
) -> None:
    """Each call takes its time, the output comes late and seldom, and no stream is taken up anew."""
    proxy.seconds = 0.3
    script = "for each in 1 2 3; do echo $each; sleep 5; done"
    process = start("up", str(make_job(command=["/bin/sh", "-c", script])), DOCKER_HOST=f"unix://{proxy.path}")
    code, out, err = ended(process)
    assert (code, out) == (0, "1\n2\n3\n"), err
    assert "went away" not in err
    assert sum("follow=1" in each for each in proxy.asked) == 0


def test_a_log_that_breaks_off_is_not_taken_for_a_whole_one(
    start: Start, make_job: Callable[..., Path], proxy: Proxy, trainlaunch: Runs
) -> None:
    """What came is shown, and the verb fails."""
    job = str(make_job(command=["seq", "1", "100000"]))
    assert trainlaunch("up", job).returncode == 0
    process = start("logs", job, DOCKER_HOST=f"unix://{proxy.path}")
    read_until(process, b"\n100\n")
    proxy.hang_up()
    code, out, err = ended(process)
    assert (code, "100000\n" in out) == (3, False)
    assert "error[TL501]" in err
    assert "read the log of container" in err


def until_asked(proxy: Proxy, what: str) -> None:
    """Wait until the engine was asked for something through a proxy."""
    until = time.monotonic() + 30
    while not any(what in each for each in list(proxy.asked)):
        assert time.monotonic() < until, proxy.asked
        time.sleep(0.05)


def removed(proxy: Proxy) -> list[str]:
    """Return the ids of containers that were removed through a proxy."""
    return [each.split("/containers/")[1].partition("?")[0] for each in proxy.asked if each.startswith("DELETE")]


@pytest.mark.parametrize("words", [("ps",), ("status",), ("down",), ("logs",)])
def test_a_verb_asks_no_more_where_more_runs_are_kept(
    make_job: Callable[..., Path], proxy: Proxy, trainlaunch: Runs, job_name: str, words: tuple[str, ...]
) -> None:
    """An engine far away takes its time for each question."""
    job = str(make_job(command=["true"]))
    counts = []
    for runs in (2, 4):
        for _ in range(runs):
            assert trainlaunch("up", job).returncode == 0
        proxy.asked.clear()
        done = trainlaunch(*words, *[job_name] * (words != ("ps",)), env={"DOCKER_HOST": f"unix://{proxy.path}"})
        assert done.returncode == 0, done.stderr
        known = [f"/containers/{each}" for each in ("json", *containers_of(job_name), *removed(proxy))]
        counts.append([each for each in proxy.asked if any(own in each for own in known)])
    assert "GET" in "".join(counts[0])
    assert len(counts[1]) <= len(counts[0]), counts


def test_ps_as_json_describes_each_container_once(
    make_job: Callable[..., Path], proxy: Proxy, trainlaunch: Runs, job_name: str
) -> None:
    """Docker's own and Compose's are in one engine, and each target asks for its own."""
    job = str(make_job(command=["true"]))
    for _ in range(3):
        assert trainlaunch("up", job).returncode == 0
    done = trainlaunch("ps", "-o", "json", env={"DOCKER_HOST": f"unix://{proxy.path}"})
    own = [each["id"] for each in json.loads(done.stdout)["runs"] if each["job"] == job_name]
    assert len(own) == 3
    assert [sum(name in each for each in proxy.asked) for name in own] == [1, 1, 1]
