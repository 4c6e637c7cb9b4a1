"""Memory that copies of a dataset take, against the limit."""

from __future__ import annotations

from trainlaunch.diagnostics import Severity

from tests.measure.findings.saying import saying

MIB, GIB = 2**20, 2**30


def test_objects_that_forked_workers_copy() -> None:
    """Bytes times workers, of how much; an error where that is all."""
    facts = {"path": "dataset.paths", "bytes": 90 * MIB, "limit": GIB, "num_workers": 4, "start_method": "fork"}
    said = saying("copy-on-write-growth", **facts, ranks=1, total=360 * MIB)
    assert (said.code, said.severity) == ("TL713", Severity.WARNING)
    assert said.message == (
        "the dataset holds 90 MiB of Python objects, most in dataset.paths; 4 workers will copy up to 360 MiB, "
        "of 1.0 GiB of memory"
    )
    said = saying("copy-on-write-growth", **facts, ranks=4, total=1440 * MIB)
    assert said.severity is Severity.ERROR
    assert "4 workers of 4 ranks" in said.message


def test_a_dataset_in_memory() -> None:
    """Who has a copy of it, and what they take together."""
    facts = {"path": "dataset.rows", "bytes": GIB, "limit": 16 * GIB, "num_workers": 4}
    said = saying("in-memory-dataset", **facts, ranks=2, copies=5, total=10 * GIB, start_method="spawn")
    assert (said.code, said.severity) == ("TL714", Severity.WARNING)
    assert said.message == (
        "the dataset holds 1.0 GiB in memory, most in dataset.rows, and 2 ranks and 4 workers started by spawn have "
        "their own: 10 GiB, of 16 GiB"
    )
    assert 'multiprocessing_context="fork"' in said.fix
    said = saying("in-memory-dataset", **facts, ranks=1, copies=1, total=GIB, start_method="fork")
    assert said.message == "the dataset holds 1.0 GiB in memory, most in dataset.rows, of 16 GiB"


def test_a_cache_that_each_process_fills() -> None:
    """One that ends with the epoch, and one that comes to hold all in each worker."""
    facts = {"path": "dataset.cache", "bytes_per_sample": MIB, "samples": 1000, "limit": 16 * GIB}
    said = saying("cache-per-rank", **facts, total=GIB, num_workers=4, ranks=1, persistent_workers=False)
    assert (said.code, said.severity) == ("TL715", Severity.WARNING)
    assert said.message == (
        "dataset.cache keeps 1.0 MiB of each of 1000 samples, and each of 4 workers fills its own, "
        "and loses it with each epoch"
    )
    said = saying("cache-per-rank", **facts, total=20 * GIB, num_workers=4, ranks=5, persistent_workers=True)
    assert said.severity is Severity.ERROR
    assert said.message.endswith(
        "each of 4 workers of 5 ranks fills its own, and comes to hold 20 GiB, of 16 GiB of memory"
    )
