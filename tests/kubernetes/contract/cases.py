"""What running jobs on a cluster must do, on any cluster: a fake one directed by scripts, and a real one.

The job of each case does by itself what its case is about. Where only a cluster can do that (an OOM kill, a pull), the
fake one is told to by a script, and the real one does it.
"""

from __future__ import annotations

import signal
import subprocess
from typing import Any

import pytest

from tests.conftest import Runs
from tests.kubernetes.asking import wait_until
from tests.kubernetes.contract.things import everything, make_stranger, refused_pods
from tests.kubernetes.contract.user import GIVES_UP_SOON, Place, User, job_lines, once
from tests.kubernetes.pods import Pod
from tests.kubernetes.scripts import cannot_mount
from tests.run.keeper_contract import causes
from tests.run.store_contract import MakeJob, StoreContract

FOREVER = "trap 'echo stopping; sleep 1; exit 7' TERM; echo ready; while :; do sleep 0.1; done"
LONG = "x" * 40_000
NO_CONFIG = {"type": "config", "source": "no-such-config", "target": "/config", "read_only": True}
NO_SECRET = {"kubernetes": "no-such-secret/key", "as": "file"}


class ClusterRuns(StoreContract):
    """What verbs do with runs on a cluster, as on every target."""

    @pytest.fixture
    def options(self) -> tuple[str, ...]:
        """Return what names the target."""
        return ("--target", "kubernetes")

    @pytest.fixture
    def make_job(self, user: User) -> MakeJob:
        """Write the user's job."""
        return user.writes

    @pytest.fixture
    def trainlaunch(self, user: User) -> Runs:
        """Run the user's commands."""

        def run(*args: str) -> subprocess.CompletedProcess[str]:
            done = user.starts(*args)
            code = done.end()
            return subprocess.CompletedProcess(args, code, bytes(done.out).decode(), done.said)

        return run


class RunContract:
    """Following a job to its end."""

    @pytest.mark.parametrize("code", [0, 3, 255])
    def test_up_ends_with_the_jobs_own_code(self, user: User, code: int) -> None:
        """Its exit code, and nothing of its output is lost, doubled or changed."""
        script = f"echo first; echo; printf 'wide ü✓\\tand {LONG[:20_000]}{LONG[:20_000]}\\n'; "
        script += f"echo last >&2; sleep 1; exit {code}"
        up = user.up(script=script)
        assert up.end() == code, up.words()
        expected = ["first", "", f"wide ü✓\tand {LONG}"]
        assert [each for each in up.lines if each != "last"] == expected  # stderr takes another way to the node's file
        assert up.lines.count("last") == 1

    def test_many_lines_come_once_each_and_in_order(self, user: User) -> None:
        """20,000 lines, as fast as a shell prints them."""
        up = user.up(script="seq 1 20000; sleep 1")
        assert up.end() == 0, up.words()
        assert up.lines == [str(each) for each in range(1, 20_001)]

    def test_logs_and_wait_tell_the_same_afterwards(self, user: User) -> None:
        """From any other terminal: the log's bytes and the exit code."""
        up = user.up(script="seq 1 50; sleep 1; exit 4")
        assert up.end() == 4, up.words()
        logs = user.runs("logs")
        assert job_lines(bytes(logs.out)) == up.lines
        assert user.runs("wait").process.returncode == 4

    def test_every_verb_gives_the_same_causes(self, user: User) -> None:
        """`up`, `wait`, `status`, `logs -f` and `attach`: one diagnosis of one run."""
        says = "RuntimeError: unable to write to file </torch_1_2>: No space left on device (28)"
        up = user.up(script=f"echo '{says}' >&2; sleep 1; exit 1")
        assert up.end() == 1, up.words()
        first = causes(up.said)
        assert len(first) == 1
        for verb in (["wait"], ["logs", "-f"], ["attach"]):
            done = user.starts(*verb, "job.yaml")
            assert (done.end(), causes(done.said)) == (1, first), done.words()
        status = user.runs("status")
        assert causes(bytes(status.out).decode()) == first

    def test_the_place_is_shown_before_anything_is_made(self, user: User, place: Place) -> None:
        """Namespace and object stand on stderr."""
        up = user.up(command=["true"])
        assert up.end() == 0, up.words()
        assert place.namespace in up.said
        assert user.name in up.said

    def test_a_detached_job_goes_on(self, user: User) -> None:
        """`-d` prints the object's name and returns at once; `wait` has the code."""
        up = user.up("-d", script="sleep 1; echo done; exit 6")
        assert up.end() == 0, up.words()
        assert user.name in bytes(up.out).decode()
        assert "trainlaunch logs" in up.said
        assert "trainlaunch down" in up.said
        assert user.runs("wait").process.returncode == 6

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_leaves_the_job_alone(self, user: User, number: signal.Signals) -> None:
        """A laptop's Ctrl-C must not stop a job of many machines: the commands to go on with are printed."""
        up = user.up(script="echo ready; sleep 4; echo went on; sleep 1; exit 5").until("ready").tell(number)
        assert up.end() == 130, up.words()
        assert "trainlaunch logs" in up.said
        assert "trainlaunch down" in up.said
        followed = user.starts("logs", "-f", "job.yaml")
        assert followed.end() == 5, followed.words()
        assert followed.lines == ["ready", "went on"]

    def test_an_interrupt_stops_the_job_where_that_is_asked_for(self, user: User) -> None:
        """Its own SIGTERM handler runs."""
        up = user.up("--stop-on-interrupt", script=FOREVER).until("ready").tell(signal.SIGINT)
        code = up.end()
        assert code != 0, up.words()
        assert "stopping" in up.lines

    def test_the_same_job_twice_is_refused_while_the_first_goes_on(self, user: User) -> None:
        """TL506 names the object and `--replace`."""
        first = user.up(script="echo ready; sleep 6; exit 9").until("ready")
        second = user.starts("up", "job.yaml")
        assert second.end() == 125, second.words()
        assert once(second.said, "error[TL506]")
        assert "--replace" in second.said
        assert first.end() == 9, first.words()

    def test_replace_deletes_the_old_one_first(self, user: User) -> None:
        """The pod of the first is gone when that of the second starts."""
        assert user.up(script="echo once; sleep 1; exit 9").end() == 9
        again = user.starts("up", "job.yaml", "--replace")
        assert again.end() == 9, again.words()
        assert again.lines == ["once"]

    def test_down_leaves_nothing_and_touches_nothing_else(self, user: User, place: Place, others: set[str]) -> None:
        """Everything of the job goes, running or not, and nothing that isn't the job's."""
        up = user.up(script=FOREVER).until("ready")
        stranger = make_stranger(place, user.name)
        down = user.runs("down")
        assert down.process.returncode == 0, down.words()
        assert everything(place) == others | {stranger}
        assert up.end() != 0


class EndContract:
    """Ends that a cluster makes, told with their cause."""

    def test_a_kill_for_memory_is_explained(self, user: User, place: Place) -> None:
        """137, with the limit in the sentence; `tail` keeps the line that never ends."""
        place.pods_do(_killed_for_memory)
        up = user.up(script="exec tail /dev/zero")
        assert up.end() == 137, up.words()
        assert "cause[TL6" in up.said
        assert "256Mi" in up.said
        assert "memory" in up.said

    def test_wrong_files_stop_with_78_and_are_never_tried_again(self, user: User, place: Place) -> None:
        """The preflight's sentence is told; max_attempts 3 makes one pod."""
        place.pods_do(_wrong_files)
        up = user.up(env={"TMPDIR": "/no/such/folder"}, restart={"max_attempts": 3})
        assert up.end() == 78, up.words()
        assert "preflight stopped (78)" in up.words()
        assert bytes(up.out).decode().count("preflight stopped (78)") <= 1

    def test_a_deadline_ends_the_job_and_is_named(self, user: User) -> None:
        """The field of the object, not a clock of ours."""
        up = user.up(script=FOREVER, active_deadline="5s")
        assert up.end() != 0, up.words()
        assert "active_deadline" in up.said
        assert "stopping" in up.lines

    @pytest.mark.parametrize("kind", ["job", "pod"])
    def test_a_deadline_denies_no_exit_code(self, user: User, kind: str) -> None:
        """The handler's own 7 is told, and its last lines; a pod is called Failed before its process has ended."""
        saving = (
            "trap 'echo saving; sleep 2; echo saved; sleep 1; exit 7' TERM; echo ready; while :; do sleep 0.1; done"
        )
        fields = {"kubernetes": {"kind": kind}, "stop_grace_period": "20s"}
        up = user.up(script=saving, active_deadline="5s", **fields)
        assert up.end() == 7, up.words()
        assert up.lines == ["ready", "saving", "saved"]
        assert "with exit code 7" in up.said
        assert "no process of it left an exit code" not in up.said
        assert "active_deadline" in up.said

    def test_a_second_attempt_is_followed_too(self, user: User) -> None:
        """Two pods one after the other; the last one's code counts."""
        up = user.up(script="echo attempt; sleep 1; exit 2", restart={"max_attempts": 2})
        assert up.end() == 2, up.words()
        assert up.lines == ["attempt", "attempt"]


class PendingContract:
    """Why nothing runs yet."""

    def test_an_image_that_is_not_there_ends_with_125(self, user: User, place: Place) -> None:
        """A wait that never ends by itself does not go on for ever."""
        user.speed = GIVES_UP_SOON
        place.pods_do(lambda pod: pod.wait("ErrImageNeverPull", f'Container image "{pod.image}" is not present'))
        up = user.up(image="trainlaunch.invalid/none:1", pull_policy="never", command=["true"])
        assert up.end() == 125, up.words()
        assert "trainlaunch.invalid/none:1" in up.said

    def test_a_missing_secret_ends_with_125(self, user: User, place: Place) -> None:
        """CreateContainerConfigError, with the cluster's own words."""
        user.speed = GIVES_UP_SOON
        missing = 'secret "no-such-secret" not found'
        place.pods_do(lambda pod: pod.wait("CreateContainerConfigError", missing))
        up = user.up(command=["true"], secrets={"KEY": {"kubernetes": "no-such-secret/key"}})
        assert up.end() == 125, up.words()
        assert missing in up.said

    @pytest.mark.parametrize(
        ("fields", "volume", "line", "words"),
        [
            ({"mounts": [NO_CONFIG]}, "mount-0", "mounts", 'configmap "no-such-config" not found'),
            ({"secrets": {"KEY": NO_SECRET}}, "secret-0", "secrets", 'secret "no-such-secret" not found'),
        ],
        ids=["config", "secret"],
    )
    def test_what_is_mounted_and_missing_ends_with_125_too(
        self, user: User, place: Place, fields: dict[str, Any], volume: str, line: str, words: str
    ) -> None:
        """The status says ContainerCreating for ever; an event names it, and the line of the job file stands there."""
        user.speed = GIVES_UP_SOON
        place.pods_do(cannot_mount(volume, words))
        up = user.up(command=["true"], **fields)
        assert up.end() == 125, up.words()
        assert words in up.said
        assert f"{line}." in up.said
        assert "job.yaml:" in up.said
        assert "giving up after 20s" in up.said

    def test_no_room_on_any_node_is_waited_for_and_said_once(self, user: User, place: Place) -> None:
        """The scheduler's words, with the field of the job file that asks for it."""
        place.pods_do(lambda pod: pod.unschedulable("0/1 nodes are available: 1 Insufficient cpu."))
        up = user.up(command=["true"], resources={"cpus": 4000, "memory": "256Mi"}, shm_size="64Mi")
        up.until("Insufficient cpu", err=True)
        up.until("resources.cpus, job.yaml:", err=True).tell(signal.SIGINT)
        assert up.end() == 130, up.words()
        assert once(up.said, "Insufficient cpu")

    def test_a_quota_is_waited_for_and_said_once(self, user: User, place: Place, no_pods: str) -> None:
        """No pod exists, so only the Job's events say it."""
        up = user.up(command=["true"]).until(no_pods, err=True)
        wait_until(lambda: refused_pods(user.place) > 1)
        assert up.tell(signal.SIGINT).end() == 130, up.words()
        assert once(up.said, no_pods)

    def test_what_the_server_refuses_is_said_at_the_line_of_the_job_file(self, user: User) -> None:
        """Nothing is made; the field of the API and the place in the file are both there."""
        before = everything(user.place)
        up = user.up(command=["true"], user="4294967296")
        assert up.end() == 125, up.words()
        assert "runAsUser" in up.said
        assert "must be between 0 and 2147483647, inclusive" in up.said
        assert "--> job.yaml:" in up.said
        assert everything(user.place) == before


class RoleContract:
    """What the Role of docs/kubernetes-runs.md is enough for: `user` has nothing else."""

    def test_every_verb_works(self, user: User) -> None:
        """Nothing is missing, and no line is about kinds that may not be listed."""
        up = user.up(script="echo ready; sleep 3; echo last; sleep 1; exit 4")
        assert up.end() == 4, up.words()
        assert up.lines == ["ready", "last"]
        done = [up, *(user.runs(verb) for verb in ("status", "logs", "wait", "attach", "down"))]
        assert [each.process.returncode for each in done] == [4, 1, 0, 4, 4, 0], [each.words() for each in done]
        ps = user.starts("ps", "--target", "kubernetes")
        assert ps.end() == 0, ps.words()
        assert not [each.words() for each in done if "you may not" in each.said]

    def test_two_nodes_come_with_a_service(self, user: User) -> None:
        """`up` makes it, `down` takes it along."""
        up = user.up("-d", script="sleep 3600", torchrun={"nnodes": 2, "nproc_per_node": 1})
        assert up.end() == 0, up.words()
        down = user.runs("down")
        assert down.process.returncode == 0, down.words()
        assert once(down.said, "removed Service")

    def test_one_line_names_kinds_that_were_not_looked_at(self, user: User) -> None:
        """Only where nothing was found: the run may be of such a kind."""
        user.writes()
        for verb in ("status", "down"):
            done = user.starts(verb, "nothing-of-the-kind", "--target", "kubernetes")
            assert done.end() == 3, done.words()
            assert once(done.said, "you may not list")
            assert "jobsets" in done.said


def _killed_for_memory(pod: Pod) -> None:
    pod.say("trainlaunch: preflight passed: /dev/shm 64 MiB (needs 0), memory 256 MiB, 1 CPUs, num_workers 0\n")
    pod.sleep(0.3)
    pod.exit(137, "OOMKilled")


def _wrong_files(pod: Pod) -> None:
    said = "trainlaunch: preflight stopped (78): uid 1000 can't make files in /no/such/folder; set TMPDIR to /dev/shm"
    pod.say(said + "\n")
    pod.exit(78, message=said)
