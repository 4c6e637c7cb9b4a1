"""Each symptom matches its own evidence, and its near-misses stay silent."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.container.preflight import STOP_MARKER
from trainlaunch.diagnose import SYMPTOMS, explain_end, explain_hang
from trainlaunch.diagnose.base.case import Symptom
from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.diagnose.ranking import FAMILIES
from trainlaunch.diagnose.troubleshooting_page import troubleshooting_markdown
from trainlaunch.manuals import manuals
from trainlaunch.plan.plan_label import Planned

ROOT = Path(__file__).resolve().parents[2]
ALL = list(SYMPTOMS)
ENOSPC = (
    "RuntimeError: unable to allocate shared memory(shm) for file </torch_57_1808_4>: No space left on device (28)\n"
)
FEED = '  File "/usr/lib/python3.12/multiprocessing/queues.py", line 264, in _feed\n'
OURS = f"{STOP_MARKER} (78): /dev/shm is 64 MiB and 311 MiB are needed\n"


def names(evidence: Evidence) -> list[str]:
    """Return the names of what explain_end finds."""
    return [each.symptom for each in explain_end(evidence)]


def cluster(reason: str, words: str, code: int | None) -> Evidence:
    """Return what a cluster tells about an end."""
    return Evidence(code, target="kubernetes", reason=reason, words=words, shm_size=1 << 30, memory=4 << 30)


MATCHES = [
    ("preflight says files", Evidence(78, OURS), ["config-refused"]),
    ("preflight says machine", Evidence(75, OURS.replace("78", "75")), ["machine-refused"]),
    ("the job's own 78", Evidence(78, "config broken\n"), ["own-exit-code"]),
    ("the job's own 75", Evidence(75, ""), ["own-exit-code"]),
    ("a job that only prints the marker", Evidence(3, OURS), []),
    ("torch reserve", Evidence(1, ENOSPC), ["shm-exhausted"]),
    ("stale errno 11", Evidence(1, ENOSPC.replace("(28)", "(11)")), ["shm-exhausted"]),
    ("errno 24 is files", Evidence(1, ENOSPC.replace("No space left on device (28)", "Too many open files (24)")),
     ["fd-limit"]),
    ("errno 2 is a race", Evidence(1, ENOSPC.replace("No space left on device (28)", "No such file (2)")), []),
    ("a full disk", Evidence(1, "OSError: [Errno 28] No space left on device: '/ckpt/a.pt'\n"), ["disk-full"]),
    ("nccl", Evidence(1, "failed to extend /dev/shm/nccl-ab12 to 9637892 bytes, error: No space left on device (28)\n"),
     ["nccl-shm"]),
    ("feeder, ended later", Evidence(1, FEED + ENOSPC), ["shm-exhausted-hang"]),
    ("feeder of another error", Evidence(1, FEED + "TypeError: cannot pickle 'x' object\n"), ["unpicklable"]),
    ("sigbus", Evidence(135), ["shm-exhausted"]),
    ("torchelastic", Evidence(1, "exitcode  : -7 (pid: 91)\n"), ["shm-exhausted"]),
    ("torchelastic words", Evidence(1, "Signal 7 (SIGBUS) received by PID 91\n"), ["shm-exhausted"]),
    ("torchelastic other signal", Evidence(1, "exitcode  : -9 (pid: 91)\n"), ["killed-from-outside"]),
    ("out of memory", Evidence(137, oom_killed=True), ["oom-killed"]),
    ("killed, nobody knows", Evidence(137), ["killed-from-outside"]),
    ("killed after the grace period", Evidence(137, signals=(15, 9), stopped_by="Ctrl-C"), ["stopped"]),
    ("docker stop", Evidence(143, signals=(15,)), ["stopped"]),
    ("a checkpoint was asked for by SIGUSR1", Evidence(1, signals=(10,)), []),
    ("own code after Ctrl-C", Evidence(3, signals=(15,), stopped_by="Ctrl-C"), ["stopped"]),
    ("sigterm from outside", Evidence(143), ["killed-from-outside"]),
    ("child killed, ended with 0", Evidence(0, oom_killed=True), ["oom-killed"]),
    ("ended with 0", Evidence(0, ENOSPC), []),
    ("segfault", Evidence(139), ["worker-segfault"]),
    ("not found", Evidence(127, "trainlaunch: 90: exec: pythom: not found\n"), ["command-not-started"]),
    ("not executable", Evidence(126, ""), ["command-not-started"]),
    ("125 by the engine", Evidence(125, error="OCI runtime create failed"), ["launch-error"]),
    ("125 by the job", Evidence(125, ""), ["launch-error"]),
    ("an ordinary error", Evidence(1, "ValueError: lr\n"), []),
    ("a log that talks of bus errors", Evidence(1, "Bus error means no room; killed by signal: Bus error\n"), []),
    ("evicted for disk", cluster("Evicted", "The node was low on resource: ephemeral-storage.", 137), ["evicted"]),
    ("evicted for memory", cluster("Evicted", "The node was low on resource: memory.", 137), ["evicted"]),
    ("shm over its size", cluster("Evicted", 'Usage of EmptyDir volume "shm" exceeds the limit "1Gi".', 137),
     ["evicted"]),
    ("deadline", cluster("DeadlineExceeded", "Job was active longer than specified deadline", 143),
     ["deadline-exceeded"]),
    ("node lost", cluster("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", 137),
     ["node-lost"]),
    ("drained", cluster("EvictionByEvictionAPI", "Eviction API: evicting", 143), ["node-lost"]),
    ("preempted", cluster("PreemptionByScheduler", "preempting to accommodate a higher priority pod", 143),
     ["preempted"]),
    ("no such image", cluster("ImagePullBackOff", "Back-off pulling image: not found", None), ["image-not-pulled"]),
    ("no secret", cluster("CreateContainerConfigError", 'secret "hub" not found', None), ["container-not-created"]),
    ("no room on the node", cluster("OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu", 125),
     ["container-not-created"]),
    ("no shell", cluster("StartError", 'exec: "/bin/sh": stat /bin/sh: no such file or directory', 125),
     ["container-not-created"]),
    ("a pod that somebody deleted", Evidence(143, target="kubernetes", stopped_by="a deletion of its pod"),
     ["stopped"]),
    ("a cluster's reason that nobody knows", cluster("SomethingNew", "new", 137), []),
    ("a cluster's 125 without a reason", Evidence(125, target="kubernetes"), []),
    ("a shell's bus error", Evidence(1, "Bus error (core dumped)\n"), ["shm-exhausted"]),
    ("bash's bus error", Evidence(1, "run.sh: line 3:    12 Bus error     python a.py\n"), ["shm-exhausted"]),
]  # fmt: skip


@pytest.mark.parametrize(("evidence", "expected"), [each[1:] for each in MATCHES], ids=[each[0] for each in MATCHES])
def test_evidence_gets_the_causes_that_it_shows(evidence: Evidence, expected: list[str]) -> None:
    """Exactly the named causes, in order."""
    assert names(evidence) == expected


def test_at_most_two_causes_are_printed() -> None:
    """A log full of consequences gives two sentences, the cause before them."""
    log = ENOSPC + (
        "RuntimeError: received 0 items of ancdata\nDataLoader worker (pid 7) is killed by signal: Killed. \n"
    )
    assert names(Evidence(1, log)) == ["shm-exhausted", "fd-limit"]


def test_oom_names_the_share_of_shm() -> None:
    """A limit that /dev/shm alone may fill gets the sum as the value to type, not a larger /dev/shm."""
    (diagnosis,) = explain_end(Evidence(137, oom_killed=True, memory=2 << 30, shm_size=4 << 30))
    assert "4.0 GiB" in diagnosis.sentence
    assert "resources.memory to 6Gi" in diagnosis.fix


def test_oom_names_the_peak_that_was_seen() -> None:
    """Where /dev/shm is smaller than the limit, what it really held is told."""
    (diagnosis,) = explain_end(Evidence(137, oom_killed=True, memory=8 << 30, shm_size=2 << 30, shm_peak=300 << 20))
    assert "300 MiB" in diagnosis.sentence


def test_a_full_shm_raises_memory_by_the_same_amount() -> None:
    """/dev/shm is charged to the memory limit, so the fix moves both."""
    evidence = Evidence(1, ENOSPC, shm_size=2 << 30, memory=8 << 30, planned=Planned(need=1 << 30))
    assert "shm_size to 4Gi and resources.memory to at least 10Gi" in explain_end(evidence)[0].fix


def test_a_stop_that_was_ignored_names_the_grace_period() -> None:
    """SIGTERM, then SIGKILL: the grace period is what to change, not memory."""
    (diagnosis,) = explain_end(Evidence(137, signals=(signal.SIGTERM, signal.SIGKILL)))
    assert "stop_grace_period" in diagnosis.fix
    assert diagnosis.saw == "signals sent: SIGTERM, SIGKILL"


def test_a_hang_is_named_without_an_exit_code() -> None:
    """The feeder thread's traceback is enough; the sentence says that the run will not end."""
    diagnosis = explain_hang(Evidence(None, FEED + ENOSPC, shm_size=64 << 20, memory=1 << 30))
    assert diagnosis is not None
    assert "will not end by itself" in diagnosis.sentence
    assert diagnosis.fix.startswith("end the run")


@pytest.mark.parametrize("log", [ENOSPC, "OSError: AF_UNIX path too long\n", FEED + "ValueError: x\n", ""])
def test_an_error_that_ends_the_job_is_no_hang(log: str) -> None:
    """Without the feeder thread, or with another error in it, the job ends by itself."""
    assert explain_hang(Evidence(None, log)) is None


def test_every_symptom_of_a_family_is_asked_once() -> None:
    """A symptom that nobody asks would be a silent doctor."""
    assert sorted(each.name for each in ALL) == sorted(each.name for family in FAMILIES for each in family.SYMPTOMS)


@pytest.mark.parametrize("symptom", ALL, ids=lambda each: each.name)
def test_a_symptom_has_its_manual(symptom: Symptom) -> None:
    """Name and the four sections agree."""
    assert symptom.name == manuals()[symptom.code].name
    assert re.findall(r"^\*\*(.+?)\*\*:", manuals()[symptom.code].sections, re.MULTILINE) == [
        "What you see", "Why", "Way out", "References",
    ]  # fmt: skip


def test_codes_are_unique() -> None:
    """Each symptom has its own TL6nn."""
    codes = [each.code for each in ALL]
    assert sorted(set(codes)) == sorted(codes)
    assert all(re.fullmatch(r"TL6\d\d", code) for code in codes)


def test_the_page_is_what_the_modules_say(golden: Callable[[Path, str], None]) -> None:
    """docs/troubleshooting.md is current."""
    golden(ROOT / "docs" / "troubleshooting.md", troubleshooting_markdown())


def test_sigbus_is_not_blamed_on_a_shm_that_was_seen_half_empty() -> None:
    """A cut memory-mapped file does the same, and a job may end with 135 itself."""
    worker = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.\n"
    for log, peak in (("", None), ("", 1 << 20), (worker, 1 << 20)):
        (diagnosis,) = explain_end(Evidence(135, log, shm_size=64 << 20, shm_peak=peak))
        assert "had no page left" not in diagnosis.sentence
        assert diagnosis.confidence == "likely"
    (full,) = explain_end(Evidence(135, shm_size=64 << 20, shm_peak=60 << 20))
    assert "/dev/shm of 64 MiB had no page left" in full.sentence


def test_too_many_open_files_are_tensors_only_where_the_log_shows_it() -> None:
    """A dataset that never closes its files uses the same limit."""
    text = "OSError: [Errno 24] Too many open files"
    (files,) = explain_end(Evidence(1, f"{text}: '/data/1.jpg'\n"))
    assert "tensor" not in files.sentence
    (tensors,) = explain_end(Evidence(1, f'  File "/x/torch/multiprocessing/reductions.py", line 9\n{text}\n'))
    assert "tensor" in tensors.sentence


def test_a_second_ctrl_c_is_not_called_the_end_of_the_grace_period() -> None:
    """Both end in SIGTERM and SIGKILL; only one of them asks for a longer grace period."""
    (diagnosis,) = explain_end(Evidence(137, signals=(15, 9), stopped_by="Ctrl-C", killed_by="Ctrl-C"))
    assert (
        diagnosis.sentence == "Ctrl-C stopped the job, and a second Ctrl-C killed it before its grace period was over"
    )
    assert "stop_grace_period" not in diagnosis.fix


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("[FATAL tini (6)] exec /bin/sh failed: No such file or directory", "the image has no /bin/sh"),
        ("script: 3: pythom: not found", "a command of the script"),
        ("trainlaunch: 63: exec: /w/x.sh: not found", "`#!` interpreter"),
        ("trainlaunch: 63: exec: pythom: not found", "the first word of command"),
    ],
)
def test_what_was_not_found_is_told_apart(log: str, words: str) -> None:
    """The image's shell, a line of the script, an interpreter, the command itself."""
    (diagnosis,) = explain_end(Evidence(127, log))
    assert words in f"{diagnosis.sentence}; {diagnosis.fix}"


def test_podmans_init_ends_with_1_where_the_image_has_no_shell() -> None:
    """By its own words only: any job may end with 1."""
    log = "ERROR (catatonit:7): failed to exec pid1: No such file or directory\n"
    (diagnosis,) = explain_end(Evidence(1, log))
    assert diagnosis.sentence == "the image has no /bin/sh, which the preflight needs"
    assert explain_end(Evidence(1, "sh: 1: pythom: No such file or directory\n")) == ()


def test_a_hang_is_told_with_the_memory_that_a_larger_shm_needs() -> None:
    """The value to type must not be the next error."""
    diagnosis = explain_hang(Evidence(None, FEED + ENOSPC, shm_size=64 << 20, memory=1 << 30))
    assert diagnosis is not None
    assert "resources.memory to at least 1984Mi" in diagnosis.fix


def test_what_makes_a_job_slow_is_a_note_beside_what_ended_it() -> None:
    """Without another cause it may be one."""
    slow = (
        "dataloader.py:431: UserWarning: This DataLoader will create 4 worker processes in total. Our suggested max "
        "number of worker in current system is 2, which is smaller than what this DataLoader is going to create.\n"
    )
    full = "RuntimeError: unable to allocate shared memory(shm) for file </torch_1>: No space left on device (28)\n"
    found = explain_end(Evidence(1, slow + full, shm_size=64 << 20))
    assert [(each.code, each.is_note) for each in found] == [("TL605", False), ("TL662", True)]
    assert [each.is_note for each in explain_end(Evidence(137, slow))[:1]] == [False]


@pytest.mark.parametrize(
    ("planned", "to_state"),
    [
        (Planned(need=9 << 20), "leave out, as `trainlaunch probe --write` measures it: the true size"),
        (Planned(need=0, unsized=True), "set data_loader.sample so that trainlaunch computes it"),
        (Planned(), "correct data_loader.sample so that trainlaunch computes it"),
    ],
)
def test_a_full_shm_asks_for_what_the_plan_does_not_know(planned: Planned, to_state: str) -> None:
    """A sample that was stated is rarely the wrong one: a loader, a look-ahead or a view is what the plan lacks."""
    log = "RuntimeError: unable to allocate shared memory(shm) for file </torch_1>: No space left on device (28)\n"
    (diagnosis,) = explain_end(Evidence(1, log, shm_size=64 << 20, planned=planned))
    assert diagnosis.fix.startswith("set shm_size to 1Gi, or ")
    assert to_state in diagnosis.fix


@pytest.mark.parametrize(
    ("evidence", "fix"),
    [
        (cluster("Evicted", "low on resource: ephemeral-storage", 137), "set resources.ephemeral_storage"),
        (cluster("Evicted", 'EmptyDir volume "shm" exceeds the limit', 137), "set shm_size to 2Gi"),
        (cluster("ErrImagePull", "failed to authorize: 401 Unauthorized", None), "kubernetes.image_pull_secrets"),
        (cluster("ErrImagePull", "no match for platform in manifest", None), "--platform linux/amd64"),
        (cluster("ErrImagePull", "dial tcp: i/o timeout", None), "try again later"),
        (cluster("ErrImageNeverPull", "not present with pull policy of Never", None), "set pull_policy to missing"),
        (cluster("CreateContainerConfigError", 'secret "hub" not found', None), "kubectl create secret generic hub"),
        (cluster("CreateContainerConfigError", "couldn't find key api in Secret ml/hub", None), "add the key api"),
        (cluster("CreateContainerConfigError", "container has runAsNonRoot and image will run as root", None),
         'user: "1000"'),
        (Evidence(137, target="kubernetes", oom_killed=True, memory=2 << 30, shm_size=1 << 30),
         "resources.memory to 3Gi"),
    ],
)  # fmt: skip
def test_a_cause_on_a_cluster_has_the_value_to_type(evidence: Evidence, fix: str) -> None:
    """By the cluster's own words, and without those of an engine."""
    (diagnosis,) = explain_end(evidence)
    assert fix in diagnosis.fix
    assert "the engine" not in f"{diagnosis.sentence} {diagnosis.saw} {diagnosis.fix}"


def test_a_bus_error_beside_gigabytes_that_are_free_is_a_mapped_file() -> None:
    """By whoever watched /dev/shm, or by `df` in the log; a small one may fill between two looks."""
    watched = Evidence(135, shm_size=64 << 30, shm_peak=4 << 30)
    looked = Evidence(135, "Bus error (core dumped)\ntmpfs           126G   3G  123G   3% /dev/shm\n")
    small = Evidence(135, shm_size=64 << 20, shm_peak=1 << 20)
    assert [names(each) for each in (watched, looked, small)] == [
        ["truncated-mmap"],
        ["truncated-mmap"],
        ["shm-exhausted"],
    ]


@pytest.mark.parametrize("folder", ["/dev/shm/.trainlaunch", "/dev/shm/.trainlaunch-3f9a2c11"])
def test_what_trainlaunch_brings_into_a_job_is_not_the_authors_to_correct(folder: str) -> None:
    """A function of ours around DataLoader.__init__ stands between the script and torch."""
    log = (
        "Traceback (most recent call last):\n"
        '  File "/workspace/seq.py", line 67, in main\n'
        "    loader = DataLoader(data, prefetch_factor=4)\n"
        f'  File "{folder}/trainlaunch_inside/probe/__init__.py", line 96, in built\n'
        '  File "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py", line 288, in __init__\n'
        "    raise ValueError(\n"
        "ValueError: prefetch_factor option could only be specified in multiprocessing.\n"
    )
    (found,) = explain_end(Evidence(1, log))
    assert "at /workspace/seq.py:67" in found.sentence
    assert "line 67" in found.fix
