"""Records of all ranks become one picture, and what a container says is taken only where it makes sense."""

from __future__ import annotations

from typing import Any

import pytest
from trainlaunch.measure.loader_records import Measurement, Records

from tests.measure.spoken import a_loader, a_probe


def measured(*records: dict[str, Any]) -> Measurement:
    """Return what records say."""
    all_of_them = Records()
    for each in records:
        all_of_them.take(each)
    return all_of_them.measured()


def test_a_loader_is_what_its_process_said() -> None:
    """Each fact at its place."""
    found = measured(*a_probe())
    assert (found.torch, found.python, found.reason, found.seconds) == ("2.9.1", "3.11.7", "batches", 4.2)
    (loader,) = found.loaders
    assert (loader.at, loader.trains, loader.storages, loader.batches_held) == ("train.py:48", True, (3 << 20, 512), 2)
    assert loader.varying is False


def test_only_the_end_of_rank_0_says_that_it_is_enough() -> None:
    """And only the first: two processes may both call themselves rank 0."""
    records = Records()
    ends = [{"kind": "end", "rank": rank, "pid": rank} for rank in (1, 0, 0)]
    assert [records.take(each) for each in ends] == [False, True, False]
    assert records.ended


def test_the_largest_batch_of_all_ranks_counts() -> None:
    """Rank 1 got the long texts, and held three of them."""
    more = a_loader(
        rank=1, pid=9, storages=[9 << 20], largest_bytes=9 << 20, median_bytes=1 << 20, batches_held=3, batches_kept=1
    )
    (loader,) = measured(*a_probe(), *a_probe(more, rank=1, pid=9)).loaders
    assert (loader.storages, loader.batches_held, loader.batches_kept) == ((9 << 20,), 3, 1)
    assert loader.varying


def test_a_process_without_loaders_hides_none() -> None:
    """mp.spawn: the parent is rank 0 as its children are, and trains nothing."""
    parent = [{"kind": "start", "rank": 0, "pid": 1, "python": "3", "torch": "2", "world": 1}]
    found = measured(*parent, *a_probe())
    assert [each.at for each in found.loaders] == ["train.py:48"]


def test_a_smaller_last_batch_is_no_other_size() -> None:
    """The median is the largest, so batches don't vary."""
    assert measured(*a_probe(a_loader(median_bytes=1 << 20))).loaders[0].varying
    assert not measured(*a_probe(a_loader(median_bytes=None))).loaders[0].varying


def test_a_finding_of_several_ranks_is_one() -> None:
    """Its place and its loader tell it from another."""
    finding = {"kind": "finding", "defect": "none-sample", "loader": 0, "place": "train.py:3", "facts": {"index": 7}}
    found = measured(*({**finding, "rank": rank, "pid": rank} for rank in (0, 1)), {**finding, "place": "b.py:1"})
    assert [each.place for each in found.findings] == ["train.py:3", "b.py:1"]
    assert found.findings[0].facts == {"index": 7}


def test_a_check_that_could_not_run_is_said() -> None:
    """Once, with its reason."""
    off = {"kind": "off", "defect": "worker-hang", "loader": 0, "place": "train.py:48", "reason": "TypeError: x"}
    assert measured(off, off).off == ("worker-hang at train.py:48 could not be looked for: TypeError: x",)


@pytest.mark.parametrize("odd", [None, "x", -1, 1.5, True, [], {}, 10**30, float("nan"), [1, -1], [1, "2"]])
@pytest.mark.parametrize("field", ["storages", "order", "num_workers", "batches_held", "together_with", "median_bytes"])
def test_values_of_another_type_are_unknown(field: str, odd: object) -> None:
    """A hostile container, or one of another release, breaks nothing."""
    (loader,) = measured(*a_probe(a_loader(**{field: odd}))).loaders
    assert loader.storages is None or all(isinstance(each, int) and each >= 0 for each in loader.storages)
    assert loader.num_workers >= 0
    assert loader.batches_held is None or loader.batches_held >= 0


@pytest.mark.parametrize(
    "record", [{}, {"kind": []}, {"kind": [], "loader": 1}, {"kind": "loader"}, {"kind": "finding"}, {"kind": "end"}]
)
def test_records_without_a_sense_are_left_out(record: dict[str, Any]) -> None:
    """They are no loaders."""
    assert measured(record, {"kind": "end", "rank": "0", "reason": 3}).loaders == ()


def test_a_process_may_find_several_of_a_kind() -> None:
    """Two handles of one dataset are two findings; what another rank says of the same loader is none more."""
    one = {"kind": "finding", "defect": "handle-in-init", "loader": 0, "place": "train.py:3", "rank": 0, "pid": 7}
    paths = [{**one, "facts": {"path": path}} for path in ("dataset.db", "dataset.file", "dataset.db")]
    others = [{**each, "rank": 1, "pid": 8} for each in paths]
    found = measured(*a_probe(), *paths, *others).findings
    assert [each.facts["path"] for each in found] == ["dataset.db", "dataset.file"]


def test_what_a_container_says_is_bounded() -> None:
    """Texts, lists, depth, and numbers that JSON doesn't have; a kind that is no text is no record."""
    deep: Any = []
    for _ in range(50):
        deep = [deep]
    facts = {"text": "x" * 10**6, "list": [1] * 10**5, "deep": deep, "number": float("nan"), "x" * 5000: 1}
    odd = {"kind": "finding", "defect": "y" * 10**6, "loader": 0, "place": "z" * 10**6, "facts": facts}
    kinds = [{"kind": kind, "loader": 0} for kind in ([], {}, None, 3)]
    (found,) = measured(*a_probe(), odd, *kinds).findings
    assert (len(found.defect), len(found.place), len(found.facts["text"])) == (1001, 1001, 1001)
    assert (len(found.facts["list"]), found.facts["number"]) == (1000, None)
    assert max(map(len, found.facts)) == 1001
    assert str(found.facts["deep"]).count("[") < 10


def test_a_flood_of_records_is_bounded() -> None:
    """A script that prints them for ever fills no memory, and its end is still heard."""
    records = Records()
    for number in range(30_000):
        records.take({"kind": "loader", "loader": number})
    assert records.take({"kind": "end", "rank": 0})
    assert len(records.measured().loaders) == 20_000


def test_checks_that_one_reason_kept_off_are_one_sentence() -> None:
    """Memory that isn't there keeps several from looking."""
    reason = "RuntimeError: MemoryError: 2 fresh workers may take 353 MiB"
    off = [{"kind": "off", "rank": 0, "place": "train.py:3", "reason": reason} for _ in range(3)]
    named = [{**each, "defect": defect} for each, defect in zip(off, ("one", "two", "one"), strict=True)]
    assert measured(*named).off == ("one, two at train.py:3 could not be looked for: 2 fresh workers may take 353 MiB",)


def test_what_was_read_of_batches_stands_where_checks_never_ended() -> None:
    """Their record comes before the first check."""
    *told, end = a_probe()
    seen = {**end, "kind": "batches-end"}
    found = measured(*told, seen)
    assert (found.reason, found.seconds, found.checks_seconds) == ("batches", 4.2, 0.5)
    del seen["checks_seconds"]
    assert measured(*told, seen).checks_seconds is None
    assert measured(*told, seen, end).checks_seconds == 0.5
