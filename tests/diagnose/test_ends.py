"""How a log ended is told from what only stands in it: caught errors, lost peers, restarts, launchers' words."""

from __future__ import annotations

import pytest
from trainlaunch.diagnose import all_causes, end_of
from trainlaunch.diagnose.base.evidence import Evidence

from tests.diagnose.corpus import CAUGHT, ORDINARY_ENDS, harmless

OWN = (
    "Traceback (most recent call last):\n"
    '  File "/w/fit.py", line 31, in <module>\n'
    "    main()\n"
    '  File "/w/fit.py", line 12, in main\n'
    "    score = scores[name]\n"
    "KeyError: 'f1'\n"
)
LOST = (
    "Traceback (most recent call last):\n"
    '  File "/w/fit.py", line 14, in main\n'
    "    dist.all_reduce(loss)\n"
    '  File "/v/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", line 3000, in all_reduce\n'
    "    work.wait()\n"
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.1.0.7]:3\n"
)
HUNG = (
    "[rank2]:[E1 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
    "OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n"
)
AGAIN = "I1 agent/server/api.py:900] [default] Worker group FAILED. 1/1 attempts left; will restart worker group\n"
LINE = "-" * 60 + "\n"


def of_rank(text: str, rank: int) -> str:
    """Return what torch's excepthook makes of a traceback."""
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


def summary(root: int, code: int, others: tuple[tuple[int, int], ...] = ()) -> str:
    """Return torchrun's last words."""

    def entry(number: int, rank: int, code: int) -> str:
        why = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
        if code < 0:
            why = f"Signal {-code} ({'SIGTERM' if code == -15 else 'SIGABRT'}) received by PID {900 + rank}"
        return (
            f"[{number}]:\n  time      : 2026-05-01_10:00:00\n  host      : n1\n"
            f"  rank      : {rank} (local_rank: {rank})\n"
            f"  exitcode  : {code} (pid: {900 + rank})\n  error_file: <N/A>\n  traceback : {why}\n"
        )

    failures = "".join(entry(number, *each) for number, each in enumerate(others, 1)) or "  <NO_OTHER_FAILURES>\n"
    return (
        f"E0501 10:00:00.1 7 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: {code}) "
        f"local_rank: "
        f"{root} (pid: {900 + root}) of binary: /v/bin/python\nTraceback (most recent call last):\n"
        '  File "/v/bin/torchrun", line 8, in <module>\n    sys.exit(main())\n'
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        f"{LINE}fit.py FAILED\n{LINE}Failures:\n{failures}{LINE}Root Cause (first observed failure):\n"
        f"{entry(0, root, code)}{LINE}"
    )


ENDS: dict[str, tuple[str, int | None, str, str]] = {
    "rank 0 raised, rank 1 lost it": (
        of_rank(OWN, 0) + "rank 1 step 9 loss 0.1\n" + of_rank(LOST, 1) + summary(0, 1, ((1, -15),)),
        1,
        "python-exception",
        "/w/fit.py:12: 'f1'",
    ),
    "rank 1 raised last in the log, and first by torchrun's word": (
        of_rank(LOST, 0) + of_rank(OWN, 1) + summary(1, 1, ((0, 1),)),
        1,
        "python-exception",
        "/w/fit.py:12",
    ),
    "without torch's prefix": (
        OWN + "rank 1 step 9 loss 0.1\n" + LOST + summary(0, 1),
        1,
        "python-exception",
        "fit.py:12",
    ),
    "a summary alone": (summary(0, 1, ((1, -15),)), 1, "rank-ended", "rank 0 ended first"),
    "a summary of which the others were aborted": (summary(3, 1, ((0, -6), (1, -6))), 1, "rank-ended", "rank 3"),
    "a summary whose root was killed": (summary(2, -9, ((0, -15),)), 1, "killed-from-outside", "for memory"),
    "another attempt after an error": (
        of_rank(OWN, 0) + AGAIN + "step 0 loss 1.0\n" + of_rank(OWN.replace("KeyError: 'f1'", "ValueError: nan"), 1),
        1,
        "python-exception",
        "ValueError",
    ),
    "the same error in each attempt": (OWN + AGAIN + OWN + summary(0, 1), 1, "python-exception", "fit.py:12"),
    "caught twice, and then not": (2 * (OWN + "retrying\nstep 3 loss 0.1\n") + OWN, 1, "python-exception", "fit.py:12"),
    "an abort at exit": (
        OWN + "free(): invalid pointer\nAborted (core dumped)\n",
        134,
        "python-exception",
        "fit.py:12",
    ),
    "a watchdog long after a caught error": (
        OWN + "falling back to accuracy\nstep 9 loss 0.1\n" + HUNG,
        1,
        "dist-timeout-secondary",
        "did not come",
    ),
    "a watchdog's abort": (HUNG + summary(2, -6), 1, "dist-timeout-secondary", "did not come"),
    "killed for memory, cancelled afterwards": (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.\n"
        "srun: error: n1: task 0: Out Of Memory\nslurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT "
        "2026-05-01T10:00:00 ***\n",
        1,
        "oom-killed",
        "Slurm's memory limit",
    ),
    "an exception, cancelled afterwards": (
        OWN + "srun: error: n1: task 0: Exited with exit code 1\n"
        "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-05-01T10:00:00 ***\n",
        1,
        "python-exception",
        "fit.py:12",
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_the_end_is_told_and_what_follows_from_it_is_an_echo(name: str) -> None:
    """The first cause, by the rank that ended by itself."""
    log, code, symptom, words = ENDS[name]
    first, *others = all_causes(Evidence(code, log))
    assert (first.symptom, words in first.sentence) == (symptom, True), first.sentence
    assert all(each.echo_of for each in others)


def test_the_end_stands_in_one_line() -> None:
    """Rank, exception, message and the script's own line; a rank without words by its code; none where it is well."""
    told = [
        end_of(Evidence(1, of_rank(OWN, 5))),
        end_of(Evidence(1, summary(2, 1))),
        end_of(Evidence(139, "step 1\n")),
        end_of(Evidence(0, OWN)),
        end_of(Evidence(None, "step 1 loss 0.1\n")),
    ]
    assert told == [
        "rank 5 raised KeyError: 'f1' at /w/fit.py:12",
        "rank 2 ended first, with exit code 1",
        "exit code 139, which is 128 + SIGSEGV",
        "",
        "",
    ]


@pytest.mark.parametrize("name", CAUGHT)
def test_what_was_caught_explains_no_end(name: str) -> None:
    """Neither an exception's, nor a silent one's, nor that of a run that goes on."""
    (own,) = all_causes(Evidence(1, CAUGHT[name] + OWN))
    assert (own.symptom, "fit.py:12" in own.sentence) == ("python-exception", True)
    killed = [each.symptom for each in all_causes(Evidence(137, CAUGHT[name] + harmless(30)))]
    assert killed == ["killed-from-outside"]
    assert all(each.confidence == "possible" for each in all_causes(Evidence(None, ORDINARY_ENDS[name])))


def test_a_line_that_imports_and_a_program_of_an_installer_are_nobodys_mistake() -> None:
    """What is broken is what is installed."""
    log = (
        "Traceback (most recent call last):\n"
        '  File "/opt/venv/bin/accelerate", line 8, in <module>\n    sys.exit(main())\n'
        '  File "/w/fit.py", line 1, in <module>\n    import transformers\n'
        '  File "/v/lib/python3.12/site-packages/transformers/utils.py", line 40, in <module>\n    from x import y\n'
        "AttributeError: module 'x' has no attribute 'z'\n"
    )
    (found,) = all_causes(Evidence(1, log))
    assert "correct what" not in found.fix
    assert "site-packages/transformers/utils.py" in found.fix


FRAMES = 'Traceback (most recent call last):\n  File "/w/fit.py", line 3, in <module>\n    start()\n'
KINDS: dict[str, tuple[str, int, str, str]] = {
    "gcc": (FRAMES + "FileNotFoundError: [Errno 2] No such file or directory: 'gcc'\n", 1, "module-missing", "gcc"),
    "a file named like one": (
        FRAMES + "FileNotFoundError: [Errno 2] No such file or directory: 'git.txt'\n",
        1,
        "file-missing",
        "git.txt",
    ),
    "CUDA_HOME": (
        FRAMES + "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.\n",
        1,
        "module-missing",
        "nvcc",
    ),
    "an extension of another torch": (
        FRAMES + "ImportError: /v/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so: undefined symbol: "
        "_ZN3c105ErrorC2E\n",
        1,
        "module-missing",
        "another version of torch",
    ),
    "NumPy 2": (
        FRAMES + "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96\n",
        1,
        "module-missing",
        "another NumPy",
    ),
    "glibc": (
        FRAMES + "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by x.so)\n",
        1,
        "module-missing",
        "GLIBC_2.34",
    ),
    "cv2": (FRAMES + "ModuleNotFoundError: No module named 'cv2'\n", 1, "module-missing", "no module cv2"),
    "libGL": (
        FRAMES + "ImportError: libGL.so.1: cannot open shared object file: No such file or directory\n",
        1,
        "module-missing",
        "libGL.so.1",
    ),
    "versions of the driver": (
        "Failed to initialize NVML: Driver/library version mismatch\nRuntimeError: no\n",
        1,
        "gpu-driver",
        "kernel module is still the old one",
    ),
    "the script's own check": (
        FRAMES.replace("start()", "assert torch.cuda.is_available()") + "AssertionError\n",
        1,
        "gpu-missing",
        "sees no GPU",
    ),
    "RANK": (
        FRAMES + "ValueError: Error initializing torch.distributed using env:// rendezvous: environment "
        "variable RANK "
        "expected, but not set\n",
        1,
        "rendezvous",
        "RANK is not set",
    ),
    "localhost": (
        "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while "
        "trying to connect "
        "to (localhost, 29500).\n",
        1,
        "rendezvous",
        "at localhost",
    ),
    "no such name": (
        "torch.distributed.DistNetworkError: failed to connect: getaddrinfo: Name or service not known\n",
        1,
        "rendezvous",
        "could not be resolved",
    ),
    "EFA": (
        "n1:9:9 [0] nccl_net_ofi_init:12 NCCL WARN NET/OFI OFI fi_getinfo() call failed: No data available\n"
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:94, unhandled system error\n",
        1,
        "network-interface",
        "EFA",
    ),
    "argparse": (
        "usage: fit.py [-h] [--lr LR]\nfit.py: error: unrecognized arguments: --lrr 1\n",
        2,
        "arguments-refused",
        "--lrr 1",
    ),
    "srun": (
        "slurmstepd: error: execve(): torchrun: No such file or directory\nsrun: error: n1: task 0: Exited "
        ""
        ""
        "with exit "
        "code 2\n",
        2,
        "command-not-started",
        "no program torchrun",
    ),
    "apptainer": (
        "FATAL:   container creation failed: mount /proc/self/fd/3->/var: no such file\n",
        255,
        "launch-error",
        "Apptainer",
    ),
    "systemd-oomd": ("systemd-oomd killed 34 process(es) in this unit.\n", 137, "oom-killed", "systemd-oomd"),
    "offline": (
        FRAMES + "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached "
        "snapshot folder "
        "and outgoing traffic has been disabled.\n",
        1,
        "hub-access",
        "local cache",
    ),
    "a server of the script's own": (
        FRAMES + "requests.exceptions.HTTPError: 401 Client Error for url: https://lab.org/x\n",
        1,
        "python-exception",
        "fit.py:3",
    ),
    "a cache of root": (
        FRAMES + "PermissionError: [Errno 13] Permission denied: '/.cache/huggingface'\n",
        1,
        "permission-denied",
        "the cache /.cache/huggingface",
    ),
    "a logout": (
        FRAMES + "RuntimeError: could not unlink the shared memory file /torch_9_1_0 : No such file or directory (2)\n",
        1,
        "shm-unlinked",
        "removed from /dev/shm",
    ),
    "weights_only": (
        FRAMES + "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded\n",
        1,
        "python-exception",
        "Weights only",
    ),
    "pidfd": (FRAMES + "RuntimeError: pidfd_getfd: Operation not permitted\n", 1, "gpu-peer-denied", "pidfd_getfd"),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_told_by_its_own_words(name: str) -> None:
    """What happened stands in the first sentence."""
    log, code, symptom, words = KINDS[name]
    first = all_causes(Evidence(code, "step 1 loss 0.3\n" + log))[0]
    assert (first.symptom, words in first.sentence) == (symptom, True), first.sentence


def test_what_nobody_asked_is_unknown() -> None:
    """Without an inspection no sentence says that the memory limit was not it; with one it does."""
    unasked, asked = (all_causes(Evidence(137, "step 1\n", oom_killed=told))[0] for told in (None, False))
    assert "is unknown" in unasked.sentence
    assert "OOMKilled" not in unasked.saw
    assert "neither its memory limit" in asked.sentence
