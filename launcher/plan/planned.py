"""What a run was planned with, as the run itself remembers it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Planned:
    """What was planned for a container, as its labels say it; None where a label is missing.

    `processes` counts DataLoader workers of all ranks, `queued_batches` is Σ workers × prefetch_factor of all ranks,
    `need` and `size` are bytes.
    """

    processes: int | None = None
    queued_batches: int | None = None
    need: int | None = None
    size: int | None = None
    unsized: bool = False
