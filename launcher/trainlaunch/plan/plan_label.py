"""What a run was planned with, as the run itself remembers it: in its labels, or in the record of a local run."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.plan.launch_plan import LaunchPlan


class Planned(NamedTuple):
    """What was planned for a container; None where its labels don't say it.

    `processes` counts DataLoader workers of all ranks, `queued_batches` is workers × prefetch_factor of all that run,
    `need` and `size` are bytes. The names of the fields are the keys of a local run's record.
    """

    processes: int | None = None
    queued_batches: int | None = None
    need: int | None = None
    size: int | None = None
    unsized: bool = False

    def text(self) -> str:
        """Return it as one line, the value of a label or an annotation: `processes=2 queued_batches=4 need=4096 …`."""
        numbers = ((field, getattr(self, field)) for field in NUMBERS)
        words = [f"{field}={number}" for field, number in numbers if number is not None]
        return " ".join([*words, *(["unsized"] if self.unsized else [])])


NUMBERS = ("processes", "queued_batches", "need")  # the size stands in the text itself, where everyone reads it
MAX_DIGITS = 18
LABEL = "plan"  # without its prefix


def planned_of(plan: LaunchPlan) -> Planned:
    """Return what a run of `plan` remembers."""
    shm = plan.shm
    return Planned(plan.processes, plan.queued_batches, shm.need, shm.size.value, shm.unsized)


def planned_from(text: str | None, *, size: int | None) -> Planned:
    """Return what the label or annotation `plan` says; `size` is that of the /dev/shm which the run was given."""
    words = dict(each.partition("=")[::2] for each in (text or "").split())
    numbers = {field: whole_number(words.get(field)) for field in NUMBERS}
    return Planned(**numbers, size=size, unsized="unsized" in words)


def whole_number(text: str | None) -> int | None:
    """Return the number that a label holds; None where there is no label or no number of at most 18 digits in it."""
    fits = text is not None and text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
    return int(text) if text is not None and fits else None
