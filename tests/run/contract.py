"""What every backend must do, whatever it starts things with. A backend's test module subclasses BackendContract.

The subclass gives two fixtures: `backend`, and `make_plan_of`, which returns the plan of a small job with a name of its
own and other fields over it, whose image has /bin/sh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from trainlaunch.errors import TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import Backend, Chunk, ContainerInfo, Session
from trainlaunch.run.base.clock import SECOND, nanoseconds
from trainlaunch.run.base.log_position import LogPart, position_of

MakePlan = Callable[..., LaunchPlan]
Begin = Callable[..., tuple[str, Session]]
READY = b"ready\n"
WAITS = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.1; done"
DEAF = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


def joined(chunks: list[Chunk], *, stderr: bool) -> bytes:
    """Return the bytes of one stream."""
    return b"".join(each.data for each in chunks if each.stderr is stderr)


def wait_until_ready(session: Session) -> None:
    """Read up to the line that says that the job has set its traps."""
    seen = b""
    for chunk in session.chunks():
        seen += b"" if chunk.stderr else chunk.data
        if READY in seen:
            return
    pytest.fail(f"the job ended before it was ready: {seen!r}")


def look(backend: Backend, container: str) -> ContainerInfo:
    """Describe a container that must be there."""
    found = backend.inspect(container)
    assert found is not None
    return found


class BeginsContainers:
    """The fixture that all parts of the contract have in common."""

    @pytest.fixture
    def begin(self, backend: Backend) -> Iterator[Begin]:
        """Create and start a container; its session is closed afterwards."""
        sessions: list[Session] = []

        def create_and_begin(plan: LaunchPlan, run: str = "0123abcd") -> tuple[str, Session]:
            container = backend.create(plan, run, 1)
            sessions.append(backend.begin(container))
            return container, sessions[-1]

        yield create_and_begin
        for session in sessions:
            session.close()


class ShmContract(BeginsContainers):
    """How a backend sees /dev/shm and workers of a running job; apart, since a backend may have two ways."""

    def test_shm_is_read_while_it_runs(self, backend: Backend, begin: Begin, make_plan_of: MakePlan) -> None:
        """Used bytes, size and the number of DataLoader workers, by their process name."""
        script = (
            "cp /bin/sleep /tmp/pt_data_worker; /tmp/pt_data_worker 60 & first=$!; /tmp/pt_data_worker 60 & "
            "until grep -q pt_data /proc/$first/comm && grep -q pt_data /proc/$!/comm; do sleep 0.1; done; "
            "dd if=/dev/zero of=/dev/shm/batch bs=1M count=5 2>/dev/null; " + WAITS
        )
        container, session = begin(make_plan_of(command=["/bin/sh", "-c", script]))
        wait_until_ready(session)
        reading = backend.read_shm(look(backend, container))
        assert reading is not None
        assert 5 << 20 <= reading.used < 6 << 20
        assert (reading.size, reading.workers) == (64 << 20, 2)


class UserContract:
    """Whose the processes are; apart, since target local has no user of its own."""

    @pytest.mark.parametrize("read_only", [False, True], ids=["own-root", "read-only-root"])
    def test_a_uid_without_a_name_has_a_name_and_a_home(
        self, backend: Backend, begin: Begin, make_plan_of: MakePlan, read_only: bool
    ) -> None:
        """As in a pod: getpass.getuser() finds a name, and the caches of torch, Triton and matplotlib are writable."""
        names = ("XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "MPLCONFIGDIR")
        folders = " ".join(f'"${each}"' for each in names)
        script = f'echo "$USER $LOGNAME $MINE"; mkdir -p {folders}; cd "$HOME"; touch x; ls -A'
        plan = make_plan_of(
            command=["/bin/sh", "-euc", script], user="1042:1042", read_only=read_only, env={"MINE": "my-own"}
        )
        _, session = begin(plan)
        chunks = list(session.chunks())
        assert session.exit_code() == 0, chunks
        assert joined(chunks, stderr=False) == b"trainlaunch trainlaunch my-own\n.cache\nx\n"
        assert b"warning" not in joined(chunks, stderr=True).replace(b"warning: can't write to /\n", b"")


def as_shown(container: ContainerInfo) -> tuple[object, ...]:
    """Return what the table of `ps` and the choice of a run are made of."""
    names = ("id", "name", "job", "run", "attempt", "max_attempts", "status", "exit_code", "ended", "own_shm", "target")
    more = ("owner", "measures", "gpus", "node", "project", "engine")
    return (*(getattr(container, name) for name in (*names, *more)), int(container.created))


class CreatingContract(BeginsContainers):
    """What creating in another way could break, by the interface of trainlaunch.run.base.backend only."""

    def test_an_attempt_is_on_record_and_knows_its_number(self, backend: Backend, make_plan_of: MakePlan) -> None:
        """What `status` needs is found again without the job file.

        Its number is beside the folder of its checkpoints; what the job sets itself stays.
        """
        for env, number in (({}, b"2\n"), ({"TRAINLAUNCH_ATTEMPT": "mine"}, b"mine\n")):
            command = ["/bin/sh", "-c", 'echo "$TRAINLAUNCH_ATTEMPT"']
            plan = make_plan_of(command=command, env=env, restart={"max_attempts": 3})
            container = backend.create(plan, "aaaaaaaa", 2)
            made = look(backend, container)
            assert (made.status, made.exit_code, made.ended) == ("created", None, False)
            assert (made.job, made.run, made.attempt, made.max_attempts) == (plan.job.name, "aaaaaaaa", 2, 3)
            assert (made.planned.need, made.planned.size) == (plan.shm.need, plan.shm.size.value)
            assert (made.shm_size, made.memory) == (plan.shm.size.value, plan.memory.limit)
            session = backend.begin(container)
            assert joined(list(session.chunks()), stderr=False) == number
            assert session.exit_code() == 0
            session.close()
            backend.remove(container)

    def test_one_run_of_a_job_goes_on_beside_those_that_ended(
        self, backend: Backend, begin: Begin, make_plan_of: MakePlan
    ) -> None:
        """Session, wait and inspect agree on an exit code; an ended run is kept as NAME-RUN, and the newest is first.

        A list tells of each what its description does, in the same order: of runs of one second too. Another run
        beside the one that goes on is refused by TL506; a job whose name merely starts the same is another job.
        """
        for number, code in enumerate((0, 127, 255)):
            container, session = begin(make_plan_of(command=["/bin/sh", "-c", f"exit {code}"]), run=f"{number}" * 8)
            assert session.exit_code() == code
            assert backend.wait(container) == code
            ended = look(backend, container)
            assert (ended.status, ended.exit_code, ended.ended) == ("exited", code, True)
        plan = make_plan_of(command=["/bin/sh", "-c", WAITS])
        container, session = begin(plan, run="3" * 8)
        wait_until_ready(session)
        told, known = backend.listed(plan.job.name), backend.runs(plan.job.name)
        assert [each.run for each in known] == [each * 8 for each in "3210"]
        assert [each.name for each in known] == [plan.name, *(f"{plan.name}-{each * 8}" for each in "210")]
        assert [as_shown(each) for each in told] == [as_shown(each) for each in known]
        with pytest.raises(TargetUnavailable) as refused:
            backend.create(plan, "89abcdef", 1)
        assert [each.code for each in refused.value.diagnostics] == ["TL506"]
        assert look(backend, container).status == "running"
        assert backend.runs(plan.job.name[:-1]) == ()
        assert plan.job.name in {each.job for each in backend.runs()}

    def test_stop_lets_the_jobs_handler_run(self, backend: Backend, begin: Begin, make_plan_of: MakePlan) -> None:
        """SIGTERM arrives, the job's own code is the run's, and the signal is on record."""
        container, session = begin(make_plan_of(command=["/bin/sh", "-c", WAITS]))
        wait_until_ready(session)
        backend.stop(container)
        assert session.exit_code() == 7
        assert backend.signals(look(backend, container)) == (15,)

    def test_an_own_end_has_no_signals_and_what_is_removed_is_gone(
        self, backend: Backend, begin: Begin, make_plan_of: MakePlan
    ) -> None:
        """A job that kills itself with SIGTERM was not stopped by anyone; removing its run again is no error."""
        container, session = begin(make_plan_of(command=["/bin/sh", "-c", "kill -TERM $$"]))
        assert session.exit_code() == 143
        assert backend.signals(look(backend, container)) == ()
        backend.remove(container)
        backend.remove(container)
        assert backend.inspect(container) is None
        assert backend.wait(container) is None

    def test_what_can_not_start_leaves_nothing(self, backend: Backend, begin: Begin, make_plan_of: MakePlan) -> None:
        """A working directory that can't be made is refused before the first process, and the name is free again."""
        plan = make_plan_of(command=["/bin/sh", "-c", "exit 0"], working_dir="/bin/sh")
        with pytest.raises(TargetUnavailable):
            begin(plan)
        assert backend.runs(plan.job.name) == ()


class BackendContract(ShmContract, CreatingContract):
    """All of it."""

    def test_bytes_arrive_untouched_on_their_own_streams(
        self, backend: Backend, begin: Begin, make_plan_of: MakePlan
    ) -> None:
        """From the first byte to the last, no newline added, no byte decoded."""
        script = r"printf 'first\n\377\000x'; printf 'error\r' >&2; printf 'no newline'"
        _, session = begin(make_plan_of(command=["/bin/sh", "-c", script]))
        chunks = list(session.chunks())
        assert session.exit_code() == 0
        assert joined(chunks, stderr=False) == b"first\n\377\000xno newline"
        assert joined(chunks, stderr=True).endswith(b"error\r")

    def test_the_log_is_the_output(self, backend: Backend, begin: Begin, make_plan_of: MakePlan) -> None:
        """Both streams are there after the end, whole; a log is text, so its bytes are UTF-8."""
        script = "echo \u2713; seq 1 50000; printf last >&2"
        container, session = begin(make_plan_of(command=["/bin/sh", "-c", script]))
        chunks = list(session.chunks())
        expected = "\u2713\n" + "".join(f"{number}\n" for number in range(1, 50_001))
        assert joined(chunks, stderr=False) == expected.encode()
        for follow in (False, True):
            again = list(backend.logs(container, follow=follow))
            assert joined(again, stderr=False) == joined(chunks, stderr=False)
            assert joined(again, stderr=True) == joined(chunks, stderr=True)

    def test_a_part_of_the_log_is_what_was_asked_for(
        self, backend: Backend, begin: Begin, make_plan_of: MakePlan
    ) -> None:
        """The last lines, those since a time that `--timestamps` has shown, each line with its time once.

        Followed or not.
        """
        long = "x" * 40_000
        script = f"seq 1 2000; echo bad >&2; sleep 1.1; echo {long}; sleep 0.1; echo late; echo last"
        container, session = begin(make_plan_of(command=["/bin/sh", "-c", script]))
        assert session.exit_code() == 0

        for follow in (False, True):

            def part(follow: bool = follow, **asked: Any) -> bytes:
                position = position_of(LogPart(**asked))
                return joined(list(backend.logs(container, follow=follow, position=position)), stderr=False)

            assert part(tail=0) == b""
            assert part(tail=2) == b"late\nlast\n"
            assert part(tail=100_000) == part()
            lines = part(timestamps=True).splitlines(keepends=True)
            times = [nanoseconds(line.split(b" ", 1)[0].decode()) for line in lines]
            assert b"".join(line.split(b" ", 1)[1] for line in lines) == part()
            assert times == sorted(times)
            assert SECOND <= times[-1] - times[0] < 60 * SECOND
            (at,) = [when for when, line in zip(times, lines, strict=True) if line.endswith(b"xx\n")]
            assert part(since=at) == f"{long}\nlate\nlast\n".encode()
            assert part(since=at, tail=1) == b"last\n"
            assert part(since=times[-1] + 60 * SECOND) == b""

    def test_the_last_lines_of_a_log_are_followed_to_its_end(
        self, backend: Backend, begin: Begin, make_plan_of: MakePlan
    ) -> None:
        """Each line that comes afterwards comes once; which three are the last depends on when each stream was read."""
        script = "trap 'seq 501 900; exit 0' TERM; seq 1 500; echo ready; while :; do sleep 0.1; done"
        whole = [*(b"%d" % number for number in range(1, 501)), b"ready", *(b"%d" % each for each in range(501, 901))]
        container, session = begin(make_plan_of(command=["/bin/sh", "-c", script]))
        wait_until_ready(session)
        chunks = backend.follow(container, position_of(LogPart(tail=3))).chunks()
        first = next(chunks)
        backend.stop(container)
        got = joined([first, *chunks], stderr=False).splitlines()
        assert got == whole[-len(got) :]
        assert 401 <= len(got) <= 404

    def test_stop_kills_after_the_grace_period(self, backend: Backend, begin: Begin, make_plan_of: MakePlan) -> None:
        """A deaf job ends with 137, both signals are on record, and it was no out-of-memory kill."""
        plan = make_plan_of(command=["/bin/sh", "-c", DEAF], stop_grace_period="1s")
        container, session = begin(plan)
        wait_until_ready(session)
        backend.stop(container)
        assert session.exit_code() == 137
        ended = look(backend, container)
        assert backend.signals(ended) == (15, 9)
        assert not ended.oom_killed

    def test_kill_does_not_ask(self, backend: Backend, begin: Begin, make_plan_of: MakePlan) -> None:
        """One SIGKILL, 137; killing what has ended is no error."""
        container, session = begin(make_plan_of(command=["/bin/sh", "-c", DEAF]))
        wait_until_ready(session)
        backend.kill(container)
        assert session.exit_code() == 137
        backend.kill(container)
        assert backend.signals(look(backend, container)) == (9,)
