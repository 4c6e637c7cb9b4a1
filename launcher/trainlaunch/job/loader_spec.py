"""What a job asks for of its DataLoaders, a part of trainlaunch.job.spec, and what a lock has of their measurements.

Those are by `trainlaunch probe` and `trainlaunch tune`; a `span` is the value's place in the lock, None before it is
written there.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from trainlaunch.diagnostics import Span


class TensorSpec(NamedTuple):
    """One tensor of a sample: `shape` after padding, without the batch dimension, and torch's dtype name."""

    shape: tuple[int, ...]
    dtype: str


class BatchBytes(NamedTuple):
    """A measured batch: `size` bytes in all, in `tensors` separate storages."""

    size: int
    tensors: int


class LoaderSpec(NamedTuple):
    """One DataLoader; `batch_size` None means that the dataset yields batches, `num_workers` None means auto.

    `storages` are the bytes of each storage of the largest batch that was measured, where the job sets no sample;
    `varying`: batches of several sizes were seen. `batches_kept` was measured too, with batches_held.
    `against_workers`: defects that a probe found of it and that workers bring out.
    """

    name: str
    batch_size: int | None
    sample: tuple[TensorSpec, ...] | None
    batch_bytes: BatchBytes | None
    num_workers: int | None
    prefetch_factor: int
    pin_memory: bool
    persistent_workers: bool
    timeout: int
    collate: str
    batches_held: int
    storages: tuple[int, ...] | None = None
    varying: bool = False
    batches_kept: int | None = None
    against_workers: tuple[str, ...] = ()

    @property
    def kept(self) -> int:
        """How many batches its loop still holds when it ends: all but the one that comes, unless that was measured."""
        return self.batches_held - 1 if self.batches_kept is None else self.batches_kept

    @property
    def stated_size(self) -> bool:
        """Whether the job sets the bytes of a batch."""
        return self.sample is not None or self.batch_bytes is not None

    @property
    def sized(self) -> bool:
        """Whether the bytes of a batch are known."""
        return self.stated_size or self.storages is not None

    @property
    def unsized(self) -> bool:
        """Whether it may put batches into /dev/shm of which nobody set what they take."""
        return not self.sized and self.collate != "none" and self.num_workers != 0


class DataLoaderSpec(NamedTuple):
    """All DataLoaders of one rank, whether they run `together` or `in_turn`, and what they share.

    `stated` is what the job sets of them, in one line: the same text where it sets the same.
    """

    loaders: tuple[LoaderSpec, ...]
    loaders_run: str
    max_workers: int
    sharing_strategy: str
    multiprocessing_context: str
    dataset_tensor_bytes: int
    inject: str
    stated: str = ""


def inherited(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return what one loader sets, over what data_loader sets for all.

    A loader's own sample replaces a batch_bytes from there, and its own batch_bytes a sample.
    """
    values = {**shared, **own}
    if "sample" in own and "batch_bytes" not in own:
        values.pop("batch_bytes", None)
    if "batch_bytes" in own and "sample" not in own:
        values.pop("sample", None)
    return values


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
    """What `probe` measured of a job on `target`; `input` stands for the job that it was measured of.

    `forced_input` does so where `data_loader.inject` is `force`, whatever number of workers is set.
    """

    input: str
    target: str
    torch: str
    python: str
    start_method: str
    loaders_run: str
    batches_seen: int
    loaders: tuple[ProbedLoader, ...]
    dataset_tensor_bytes: int
    forced_input: str | None = None
    span: Span | None = None


class Tune(NamedTuple):
    """The best setting that `tune` found on one target with so many `cpus`, in thousandths; None: no limit is set.

    `threads` are torch's, None: those that the plan has beside so many workers. `usable_cpus` are the whole CPUs that
    the job could use where no limit is set; None where one is, and in the lock of an earlier release.
    """

    input: str
    cpus: int | None
    num_workers: int
    prefetch_factor: int
    threads: int | None = None
    usable_cpus: int | None = None
    span: Span | None = None
