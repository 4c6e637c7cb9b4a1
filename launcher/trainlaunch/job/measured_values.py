"""What a lock has of measurements of the script: by `trainlaunch probe` and `trainlaunch tune`, as typed values.

A `span` is the value's place in the lock, None before it is written there.
"""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.diagnostics import Span

KIND = "lock"  # of an Origin that stands in the lock


class ProbedLoader(NamedTuple):
    """One loader of the script; it stands where its loader in the job file does.

    `at` is the script's line, like train.py:48. `storages` are the bytes of each of the largest batch, whole pages.
    `varying`: batches were of several sizes. `batches_kept`: what the loop still held after its end, None where no
    other began then. `against_workers`: defects that were found of it and that workers bring out. The script's own
    numbers are None where they are the job's: `own_workers`, `own_prefetch`, `own_persistent`.
    """

    at: str
    num_workers: int
    batches_held: int
    storages: tuple[int, ...]
    varying: bool
    own_workers: int | None
    own_prefetch: int | None
    own_persistent: bool | None
    batches_kept: int | None = None
    against_workers: tuple[str, ...] = ()
    span: Span | None = None


class ProbeMeasurement(NamedTuple):
    """What `probe` measured of a job on `target`; `input` stands for the job that it was measured of."""

    input: str
    target: str
    torch: str
    python: str
    start_method: str
    loaders_run: str
    batches_seen: int
    loaders: tuple[ProbedLoader, ...]
    dataset_tensor_bytes: int
    span: Span | None = None


class Tune(NamedTuple):
    """The best setting that `tune` found on one target with so many `cpus`, in thousandths; None: no limit stated."""

    input: str
    cpus: int | None
    num_workers: int
    prefetch_factor: int
    span: Span | None = None
