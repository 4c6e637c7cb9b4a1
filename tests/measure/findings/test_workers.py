"""What workers can't get, share, wait for, or don't see."""

from __future__ import annotations

from trainlaunch.diagnostics import Severity
from trainlaunch.rules.sources.scripts import CUDA_FIX, HANDLE_FIX, HANDLE_WHY

from tests.measure.findings.saying import saying


def test_what_cannot_be_pickled() -> None:
    """A warning while the script forks; an error where its workers need the pickle, batches always."""
    facts = {"part": "dataset", "path": "dataset.steps[1]", "class": "function", "name": "D.<locals>.<lambda>"}
    facts = {**facts, "at": "train.py:6", "num_workers": 2}
    said = saying("unpicklable", **facts, start_method="fork")
    assert (said.code, said.severity) == ("TL701", Severity.WARNING)
    assert said.message == "dataset.steps[1] is a lambda (train.py:6), which can't be pickled"
    assert "Python 3.14" in said.why
    assert said.fix == 'write a function of the module, or set multiprocessing_context="fork"'
    assert saying("unpicklable", **facts, start_method="spawn").severity is Severity.ERROR
    said = saying(
        "unpicklable", **{**facts, "part": "batch", "class": "generator", "path": "batch[0]"}, start_method="fork"
    )
    assert said.severity is Severity.ERROR
    assert said.message == "batch[0] is of class generator, which can't be pickled"
    assert "for ever" in said.why


def test_handles_of_each_kind() -> None:
    """Who shares them, in the words of lint where it is the same defect."""
    facts = {"path": "dataset.file", "file": "x.bin", "locked": False, "start_method": "fork"}
    said = saying("handle-in-init", **facts, kind="file", num_workers=4)
    assert (said.code, said.severity) == ("TL702", Severity.ERROR)
    assert said.message == "dataset.file is an open file of x.bin, shared with 4 forked workers"
    assert (said.why, said.fix) == (HANDLE_WHY, HANDLE_FIX)
    said = saying("handle-in-init", **facts, kind="h5py", num_workers=0)
    assert said.severity is Severity.WARNING
    assert said.message == "dataset.file is an open h5py handle of x.bin, which workers would share"
    said = saying("handle-in-init", **{**facts, "start_method": "spawn"}, kind="sqlite3", num_workers=1)
    assert said.message == "dataset.file is an open sqlite3 handle of x.bin, which spawn can't pickle for 1 worker"
    assert saying("handle-in-init", **facts, kind="lock", num_workers=4).severity is Severity.WARNING
    assert saying("handle-in-init", **{**facts, "locked": True}, kind="lock", num_workers=4).severity is Severity.ERROR
    assert saying("handle-in-init", **facts, kind="CUDA", num_workers=4).fix == CUDA_FIX


def test_threads_are_named() -> None:
    """With the place of the script's own, and the package of a library's."""
    threads = [{"name": "reporter", "at": "train.py:4", "package": ""}, {"name": "grpc", "at": "", "package": "grpc"}]
    said = saying("threads-before-fork", threads=threads, count=7, num_workers=2)
    assert (said.code, said.severity) == ("TL703", Severity.WARNING)
    told = "the script forks 2 workers beside 7 threads: reporter (train.py:4), grpc (grpc) and 5 more"
    assert said.message == told
    assert "forkserver" in said.fix


def test_a_worker_that_hangs() -> None:
    """Where it stands, and the thread that had the lock, where there was one."""
    facts = {
        "waited": 20.04,
        "batches": 1,
        "worker": 0,
        "at": "train.py:11",
        "function": "__getitem__",
        "num_workers": 2,
    }
    said = saying("worker-hang", **facts, start_method="fork", threads=["reporter"])
    assert (said.code, said.severity) == ("TL707", Severity.ERROR)
    assert said.message == (
        "2 workers gave no batch for 20 s, after 1 batch; worker 0 stands at train.py:11 in __getitem__"
    )
    assert said.why == "a lock that reporter had when the worker was forked is never released in it"
    said = saying("worker-hang", **{**facts, "at": ""}, start_method="spawn", threads=[])
    assert said.message == "2 workers gave no batch for 20 s, after 1 batch"
    assert "timeout=120" in said.fix


def test_batches_that_are_kept() -> None:
    """The variable, how many, and the line that keeps copies."""
    whole = {"held": 100, "batches": 100, "bytes": 2**20, "tensors": 2, "storages": 200, "held_bytes": 100 << 20}
    said = saying("kept-batches", name="outputs", at="train.py:6", **whole)
    assert (said.code, said.severity) == ("TL724", Severity.WARNING)
    of_all = "still uses 100 of 100 batches: 200 files, 100 MiB of /dev/shm, and more with each"
    assert said.message == f"outputs (train.py:6) {of_all}"
    assert "outputs.append(batch.clone())" in said.fix
    part = saying("kept-batches", name="", at="", **{**whole, "storages": 100, "held_bytes": 100 << 12})
    of_part = "still uses a part of 100 of 100 batches: 100 files, 400 KiB of /dev/shm, and more with each"
    assert part.message == f"the script {of_part}"


def test_a_dataset_that_workers_do_not_see_changed() -> None:
    """By what was seen to change, or by set_epoch."""
    said = saying("stale-dataset", path="dataset.epoch", first=0, now=2, method="", num_workers=2)
    assert (said.code, said.severity) == ("TL725", Severity.WARNING)
    told = "dataset.epoch has become 2 in the script's process alone; it stays 0 in 2 persistent workers"
    assert said.message == told
    said = saying("stale-dataset", path="dataset.epoch", first=0, now=None, method="dataset.set_epoch", num_workers=1)
    assert said.message == (
        "dataset.set_epoch changes dataset.epoch in the script's process alone; it stays 0 in 1 persistent worker"
    )
    assert "share_memory_()" in said.fix
