"""What the processes of a probed job report, put together: one picture of the loaders, whatever rank saw them.

Records come from the job's container, so each value is taken only where it has the type that it should have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from trainlaunch.measure.finding import ProbeFinding

MAX_RECORDS = 20_000
MAX_ALIKE = 64  # findings in which the same one is looked for
MAX_NUMBER = 10**15  # bytes, counts
MAX_LENGTH = 1000  # characters of a text, entries of a list
MAX_DEPTH = 6  # of containers in containers


class LoaderRecord(NamedTuple):
    """One loader of the script, as its rank with most batches and its largest batch over all ranks show it.

    `order` counts first iterations, None: the script built it and never looped over it. `storages` are those of the
    largest batch, None where no batch could be measured; `problem` says why then, where that is known. `batches_kept`
    are those that its loop still held after its end. `ended` counts its loops that were seen to end, `whole_epochs`
    those of them that probe did not cut. Times are seconds, medians. None stands for what nobody could see.
    """

    number: int
    at: str
    kind: str
    order: int | None
    trains: bool
    batch_size: int | None
    num_workers: int
    prefetch_factor: int | None
    persistent_workers: bool
    pin_memory: bool
    start_method: str
    batches: int
    storages: tuple[int, ...] | None
    largest_bytes: int | None
    median_bytes: int | None
    batches_held: int | None
    batches_kept: int | None
    fetch_seconds: float | None
    collate_seconds: float | None
    wait_seconds: float | None
    step_seconds: float | None
    together_with: tuple[int, ...]
    dataset_tensor_bytes: int
    problem: str
    epoch_batches: int | None = None
    whole_epochs: int = 0
    ended: int = 0

    @property
    def varying(self) -> bool:
        """Whether batches were of several sizes; a last one that is smaller doesn't count."""
        return None not in {self.largest_bytes, self.median_bytes} and self.median_bytes != self.largest_bytes


class Measurement(NamedTuple):
    """What was seen of a script: `reason` is why it ended (batches, seconds, script), empty where nobody said so.

    `seconds` are those of batches, `checks_seconds` of what followed, None where that didn't come to its end. `off` are
    checks that could not run, each as a sentence.
    """

    torch: str
    python: str
    reason: str
    seconds: float
    loaders: tuple[LoaderRecord, ...]
    findings: tuple[ProbeFinding, ...]
    off: tuple[str, ...]
    checks_seconds: float | None = None


class Records:
    """Takes records as they come; `ended` is whether rank 0 has said that it measured enough."""

    def __init__(self) -> None:
        self._all: list[Mapping[str, Any]] = []
        self.ended = False

    def take(self, record: Mapping[str, Any]) -> bool:
        """Keep one; return whether it is rank 0's last."""
        if len(self._all) < MAX_RECORDS:
            self._all.append(record)
        last = record.get("kind") == "end" and _whole(record, "rank") == 0 and not self.ended
        self.ended = self.ended or last
        return last

    def measured(self) -> Measurement:
        """Return what all of them say."""
        by_process: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
        for each in self._all:
            by_process.setdefault((_whole(each, "rank") or 0, _whole(each, "pid") or 0), []).append(each)
        seen = {process: _loaders(records) for process, records in by_process.items()}
        first = min(seen, key=lambda each: (each[0], -sum(one.batches for one in seen[each])), default=None)
        mine = seen.get(first, ()) if first else ()
        own = by_process.get(first, []) if first else []
        start = next((each for each in [*own, *self._all] if _text(each, "kind") == "start"), {})
        ends = [each for kind in ("end", "batches-end") for each in [*own, *self._all] if _text(each, "kind") == kind]
        end = ends[0] if ends else {}
        others = [each for process, each in seen.items() if process != first]
        return Measurement(
            torch=_text(start, "torch") or "unknown",
            python=_text(start, "python") or "unknown",
            reason=_text(end, "reason"),
            seconds=_seconds(end, "seconds") or 0.0,
            loaders=tuple(_largest(each, others) for each in mine),
            findings=tuple(_findings(self._all)),
            off=tuple(_off(self._all)),
            checks_seconds=_seconds(end, "checks_seconds"),
        )


def _loaders(records: Iterable[Mapping[str, Any]]) -> tuple[LoaderRecord, ...]:
    """Return the loaders of one process, in the order of their numbers; of each the last that was said counts."""
    by_kind: dict[str, dict[int, Mapping[str, Any]]] = {"loader": {}, "batches": {}, "dataset": {}}
    for each in records:
        number, kind = _whole(each, "loader"), _text(each, "kind")
        if number is not None and kind in by_kind:
            by_kind[kind][number] = each
    return tuple(
        _loader(number, facts, by_kind["batches"].get(number, {}), by_kind["dataset"].get(number, {}))
        for number, facts in sorted(by_kind["loader"].items())
    )


def _loader(
    number: int, built: Mapping[str, Any], batches: Mapping[str, Any], dataset: Mapping[str, Any]
) -> LoaderRecord:
    storages = batches.get("storages")
    sizes = [_number(each) for each in storages] if isinstance(storages, list) else None
    together = batches.get("together_with")
    others = [_number(each) for each in together] if isinstance(together, list) else []
    start_method = _text(built, "start_method")
    return LoaderRecord(
        number=number,
        at=_text(built, "at") or "unknown",
        kind=_text(built, "class") or "DataLoader",
        order=_whole(built, "order"),
        trains=built.get("trains") is True,
        batch_size=_whole(built, "batch_size"),
        num_workers=_whole(built, "num_workers") or 0,
        prefetch_factor=_whole(built, "prefetch_factor"),
        persistent_workers=built.get("persistent_workers") is True,
        pin_memory=built.get("pin_memory") is True,
        start_method=start_method if start_method in {"fork", "spawn", "forkserver"} else "fork",
        batches=_whole(batches, "count") or 0,
        storages=None if sizes is None or None in sizes else tuple(each for each in sizes if each is not None),
        largest_bytes=_whole(batches, "largest_bytes"),
        median_bytes=_median(batches),
        batches_held=_whole(batches, "batches_held"),
        batches_kept=_whole(batches, "batches_kept"),
        fetch_seconds=_seconds(batches, "fetch_seconds"),
        collate_seconds=_seconds(batches, "collate_seconds"),
        wait_seconds=_seconds(batches, "wait_seconds"),
        step_seconds=_seconds(batches, "step_seconds"),
        together_with=tuple(each for each in others if each is not None),
        dataset_tensor_bytes=_whole(dataset, "tensor_bytes") or 0,
        problem=_text(batches, "problem"),
        epoch_batches=_whole(built, "epoch_batches"),
        whole_epochs=_whole(batches, "whole_epochs") or 0,
        ended=_whole(batches, "ended") or 0,
    )


def _largest(loader: LoaderRecord, others: Iterable[tuple[LoaderRecord, ...]]) -> LoaderRecord:
    """Return a loader of one rank with the largest batch, and the most batches in use, that any rank saw of it."""
    same = [each for rank in others for each in rank if (each.number, each.at) == (loader.number, loader.at)]
    measured = [each for each in (loader, *same) if each.storages is not None]
    if not measured:
        return loader
    most = max(measured, key=lambda each: sum(each.storages or ()))
    held, kept = (
        max((number for each in measured if (number := getattr(each, field)) is not None), default=None)
        for field in ("batches_held", "batches_kept")
    )
    median = most.median_bytes if any(each.varying for each in measured) else most.largest_bytes
    return loader._replace(
        storages=most.storages,
        largest_bytes=most.largest_bytes,
        median_bytes=median,
        batches_held=held,
        batches_kept=kept,
    )


def _findings(records: Iterable[Mapping[str, Any]]) -> list[ProbeFinding]:
    """Return what was found, once where several ranks found it; one may find several of a kind."""
    found: list[ProbeFinding] = []
    finders: dict[tuple[str, int | None, str], tuple[int | None, int | None]] = {}
    for each in records:
        if _text(each, "kind") != "finding":
            continue
        facts = _bounded(each.get("facts"))
        one = ProbeFinding(
            _text(each, "defect"),
            _whole(each, "loader"),
            _text(each, "place"),
            facts if isinstance(facts, dict) else {},
        )
        finder = (_whole(each, "rank"), _whole(each, "pid"))
        if finders.setdefault((one.defect, one.loader, one.place), finder) == finder and one not in found[-MAX_ALIKE:]:
            found.append(one)
    return found


def _bounded(value: object, depth: int = 0) -> Any:
    """Return facts as they can be shown: no text or list without end, no number that JSON doesn't have."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (dict, list)) and depth == MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {_cut(name): _bounded(each, depth + 1) for name, each in list(value.items())[:MAX_LENGTH]}
    return [_bounded(each, depth + 1) for each in value[:MAX_LENGTH]] if isinstance(value, list) else value


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}…"


def _off(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each reason at a place, with all that it kept from being looked for."""
    checks: dict[tuple[str, str], dict[str, None]] = {}
    for each in records:
        if _text(each, "kind") == "off":
            why = _text(each, "place"), _text(each, "reason").removeprefix("RuntimeError: MemoryError: ")
            checks.setdefault(why, {})[_text(each, "defect") or "a check"] = None
    for (place, reason), names in checks.items():
        yield f"{', '.join(names)}{f' at {place}' if place else ''} could not be looked for: {reason}"


def _whole(record: Mapping[str, Any], name: str) -> int | None:
    return _number(record.get(name))


def _number(value: object) -> int | None:
    """Return a whole number from 0 to LARGEST, None for anything else."""
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_NUMBER
    return value if fits and isinstance(value, int) else None


def _median(record: Mapping[str, Any]) -> int | None:
    """Return a median of bytes, which of two numbers in the middle is no whole one."""
    value = _seconds(record, "median_bytes")
    return None if value is None else int(value)


def _seconds(record: Mapping[str, Any], name: str) -> float | None:
    value = record.get(name)
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MAX_NUMBER
    return float(value) if fits and isinstance(value, (int, float)) else None


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    return _cut(value) if isinstance(value, str) else ""
