"""What the wrapper does for secrets and finds of AMD's GPUs, under each shell."""

from __future__ import annotations

import pytest
from trainlaunch.exit_codes import EXIT_FILES_WRONG, EXIT_TRY_ELSEWHERE

from tests.preflight.containers import EVERY_SHELL, SHELLS, SHM, Case, RunsCases, StartsPrograms, program
from tests.preflight.plans import plan
from tests.preflight.test_shm_in_containers import passed, stopped

pytestmark = pytest.mark.docker

VALUE = "a $HOME 'b' \"c\" \\d %s\nsecond line \\n"
WRITTEN = {"A": {"env": "A", "as": "file"}, "B": {"env": "B", "as": "file"}}
FOLDER = "rm -rf /run/secrets; mkdir -m 1777 /run/secrets"
KFD = "rm -f /dev/kfd; touch /dev/kfd; chown 0:109 /dev/kfd; chmod 660 /dev/kfd"


@EVERY_SHELL
def test_a_variable_becomes_a_file_and_leaves_the_environment(run_cases: RunsCases) -> None:
    """Byte for byte, for this uid alone."""
    script = 'cat "$A_FILE" /run/secrets/B; stat -c " %a %u" /run/secrets/A; echo "${A-unset} ${B-unset}"'
    job = plan(command=["sh", "-c", script], secrets=WRITTEN)
    env = {"A": VALUE, "B": "", "A_FILE": "/run/secrets/A", "B_FILE": "/run/secrets/B"}
    cases = [Case(job, env=env, setup=FOLDER, user=user) for user in (0, 1000)]
    for user, ends in zip((0, 1000), run_cases(cases, SHM), strict=True):
        passed(ends, f"{VALUE} 400 {user}\nunset unset\n")


def test_a_place_that_cannot_be_written_or_read_is_named(run_cases: RunsCases) -> None:
    """Both are the files' fault, and each names its uid and path."""
    job = plan(command=["true"], secrets=WRITTEN)
    env = {"A": "x", "B": "y", "A_FILE": "/run/secrets/A", "B_FILE": "/run/secrets/B"}
    closed = "rm -rf /run/secrets; mkdir -m 755 /run/secrets"
    bound = plan(command=["true"], secrets={"A": {"file": "./a", "as": "file"}})
    unreadable = f"{FOLDER}; echo x >/run/secrets/A; chmod 400 /run/secrets/A"
    cases = [Case(job, env=env, setup=closed, user=1000), Case(bound, env=env, setup=unreadable, user=1000)]
    write, read = run_cases(cases, SHM)
    stopped(write, EXIT_FILES_WRONG, "uid 1000 can't write /run/secrets/A")
    stopped(read, EXIT_FILES_WRONG, "uid 1000 can't read /run/secrets/A")
    assert "Permission denied" not in write.err


def test_compose_files_become_variables(run_cases: RunsCases) -> None:
    """Without the line breaks at the end, as a shell's own $(cat file) gives them."""
    job = plan(target="compose", command=["sh", "-c", 'printf "%s|" "$A"'], secrets={"A": {"file": "./a"}})
    made = f"{FOLDER}; printf '%s\\n\\n' 'x  $y' >/run/secrets/A"
    gone = f"{FOLDER}"
    ends, missing = run_cases([Case(job, setup=made), Case(job, setup=gone)], SHM)
    passed(ends, "x  $y|")
    stopped(missing, EXIT_FILES_WRONG, "uid 0 can't read /run/secrets/A")


def test_gpus_of_amd_are_a_device_node_that_the_job_can_open(run_cases: RunsCases) -> None:
    """75 where there is none, 78 with the group to add where this uid may not open it; NVIDIA's nodes don't count."""
    job = plan(resources={"gpus": 1, "gpu_vendor": "amd"}, command=["true"])
    cases = [
        Case(job, setup="rm -f /dev/kfd; touch /dev/nvidia0"),
        Case(job, setup=KFD),
        Case(job, setup=KFD, user=1000),
        Case(job, setup=f"{KFD}; chmod 666 /dev/kfd", user=1000),
    ]
    missing, of_root, closed, opened = run_cases(cases, SHM)
    stopped(missing, EXIT_TRY_ELSEWHERE, "no /dev/kfd is here")
    passed(of_root, "")
    stopped(closed, EXIT_FILES_WRONG, 'uid 1000 can\'t open /dev/kfd; add "109" to group_add')
    passed(opened, "")


def test_an_empty_mount_that_the_job_cannot_write_is_warned_of(run_cases: RunsCases) -> None:
    """An engine gives a new volume to root where the image has no such folder."""
    mounts = [{"type": "scratch", "target": "/scratch disk"}, {"type": "bind", "source": "/", "target": "/fast"}]
    job = plan(command=["true"], mounts=mounts, working_dir="/tmp")
    made = "mkdir -p '/scratch disk' /fast; chmod 755 '/scratch disk' /fast"
    for user, warned in ((0, False), (1000, True)):
        (ended,) = run_cases([Case(job, setup=made, user=user, cwd="/tmp")], SHM)
        assert ("warning: can't write to /scratch disk" in ended.err) is warned
        assert "/fast" not in ended.err


def test_no_value_is_an_argument_of_any_process(start_programs: StartsPrograms) -> None:
    """The wrapper writes a value by a shell's own printf; a program of that name would have it in its arguments."""
    asked = [program(*words, "-c", "command -v printf") for words in SHELLS.values()]
    assert [each.out for each in start_programs(asked, SHM)] == ["printf\n"] * len(SHELLS)
