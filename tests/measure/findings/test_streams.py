"""Streams whose workers repeat each other, or have nothing to do."""

from __future__ import annotations

from trainlaunch.diagnostics import Severity

from tests.measure.findings.saying import saying


def test_a_stream_that_each_worker_yields_whole() -> None:
    """How many samples were compared, and the share to take."""
    said = saying("unsharded-iterable", samples=100, ended=True, num_workers=4)
    assert (said.code, said.severity) == ("TL710", Severity.ERROR)
    assert said.message == "each of the 4 workers yields all 100 samples of the dataset"
    assert "info.id, None, info.num_workers" in said.fix


def test_an_endless_stream_and_a_script_without_workers() -> None:
    """Only what was seen is said."""
    said = saying("unsharded-iterable", samples=256, ended=False, num_workers=0)
    assert said.severity is Severity.WARNING
    assert said.message == (
        "with num_workers above 1, each worker would yield the same first 256 samples of the dataset"
    )


def test_workers_beyond_the_shards() -> None:
    """How many are too many, with the dataset's own number where it has one."""
    said = saying("idle-workers", idle=[1, 2, 3], busy=1, num_workers=4, shards=1)
    assert said.code == "TL711"
    assert said.message == "3 of 4 workers yield no sample: the dataset has 1 shard"
    assert said.fix == "num_workers=1, or split the data into 4 shards or more"
    said = saying("idle-workers", idle=[2, 3], busy=2, num_workers=4, shards=None)
    assert said.message == "2 of 4 workers yield no sample"
