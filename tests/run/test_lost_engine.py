"""The engine goes away for good while `up` follows: said, 125, and the job goes on. A lost connection is no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Runs
from tests.run.conftest import ROOT, containers_of
from tests.run.gate import Gate
from tests.run.proxy import ENGINE, Proxy
from tests.run.test_up import Start, ended, read_until

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not ENGINE.is_socket(), reason=f"the engine is not at {ENGINE}"),
]
# An engine that is away is given up sooner, and one that is silent is asked sooner.
SOON = (
    "import sys, trainlaunch.run.base.sessions as lasting, trainlaunch.run.docker.streams as following\n"
    "lasting.BACK_SECONDS, following.LOOK_SECONDS = 2.0, 0.5\n"
    "from trainlaunch.cli.main import main; sys.exit(main())"
)


@pytest.fixture
def start_soon() -> Iterator[Start]:
    """Start `trainlaunch ARGS` with less patience; a process that outlives its test is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*args: str, **env: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "launcher"), **env}
        pipe = subprocess.PIPE
        started.append(subprocess.Popen([sys.executable, "-c", SOON, *args], env=environment, stdout=pipe, stderr=pipe))
        return started[-1]

    yield run
    for each in started:
        each.kill()
        each.communicate()


def test_a_lost_engine_is_125_and_the_job_goes_on(
    make_job: Callable[..., Path], proxy: Proxy, trainlaunch: Runs, job_name: str, start_soon: Start, gate: Gate
) -> None:
    """After a while, here two seconds: no new attempt, the way to follow it again, and its code is still to be had."""
    command = ["/bin/sh", "-c", f"echo ready; {gate.waits}; exit 13"]
    job = str(make_job(command=command, mounts=gate.mounts, restart={"max_attempts": 3}))
    process = start_soon("up", job, DOCKER_HOST=f"unix://{proxy.path}")
    read_until(process, b"ready\n")
    proxy.cut()
    code, _, err = ended(process)
    assert code == 125
    assert "the engine went away; waiting up to 2s for it to come back" in err
    assert "the engine was lost while following" in err
    assert f"trainlaunch logs -f {job_name}" in err
    assert "attempt 2" not in err
    gate.open()
    assert trainlaunch("wait", job).returncode == 13


def test_who_only_looks_outlives_an_engine_that_is_away(
    start: Start, make_job: Callable[..., Path], proxy: Proxy, trainlaunch: Runs, job_name: str, gate: Gate
) -> None:
    """`wait`, `logs -f` of all and of a part, `attach`: said, no line lost or doubled, the job's own code."""
    script = f"seq 1 50; {gate.waits_for('away')}; seq 51 100; {gate.waits}; seq 101 150; exit 13"
    job = make_job(command=["/bin/sh", "-c", script], mounts=gate.mounts)
    assert trainlaunch("up", "-d", str(job)).returncode == 0
    host = f"unix://{proxy.path}"
    looking = {
        words: start(*words, job_name, DOCKER_HOST=host)
        for words in (("wait",), ("logs", "-f"), ("logs", "-f", "--tail", "2", "--timestamps"), ("attach",))
    }
    seen = {words: read_until(each, b"\n") for words, each in looking.items() if words != ("wait",)}
    read_until(looking["wait",], b" to end\n", stderr=True)  # by then it has reached the engine
    seen["wait",] = b""
    proxy.cut()
    away = {words: read_until(each, b"the engine went away", stderr=True) for words, each in looking.items()}
    gate.open("away")
    again = Proxy(proxy.path)
    try:
        back = {words: read_until(each, b"the engine is back", stderr=True) for words, each in looking.items()}
        gate.open()
        results = {words: ended(each) for words, each in looking.items()}
    finally:
        again.cut()
    numbers = [str(number) for number in range(1, 151)]
    for words, (code, rest, last) in results.items():
        err = (away[words] + back[words]).decode() + last
        assert code == 13, (words, err)
        assert err.count("the engine went away; waiting up to 60s for it to come back") == 1, (words, err)
        assert "the engine is back, and the job goes on" in err, (words, err)
        lines = [line.rpartition(" ")[2] for line in (seen[words].decode() + rest).splitlines()]
        assert lines == ([] if words == ("wait",) else numbers[150 - len(lines) :]), words
        assert len(lines) == 150 or words[-1] not in {"-f", "attach"}


def test_a_lost_connection_is_made_again(start: Start, make_job: Callable[..., Path], proxy: Proxy, gate: Gate) -> None:
    """Every stream breaks while the engine is there: each line comes once, and the code is the job's."""
    script = f"seq 1 20; {gate.waits}; seq 21 40; exit 13"
    job = str(make_job(command=["/bin/sh", "-c", script], mounts=gate.mounts))
    process = start("up", job, DOCKER_HOST=f"unix://{proxy.path}")
    seen = read_until(process, b"\n3\n").decode()
    proxy.hang_up()
    until_asked(proxy, "follow=1")  # a stream that breaks in the moment of the job's end is taken for a whole one
    gate.open()
    code, rest, err = ended(process)
    assert (code, seen + rest) == (13, "".join(f"{number}\n" for number in range(1, 41))), err


@pytest.mark.parametrize(
    "words",
    [
        ("up",),
        ("logs", "-f"),
        pytest.param(("wait",), marks=pytest.mark.long),
        pytest.param(("logs", "-f", "--tail", "5"), marks=pytest.mark.long),
        pytest.param(("attach",), marks=pytest.mark.long),
    ],
)
def test_a_connection_that_falls_silent_is_not_waited_for(
    start_soon: Start,
    make_job: Callable[..., Path],
    proxy: Proxy,
    trainlaunch: Runs,
    gate: Gate,
    words: tuple[str, ...],
) -> None:
    """As through a dead tunnel: open, and without a byte. The end is the engine's word, and the output its log's."""
    script = f"echo ready; {gate.waits}; echo after; echo dead >&2; exit 13"
    job = str(make_job(command=["/bin/sh", "-c", script], mounts=gate.mounts))
    if words != ("up",):
        assert trainlaunch("up", "-d", job).returncode == 0
    process = start_soon(*words[:1], job, *words[1:], DOCKER_HOST=f"unix://{proxy.path}")
    told = words == ("wait",)
    read_until(process, b" to end\n" if told else b"ready\n", stderr=told)
    until_asked(proxy, "/wait" if told or words == ("up",) else "follow=1")
    proxy.fall_silent()
    gate.open()
    code, out, err = ended(process, timeout=45)  # an idle connection of the engine's client takes a minute
    assert code == 13, err
    if not told:
        assert out == "after\n"
        assert err.count("dead\n") == 1 + err.count("last line: dead\n")


def test_what_comes_while_a_connection_is_silent_is_shown(
    start_soon: Start, make_job: Callable[..., Path], proxy: Proxy, gate: Gate
) -> None:
    """The job goes on and writes: a stream that has none of it is taken up anew."""
    script = f"echo ready; {gate.waits_for('silent')}; echo 1; echo 2"
    script += f"; i=0; until [ -e {gate.folder}/over ]; do sleep 0.3; i=$((i+1)); echo more $i; done"
    job = str(make_job(command=["/bin/sh", "-c", script], mounts=gate.mounts))
    process = start_soon("up", job, DOCKER_HOST=f"unix://{proxy.path}")
    seen = read_until(process, b"ready\n")
    until_asked(proxy, "/wait")
    proxy.fall_silent()
    gate.open("silent")
    seen += read_until(process, b"more 3\n")
    gate.open("over")
    code, out, err = ended(process)
    lines = (seen.decode() + out).splitlines()
    assert (code, lines) == (0, ["ready", "1", "2", *(f"more {each}" for each in range(1, len(lines) - 2))]), err


def test_an_engine_far_away_is_no_dead_one(start_soon: Start, make_job: Callable[..., Path], proxy: Proxy) -> None:
    """Each call takes its time, the output comes late and seldom, and no stream is taken up anew."""
    proxy.seconds = 0.15
    job = str(make_job(command=["/bin/sh", "-c", "for each in 1 2; do echo $each; sleep 2; done"]))
    process = start_soon("up", job, DOCKER_HOST=f"unix://{proxy.path}")
    code, out, err = ended(process)
    assert (code, out) == (0, "1\n2\n"), err
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


def test_a_verb_asks_no_more_where_more_runs_are_kept(
    make_job: Callable[..., Path], proxy: Proxy, trainlaunch: Runs, job_name: str
) -> None:
    """An engine far away takes its time for each question; `down` takes a run away each time.

    JSON of `ps` describes each container once: Docker's own and Compose's are in one engine, and each target asks for
    its own.
    """
    job, host = str(make_job(command=["true"])), {"DOCKER_HOST": f"unix://{proxy.path}"}
    counts: dict[str, list[list[str]]] = {}
    for more in (2, 3):
        for _ in range(more):
            assert trainlaunch("up", job).returncode == 0
        for words in (["ps"], ["status", job_name], ["logs", job_name], ["down", job_name]):
            proxy.asked.clear()
            done = trainlaunch(*words, env=host)
            assert done.returncode == 0, done.stderr
            known = [f"/containers/{each}" for each in ("json", *containers_of(job_name), *removed(proxy))]
            asked = [each for each in proxy.asked if any(own in each for own in known)]
            counts.setdefault(words[0], []).append(asked)
    assert "GET" in "".join(counts["ps"][0])
    assert all(len(after) <= len(before) for before, after in counts.values()), counts
    proxy.asked.clear()
    told = trainlaunch("ps", "-o", "json", env=host)
    runs = [each for each in json.loads(told.stdout)["runs"] if each["job"] == job_name]
    own = [container["id"] for each in runs for container in each["containers"]]
    assert len(own) == 3
    assert [sum(name in each for each in proxy.asked) for name in own] == [1, 1, 1]


def until_asked(proxy: Proxy, what: str) -> None:
    """Wait until the engine was asked for something through a proxy."""
    until = time.monotonic() + 30
    while not any(what in each for each in list(proxy.asked)):
        assert time.monotonic() < until, proxy.asked
        time.sleep(0.05)


def removed(proxy: Proxy) -> list[str]:
    """Return the ids of containers that were removed through a proxy."""
    return [each.split("/containers/")[1].partition("?")[0] for each in proxy.asked if each.startswith("DELETE")]
