"""Where a script's time goes to no purpose."""

from __future__ import annotations

from tests.measure.findings.saying import saying


def test_workers_started_for_a_few_batches() -> None:
    """Each start, and all of them."""
    said = saying("iterators-rebuilt", iterators=20, batches=20, seconds=0.41, num_workers=4, length=500)
    assert said.code == "TL718"
    assert said.message == "the script starts 4 workers 20 times for 20 batches: 0.41 s each, 8.2 s together"


def test_copies_from_pageable_memory() -> None:
    """Both times, and the two words to type."""
    said = saying("no-pin-memory", bytes=77 * 2**20, seconds=0.0212, pinned_seconds=0.0031)
    assert said.code == "TL719"
    assert said.message == "a batch of 77 MiB takes 21.2 ms to the GPU, and 3.1 ms from pinned memory"
    assert "pin_memory=True" in said.fix
    assert "non_blocking=True" in said.fix


def test_workers_started_each_epoch() -> None:
    """Against what the epoch takes."""
    said = saying("no-persistent-workers", seconds=3.24, epoch_seconds=9.1, batches=100, num_workers=8)
    assert said.code == "TL720"
    assert said.message == "each epoch starts 8 workers, which takes 3.2 s, and then lasts 9.1 s (100 batches)"
    assert said.fix.startswith("persistent_workers=True")


def test_a_collate_fn_that_is_most_of_a_batch() -> None:
    """Its name, both times, and what the script waits."""
    facts = {"collate_seconds": 0.0412, "fetch_seconds": 0.05, "waiting": 0.83, "collate_fn": "lists"}
    said = saying("slow-collate", **facts)
    assert said.code == "TL721"
    assert said.message == "lists takes 41.2 of the 50 ms of a batch, and the script waits 83% of its time"


def test_padding_by_who_adds_it() -> None:
    """A dataset that pads to a fixed length has to stop first."""
    facts = {"tensor": "['input_ids']", "share": 0.448, "longest": 512, "mean": 263.5, "batches": 8}
    said = saying("padding-waste", by="collate_fn", **facts)
    assert said.code == "TL722"
    assert said.message == "45% of batch['input_ids'] is padding: rows of 512 hold 264 on average"
    assert said.fix.startswith("put samples of like length into one batch")
    assert saying("padding-waste", by="dataset", **facts).fix.startswith(
        "pad in collate_fn to the longest of the batch"
    )
