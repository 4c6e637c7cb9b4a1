"""What a run was planned with, as the run itself remembers it: in its labels, or in the record of a local run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from launcher.plan.launch_plan import LaunchPlan


class Planned(NamedTuple):
    """What was planned for a container; None where its labels don't say it.

    `processes` counts DataLoader workers of all ranks, `queued_batches` is Σ workers × prefetch_factor of all ranks,
    `need` and `size` are bytes. The names of the fields are the keys of a local run's record.
    """

    processes: int | None = None
    queued_batches: int | None = None
    need: int | None = None
    size: int | None = None
    unsized: bool = False

    def labels(self) -> dict[str, str]:
        """Return it as labels, by their names without a prefix."""
        numbers = {label: getattr(self, field) for field, label in _NUMBERS.items()}
        known = {label: str(number) for label, number in numbers.items() if number is not None}
        return {**known, _UNSIZED: "true" if self.unsized else "false"}


_NUMBERS = {
    "processes": "planned-processes",
    "queued_batches": "queued-batches",
    "need": "shm-need",
    "size": "shm-size",
}
_UNSIZED = "unsized"


def planned_of(plan: LaunchPlan) -> Planned:
    """Return what a run of `plan` remembers."""
    shm = plan.shm
    return Planned(plan.processes, plan.queued_batches, shm.need, shm.size.value, shm.unsized)


def planned_from(labels: Mapping[str, str], prefix: str) -> Planned:
    """Return what labels that begin with `prefix` say."""
    numbers = {field: whole_number(labels.get(prefix + label)) for field, label in _NUMBERS.items()}
    return Planned(**numbers, unsized=labels.get(prefix + _UNSIZED) == "true")


def whole_number(text: str | None) -> int | None:
    """Return the number that a label holds; None where there is no label or no number in it."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
