"""CPUs that the wrapper finds, and what the job gets from it: variables, arguments, streams, exit codes."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest
from trainlaunch.exit_codes import EXIT_FILES_WRONG, EXIT_TRY_ELSEWHERE

from tests.preflight.containers import EVERY_SHELL, SHM, Case, RunsCases
from tests.preflight.plans import automatic, plan, prints
from tests.preflight.test_shm_in_containers import passed, stopped

pytestmark = pytest.mark.docker

ON_GPU = {"gpus": 1, "cpus": 64, "memory": "64Gi"}
GPU = "touch /dev/nvidia0"
SHOWN = ("TRAINLAUNCH_NUM_WORKERS", "OMP_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS", "RAYON_NUM_THREADS")


def test_cpus_are_those_of_quota_and_cpuset(run_cases: RunsCases) -> None:
    """OMP_NUM_THREADS does not count, which fools nproc (rt-nproc-honours-omp-num-threads)."""
    case = Case(automatic(command=prints(*SHOWN), resources=ON_GPU), setup=GPU)
    preset = Case(case.plan, setup=GPU, env={"OMP_NUM_THREADS": "7", "OMP_THREAD_LIMIT": "9"})
    host = os.cpu_count() or 1
    for flags, found in (((), host), (("--cpus=0.5",), 1), (("--cpus=1",), 1), (("--cpuset-cpus=0",), 1)):
        ended, with_preset = run_cases([case, preset], SHM, *flags)
        passed(ended, f"{min(16, found)} {max(1, min(4, found // 4))} {found} 1\n")
        passed(with_preset, f"{min(16, found)} 7 {found} 1\n")


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="an engine with one CPU gives no container 1.5")
def test_one_and_a_half_cpus_are_one(run_cases: RunsCases) -> None:
    """Half a CPU is no place for a worker."""
    case = Case(automatic(command=prints(*SHOWN), resources=ON_GPU), setup=GPU)
    passed(run_cases([case], SHM, "--cpus=1.5")[0], "1 1 1 1\n")


def test_quota_has_the_period_of_its_own_group(run_cases: RunsCases) -> None:
    """`cpu-period` is not always 100 ms."""
    case = Case(automatic(command=prints(*SHOWN), resources=ON_GPU), setup=GPU, allowed_cpus="0-15")
    ended = run_cases([case], SHM, "--cpu-period=20000", "--cpu-quota=39000")[0]
    passed(ended, "1 1 1 1\n")


def test_affinity_lists_are_counted(run_cases: RunsCases) -> None:
    """As the kernel prints them; the plan's 64 workers are never exceeded."""
    told = {"0": 1, "0-3": 4, "0-3,8,10-11": 7, "5,7": 2, "0-127": 64}
    loader = {"max_workers": 64}
    of_gpu = automatic(loader=loader, command=prints("TRAINLAUNCH_NUM_WORKERS"), resources=ON_GPU, shm_size="1Gi")
    cases = [Case(of_gpu, setup=GPU, allowed_cpus=each) for each in told]
    for ended, found in zip(run_cases(cases, "--shm-size=1g"), told.values(), strict=True):
        passed(ended, f"{found}\n")


def test_cpus_of_cgroup_version_2(run_cases: RunsCases, tmp_path: Path) -> None:
    """One file holds quota and period, or `max`; it may lack the last line's end."""
    told = {"600000 100000\n": 6, "150000 100000\n": 1, "max 100000\n": 8, "max": 8, "1 100000": 1, "500000 100000": 5}
    plan_on_gpu = automatic(command=prints(*SHOWN[::2]), resources=ON_GPU)
    cases = [Case(plan_on_gpu, setup=f"{GPU}; {written('cpu.max', each)}", allowed_cpus="0-7") for each in told]
    for ended, found in zip(run_cases(cases, SHM, *cgroup_files(tmp_path, "cpu.max")), told.values(), strict=True):
        passed(ended, f"{found} {found}\n")


def cgroup_files(folder: Path, *names: str) -> list[str]:
    """Return the flags that put files in the place of the cgroup's, which a case writes."""
    for each in names:
        (folder / each).touch()
    return [f"--volume={folder / each}:/sys/fs/cgroup/{each}" for each in names]


def written(name: str, text: str) -> str:
    """Return the shell text that writes such a file."""
    return f"printf %s {shlex.quote(text)} >/sys/fs/cgroup/{name}"


def test_memory_limit_of_cgroup_version_1(run_cases: RunsCases) -> None:
    """/dev/shm is charged to the limit: a limit below need can never do, whoever uses it."""
    case = Case(plan(command=["true"]))
    stopped(
        run_cases([case], SHM, "--memory=18m")[0],
        EXIT_FILES_WRONG,
        "of 18 MiB",
        "set resources.memory to 1024Mi",
    )
    passed(run_cases([case], SHM, "--memory=64m")[0], "")


def test_memory_limit_of_cgroup_version_2(run_cases: RunsCases, tmp_path: Path) -> None:
    """78 when the limit is too low, 75 when others use it."""
    told = {
        ("max\n", "99999999999\n"): 0,
        ("10000000\n", "1000\n"): EXIT_FILES_WRONG,
        ("268435456\n", "258435456\n"): EXIT_TRY_ELSEWHERE,
        ("268435456\n", "1\n"): 0,
    }
    setups = [f"{written('memory.max', limit)}; {written('memory.current', used)}" for limit, used in told]
    cases = [Case(plan(target="local", command=["true"]), setup=each) for each in setups]
    ended = run_cases(cases, SHM, *cgroup_files(tmp_path, "memory.max", "memory.current"))
    assert [each.code for each in ended] == [*told.values()], ended


def test_cached_files_are_free_memory_of_a_host_under_cgroup_version_1(run_cases: RunsCases) -> None:
    """A limit that is full of files which were read is no reason to stop: the kernel drops them for /dev/shm."""
    fill = "head -c 60000000 /dev/zero >/var/big; cat /var/big >/dev/null"
    full = f"{fill}; [ $(($(cat /sys/fs/cgroup/memory/memory.usage_in_bytes) >> 20)) -ge 50 ]"
    case = Case(plan(target="local", command=["true"]), setup=f"set -e; {full}")
    passed(run_cases([case], SHM, "--memory=64m")[0], "")


def test_cached_files_are_free_memory_of_a_host_under_cgroup_version_2(run_cases: RunsCases, tmp_path: Path) -> None:
    """Active and inactive ones; what is in /dev/shm counts as neither."""
    told = {
        "anon 9\nfile 250000000\ninactive_file 5000000\nactive_file 5000000\n": 0,
        "file 250000000\nshmem 250000000\ninactive_file 10\ninactive_anon 250000000\n": EXIT_TRY_ELSEWHERE,
    }
    limit = "; ".join(written(*each) for each in (("memory.max", "268435456"), ("memory.current", "258435456")))
    setups = [f"{limit}; {written('memory.stat', each)}" for each in told]
    cases = [Case(plan(target="local", command=["true"]), setup=each) for each in setups]
    ended = run_cases(cases, SHM, *cgroup_files(tmp_path, "memory.max", "memory.current", "memory.stat"))
    assert [each.code for each in ended] == [*told.values()], ended


def test_cpu_only_job_gets_no_worker_below_four_cpus(run_cases: RunsCases) -> None:
    """One worker made a job on one CPU seven times slower. torch refuses prefetch_factor and the like without one."""
    names = (*SHOWN, "TRAINLAUNCH_PREFETCH_FACTOR", "TRAINLAUNCH_PERSISTENT_WORKERS", "TRAINLAUNCH_TIMEOUT")
    command = [
        "sh",
        "-c",
        "echo " + " ".join(f"[${each}]" for each in names) + ' "$@"',
        "-",
        "{num_workers}",
        "p={prefetch_factor}",
    ]
    job = automatic(loader={"timeout": 30, "persistent_workers": True}, command=command, resources={"cpus": 32})
    assert job.num_workers.value == 8
    few, more, most = run_cases([Case(job, allowed_cpus=each) for each in ("0-2", "0-11", "0-63")], SHM)
    passed(few, "[0] [3] [3] [] [] [0] [0] 0 p=\n")
    passed(more, "[3] [9] [12] [1] [2] [1] [30] 3 p=2\n")
    passed(most, "[8] [56] [64] [1] [2] [1] [30] 8 p=2\n")


def test_ranks_share_the_cpus(run_cases: RunsCases) -> None:
    """Workers and threads are those of one rank."""
    job = automatic(command=prints(*SHOWN), resources={"gpus": 4, "cpus": 64}, loader={"batch_size": 1})
    cases = [Case(job, setup=GPU, allowed_cpus=each) for each in ("0-1", "0-31", "0-127")]
    two, thirty_two, all_of_them = run_cases(cases, SHM)
    passed(two, "1 1 1 1\n")
    passed(thirty_two, "8 2 8 1\n")
    passed(all_of_them, "16 4 32 1\n")


def test_stated_workers_stay_and_are_warned_about(run_cases: RunsCases) -> None:
    """The user's own setting wins."""
    job = plan(loader={"num_workers": 3}, command=prints("TRAINLAUNCH_NUM_WORKERS"))
    few, enough = run_cases([Case(job, allowed_cpus="0-1"), Case(job, allowed_cpus="0-2")], SHM)
    passed(few, "3\n")
    passed(enough, "3\n")
    assert "warning: 3 DataLoader workers share 2 CPUs" in few.err
    assert "warning" not in enough.err


@EVERY_SHELL
def test_job_reads_its_loader_from_the_environment(run_cases: RunsCases) -> None:
    """A thread variable that is set inside stays, an empty one too; so does a run's own id."""
    job = plan(
        loader={"pin_memory": True, "persistent_workers": True, "timeout": 9, "prefetch_factor": 4},
        command=["env", "-0"],
    )
    own = {
        "MKL_NUM_THREADS": "5",
        "RAYON_NUM_THREADS": "",
        "TRAINLAUNCH_RUN_ID": "mine",
        "TRAINLAUNCH_NUM_WORKERS": "9",
    }
    named = Case(plan(command=["cat", "/proc/sys/kernel/hostname"]))
    plain, preset, host = run_cases([Case(job), Case(job, env=own), named], SHM)
    expected = {
        "TRAINLAUNCH_NUM_WORKERS": "2",
        "TRAINLAUNCH_PREFETCH_FACTOR": "4",
        "TRAINLAUNCH_BATCH_SIZE": "64",
        "TRAINLAUNCH_PIN_MEMORY": "1",
        "TRAINLAUNCH_PERSISTENT_WORKERS": "1",
        "TRAINLAUNCH_TIMEOUT": "9",
        "TRAINLAUNCH_SHM_BYTES": "268435456",
        "TRAINLAUNCH_RUN_ID": f"digits-{host.out.strip()}",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "NUMEXPR_NUM_THREADS": "1",
        "RAYON_NUM_THREADS": "1",
        "OPENCV_FOR_THREADS_NUM": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "2",
    }
    kept = {"MKL_NUM_THREADS": "5", "RAYON_NUM_THREADS": "", "TRAINLAUNCH_RUN_ID": "mine"}
    shells_own = {"PATH", "HOME", "PWD", "SHLVL", "_", "OLDPWD"}
    assert {key: value for key, value in plain.variables.items() if key not in shells_own} == expected
    assert {key: value for key, value in preset.variables.items() if key not in shells_own} == expected | kept


def test_inject_off_leaves_the_environment_alone(run_cases: RunsCases) -> None:
    """Not one variable of ours, thread variables included; tokens are the command's own."""
    job = automatic(loader={"inject": "off"}, command=["env", "-0", "W={num_workers}"], resources={"cpus": 16})
    own = {"OMP_NUM_THREADS": "3", "tlx": "y"}
    ended = run_cases([Case(job, env=own, allowed_cpus="0-15")], SHM)[0]
    assert ended.variables.keys() - {"PATH", "HOME", "PWD", "SHLVL", "_", "OLDPWD"} == {"OMP_NUM_THREADS", "tlx", "W"}
    assert ended.variables["W"] == "4"


@EVERY_SHELL
def test_arguments_arrive_byte_for_byte(run_cases: RunsCases) -> None:
    """Only a whole token, or one right after an equals sign that ends its argument, is replaced."""
    sent = {
        "{num_workers}": "2",
        "--workers={num_workers}": "--workers=2",
        "loader.batch={batch_size}": "loader.batch=64",
        "-p={prefetch_factor}": "-p=2",
        "={nproc_per_node}": "=1",
        "{{num_workers}}": "{num_workers}",
        "a=b={{batch_size}}": "a=b={batch_size}",
        "line\nend={num_workers}": "line\nend=2",
        '{"workers": {num_workers}}': None,
        '{"a":1}': None,
        "x{num_workers}": None,
        "{num_workers}x": None,
        "{num_workers}\n": None,
        "{{{num_workers}}}": "{{num_workers}}",
        "{{{num_workers}}": None,
        "{unknown}": None,
        "--x={}": None,
        "": None,
        "\n\n": None,
        "ends\n": None,
        " $HOME `id` $(id) \\ ' \" * ? [a] ~ # ; & | ": None,
        "-n": None,
        "--": None,
        "ünïcödé ⚙\t\x01\x7f": None,
    }
    show = "import json, sys; print(json.dumps(sys.argv[1:]))"
    job = plan(command=["python3", "-c", show, *sent])
    (each,) = run_cases([Case(job)], SHM)
    expected = [text if new is None else new for text, new in sent.items()]
    assert (each.code, json.loads(each.out)) == (0, expected), each.err


@EVERY_SHELL
def test_tokens_in_variables_are_filled_as_in_arguments(run_cases: RunsCases) -> None:
    """Arguments keep their order and bytes; a script's own text gets variables alone, even one that ends as a token."""
    sent = {"W": "{num_workers}", "OPTIONS": "-p 1 --workers={num_workers}", "LITERAL": "{{num_workers}}", "X": "a {b}"}
    shown = 'echo "$W|$OPTIONS|$LITERAL|$X"'
    by_command = plan(command=["sh", "-c", f'{shown} "$@"', "sh", "a b", "{num_workers}"], env=sent)
    by_script = plan(command=None, script=f"{shown} n={{num_workers}}", env=sent)
    command, script = run_cases([Case(by_command, env=sent), Case(by_script, env=sent)], SHM)
    filled = "2|-p 1 --workers=2|{num_workers}|a {b}"
    assert (command.code, command.out) == (0, f"{filled} a b 2\n"), command.err
    assert (script.code, script.out) == (0, f"{filled} n={{num_workers}}\n"), script.err


@EVERY_SHELL
def test_exit_codes_and_streams_are_the_jobs_own(run_cases: RunsCases) -> None:
    """127 and 126 as every shell says them; standard input reaches the job, standard output is its alone."""
    commands = {
        ("cat",): 0,
        ("sh", "-c", "exit 42"): 42,
        ("sh", "-c", "exit 75"): 75,
        ("sh", "-c", "kill -KILL $$"): -9,
        ("no-such-program",): 127,
        ("/no/such/program",): 127,
        ("/etc/passwd",): 126,
        ("/tmp",): 126,
        # names that the wrapper's shell or the wrapper itself would take for its own
        ("tl_stop", "3"): 127,
        ("exit", "3"): 127,
    }
    scripts = {"exit 7": 7, "false; echo no": 1, "echo $nosuch": 2, "no-such-program": 127, "kill -KILL $$": 137}
    cases = [Case(plan(command=list(each)), stdin="read me") for each in commands]
    cases += [Case(plan(command=None, script=each)) for each in scripts]
    for ended, code in zip(run_cases(cases, SHM), [*commands.values(), *scripts.values()], strict=True):
        assert ended.code == code, ended
        assert ended.out in {"", "read me"}


def test_script_reads_standard_input_and_its_name(run_cases: RunsCases) -> None:
    """`$0` is `script`, there are no arguments, errors stop it."""
    job = plan(command=None, script='read -r line\necho "$0 $# $line"\nfalse\necho not here\n')
    (each,) = run_cases([Case(job, stdin="one line\n")], SHM)
    assert (each.code, each.out) == (1, "script 0 one line\n"), each.err


def test_temporary_directory_is_proved(run_cases: RunsCases) -> None:
    """Without one a worker can't pass a batch on, and training hangs for ever; so does a path too long for a socket."""
    case = Case(plan(command=["true"]))
    longest = "/tmp/" + "x" * 70
    cases = [
        case,
        Case(case.plan, env={"TMPDIR": "/dev/shm"}),
        Case(case.plan, env={"TMPDIR": "/nowhere", "TEMP": "/tmp"}),
        Case(case.plan, env={"TMPDIR": longest}, setup=f"mkdir -p {longest}"),
        Case(case.plan, env={"TMPDIR": longest + "x"}, setup=f"mkdir -p {longest}x"),
        Case(case.plan, env={"TEMP": longest + "x"}, setup=f"mkdir -p {longest}x"),
        Case(case.plan, user=1000, cwd="/tmp", setup="chmod 755 /tmp"),
        Case(case.plan, user=1000, env={"HOME": "/root"}, setup="chmod 1777 /tmp"),
    ]
    plain, in_shm, unwritable, long, too_long, too_long_temp, closed, other = run_cases(cases, SHM)
    passed(plain, "")
    passed(in_shm, "")
    stopped(unwritable, EXIT_FILES_WRONG, "can't make files in /nowhere", "TMPDIR to /dev/shm")
    passed(long, "")
    stopped(too_long, EXIT_FILES_WRONG, "is 76 long", "75")
    stopped(too_long_temp, EXIT_FILES_WRONG, "is 76 long")
    passed(closed, "")  # /var/tmp is left
    passed(other, "")
    assert "/root" not in other.err, "it got a home of its own"
    read_only, with_tmpdir = run_cases([case, cases[1]], SHM, "--read-only")
    stopped(read_only, EXIT_FILES_WRONG, "can't make files in /tmp", "workers would hang")
    (without,) = run_cases([Case(plan(command=["true"], loader={"num_workers": 0}), env=cases[2].env)], SHM)
    passed(without, "")
    assert "warning: uid 0 can't make files in /nowhere" in without.err
    passed(with_tmpdir, "")


def test_open_files_are_raised_to_the_hard_limit_or_refused(run_cases: RunsCases) -> None:
    """The strategy file_descriptor holds one open file per tensor."""
    case = Case(plan(loader={"sample": [{"shape": [1], "dtype": "int64"}] * 100}, command=["sh", "-c", "ulimit -S -n"]))
    assert case.plan.open_files == 464
    passed(run_cases([case], SHM, "--ulimit=nofile=256:464")[0], "464\n")
    stopped(run_cases([case], SHM, "--ulimit=nofile=256:463")[0], EXIT_FILES_WRONG, "463", "464")


def test_missing_gpu_is_a_fault_of_the_machine_and_missing_torchrun_of_the_files(run_cases: RunsCases) -> None:
    """75 may succeed elsewhere; an image without torchrun never does."""
    on_gpu, with_torchrun = plan(resources={"gpus": 1}, command=["true"]), plan(torchrun={}, command=["true"])
    made = 'touch /dev/nvidia3; cd /usr/bin; printf \'#!/bin/sh\\nprintf "[%%s]" "$@"\\n\' >torchrun; chmod +x torchrun'
    cases = [
        Case(on_gpu, setup="rm -f /dev/nvidia*"),
        Case(with_torchrun),
        Case(on_gpu, setup=made),
        Case(with_torchrun),
    ]
    no_gpu, no_torchrun, gpu, torchrun = run_cases(cases, SHM)
    stopped(no_gpu, EXIT_TRY_ELSEWHERE, "/dev/nvidia0")
    stopped(no_torchrun, EXIT_FILES_WRONG, "torchrun is not on PATH")
    passed(gpu, "")
    assert torchrun.out.endswith("[--no-python][true]")


def test_last_word_goes_to_the_termination_log(run_cases: RunsCases) -> None:
    """Where Kubernetes shows it in the pod's status."""
    case = Case(plan(resources={"gpus": 1}, command=["true"]), setup="rm -f /dev/nvidia*; : >/dev/termination-log")
    shown = Case(plan(command=["cat", "/dev/termination-log"]))
    stop, log = run_cases([case, shown], SHM)
    assert log.out == stop.err
