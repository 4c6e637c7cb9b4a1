"""Samples that workers spoil, a model refuses, or an evaluation leaves out."""

from __future__ import annotations

from trainlaunch.diagnostics import Severity

from tests.measure.findings.saying import saying

READ = {"read": 4096, "workers": 4, "files": ["/data/train.bin"], "raised": [], "index": None, "wrong": 0}


def test_wrong_samples_are_counted_and_the_file_is_named() -> None:
    """An error where the script has workers, a warning of what they would do where it has none."""
    facts = {**READ, "wrong": 12, "index": 77}
    said = saying("worker-dependent-samples", num_workers=2, **facts)
    assert (said.code, said.severity) == ("TL712", Severity.ERROR)
    assert said.message == "12 of 4096 samples that 4 workers read were wrong, index 77 among them"
    assert said.fix == "open /data/train.bin in the worker, when it reads its first sample, and not in __init__"
    assert saying("worker-dependent-samples", num_workers=0, **facts).severity is Severity.WARNING


def test_what_only_workers_raise_is_quoted() -> None:
    """One process reads the same samples well."""
    said = saying("worker-dependent-samples", num_workers=2, **{**READ, "raised": ["KeyError: 'x'"], "files": []})
    assert said.message == "samples that one process reads fail in a worker: KeyError: 'x'"
    assert said.fix.startswith("open files and databases in the worker")


def test_a_shared_position_that_spoiled_nothing_yet_is_a_warning() -> None:
    """It is measured too: the workers moved it."""
    said = saying("worker-dependent-samples", num_workers=2, **READ)
    assert said.severity is Severity.WARNING
    assert said.message == "4 workers share one position in /data/train.bin; 4096 samples were right this time"


def test_a_last_batch_that_the_model_refuses() -> None:
    """Both numbers, and the layer."""
    said = saying("batchnorm-last-batch", layers=["BatchNorm1d"], batch_size=16, samples=65)
    assert (said.code, said.severity) == ("TL716", Severity.ERROR)
    assert said.message == (
        "the last batch of 65 samples in batches of 16 is 1, and BatchNorm1d gets 1 value per channel"
    )
    assert said.fix == "drop_last=True in the DataLoader that trains"


def test_samples_that_are_never_evaluated() -> None:
    """Of a loader that hasn't run only what it is like is said."""
    facts = {"samples": 1007, "dropped": 7, "batch_size": 20}
    said = saying("validation-drop-last", ran=True, **facts)
    assert said.code == "TL717"
    assert said.message == "the loader that evaluates drops 7 of 1007 samples (batch_size 20, drop_last=True)"
    assert "isn't shuffled and didn't train" in saying("validation-drop-last", ran=False, **facts).message
