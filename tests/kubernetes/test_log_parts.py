"""`logs --tail --since --timestamps --attempt` of pods, from what the kubelet keeps."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from trainlaunch.run.base.clock import SECOND, rfc3339

from tests.kubernetes.contract.user import User
from tests.kubernetes.pods import Pod
from tests.kubernetes.server import FakeCluster

BEGUN = 1_790_000_000 * SECOND


def says(word: str, code: int) -> Callable[[Pod], None]:
    """Return a script that prints a line each half second."""

    def script(pod: Pod) -> None:
        for number in range(10):
            pod.say(f"{word} {number}\n", at=BEGUN + number * SECOND // 2)
        pod.exit(code)

    return script


def printed(user: User, *words: str) -> list[str]:
    """Return the lines that `logs` prints."""
    done = user.runs("logs", *words)
    assert done.process.returncode == 0, done.words()
    return bytes(done.out).decode().splitlines()


def test_a_part_of_a_pods_log(user: User, fake: FakeCluster) -> None:
    """Tail and since are exact though the API takes whole seconds; the times are the kubelet's."""
    fake.pods_do(says("one", 4), says("two", 0))
    assert user.up(command=["true"], restart={"max_attempts": 2}).end() == 0
    assert printed(user, "--attempt", "1") == [f"one {number}" for number in range(10)]
    assert printed(user, "--attempt", "2", "--tail", "2") == ["two 8", "two 9"]
    late = rfc3339(BEGUN + 7 * SECOND // 2)
    assert printed(user, "--attempt", "2", "--since", late) == ["two 7", "two 8", "two 9"]
    (last,) = printed(user, "--attempt", "1", "--timestamps", "--tail", "1")
    assert last == f"{rfc3339(BEGUN + 9 * SECOND // 2)} one 9"
    missing = user.runs("logs", "--attempt", "3")
    assert missing.process.returncode == 3
    assert "has no attempt 3" in missing.said


@pytest.mark.parametrize("cut", [0, 150])
def test_the_end_of_a_log_is_followed_over_a_cut(user: User, fake: FakeCluster, cut: int) -> None:
    """Each line that comes afterwards once, and the end has the cause that the whole log gives."""

    seen = threading.Event()

    def slow(pod: Pod) -> None:
        pod.say("RuntimeError: unable to write to file </torch_1_2>: No space left on device (28)\n")
        for number in range(40):
            pod.say(f"{number}\n")
        seen.wait(60)
        for number in range(40, 60):
            pod.say(f"{number}\n")
        pod.exit(1)

    fake.pods_do(slow)
    up = user.up("-d", command=["true"])
    assert up.end() == 0, up.words()
    cuts = fake.fail("get", "pods/log", reset=True, after=cut)
    followed = user.starts("logs", "-f", "job.yaml", "--tail", "3").until("\n39\n")
    seen.set()
    assert followed.end() == 1, followed.words()
    assert cuts.seen == 1
    assert followed.lines == [str(number) for number in range(37, 60)]
    assert "cause[TL6" in followed.said


def test_a_log_whose_beginning_was_rotated_away_says_so(user: User, fake: FakeCluster) -> None:
    """The API reads the newest file only: the number of lines alone would look whole."""

    def script(pod: Pod) -> None:
        pod.say("trainlaunch: preflight passed: /dev/shm 64 MiB\n" + "early\n" * 3)
        fake.clock.skew += 600
        pod.log.rotate()
        pod.say("late\n")
        pod.exit(0)

    fake.pods_do(script)
    assert user.up("-d", command=["true"]).end() == 0
    assert user.runs("wait").process.returncode == 0
    done = user.runs("logs")
    assert bytes(done.out) == b"late\n"
    assert done.said.count("its node has rotated away what came before") == 1
    assert "rotated" not in user.runs("logs", "--tail", "1").said
