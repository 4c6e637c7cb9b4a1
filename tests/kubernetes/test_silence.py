"""A pod whose ENTRYPOINT runs nothing behind it completes, and the cluster calls that a success."""

from __future__ import annotations

import pytest

from tests.kubernetes.contract.user import User
from tests.kubernetes.pods import Pod
from tests.kubernetes.processes import PASSED
from tests.kubernetes.scripts import prints
from tests.kubernetes.server import FakeCluster

FRONT = ["/entrypoint.sh"]
NEVER = "without a word of the preflight, so the job never ran (125)"


@pytest.mark.parametrize("lines", [(), ("serving",)], ids=["nothing", "its-own-lines"])
def test_a_job_that_never_ran_is_125_for_every_verb(user: User, fake: FakeCluster, lines: tuple[str, ...]) -> None:
    """The Job is Complete; the log has not one line of ours."""
    fake.pods_do(prints(*lines))
    up = user.up(command=["true"], image_entrypoint=FRONT)
    assert up.end() == 125, up.words()
    assert NEVER in up.words()
    assert "left an exit code" not in up.words()
    for verb in (["wait"], ["logs", "-f"]):
        done = user.runs(*verb)
        assert (done.end(), NEVER in done.words()) == (125, True), done.words()
    status = user.runs("status")
    assert (status.end(), NEVER in status.words()) == (1, True)


@pytest.mark.parametrize("silent", ["before-it", "no-front", "rotated"])
def test_a_good_run_stays_good(user: User, fake: FakeCluster, silent: str) -> None:
    """The line may come late; without a front nothing is in doubt; a log that lost its beginning proves nothing."""

    def script(pod: Pod) -> None:
        pod.start()
        if silent == "rotated":
            fake.clock.skew += 30
        pod.say("entrypoint\n" * 3)
        if silent == "before-it":
            pod.say(PASSED)
        pod.exit(0)

    fake.pods_do(script)
    up = user.up(command=["true"], **({} if silent == "no-front" else {"image_entrypoint": FRONT}))
    assert up.end() == 0, up.words()
    assert user.runs("wait").end() == 0
    assert user.runs("status").end() == 0
