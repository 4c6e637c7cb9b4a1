"""What a script's process reports while settings are timed. Nobody has checked it: what doesn't fit is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from trainlaunch.inside.tune.task import Setting, Timed

MAX_NUMBER = 1 << 53  # of any number: beyond it is no measurement
MAX_CHARACTERS = 2000  # characters of a text


class Trial(NamedTuple):
    """One timing of a setting. Rates are batches per second of one rank, of which `rate` counts the epoch's start too.

    `wait_share` is the part of the time that the loop waited for a batch. `cpus_used` and `worker_cpus` are CPUs that
    were busy on average, `cpus_queued` processes that could run and had none, `throttled_share` the periods of the CPU
    quota that ended early, `shm_peak` bytes, `gpu_busy` percent; None where nothing told it. `error` is why there is no
    rate. `fresh`: in a process of its own, with the plan's threads for it.
    """

    setting: Setting
    rate: float
    wait_share: float
    shm_peak: int
    cpus_used: float | None = None
    worker_cpus: float | None = None
    cpus_queued: float | None = None
    throttled_share: float | None = None
    read_per_second: float | None = None
    gpu_busy: float | None = None
    batches: int = 0
    seconds: float = 0.0
    error: str = ""
    fresh: bool = False

    @property
    def timed(self) -> Timed:
        """What the search takes of it."""
        return Timed(self.setting, self.rate)


class TunedLoader(NamedTuple):
    """The loader that trains, as the script has it.

    `key` names it to the next process. `setting` is the script's own; `changes_in_place`: others can be timed under
    its loop, else `reason` says why not. `cpus` are those that the process may use. `batch_size` None: the dataset
    yields batches. `stepped`: an optimizer of torch stepped after its batches; else it went on longest.
    """

    at: str
    key: str
    kind: str
    batch_size: int | None
    setting: Setting
    changes_in_place: bool
    reason: str
    cuda: bool
    cpus: float
    stepped: bool = True


def trial_of(record: Mapping[str, Any], *, fresh: bool) -> Trial | None:
    """Return the timing that a record holds; None for what is none."""
    setting = setting_of(record.get("setting"))
    rate, batches = _number(record.get("rate")), _number(record.get("batches"))
    if setting is None or rate is None:
        return None
    return Trial(
        setting=setting,
        rate=rate,
        wait_share=min(1.0, _number(record.get("wait_share")) or 0.0),
        shm_peak=int(_number(record.get("shm_peak")) or 0),
        cpus_used=_number(record.get("cpus_used")),
        worker_cpus=_number(record.get("worker_cpus")),
        cpus_queued=_number(record.get("cpus_queued")),
        throttled_share=_number(record.get("throttled_share")),
        read_per_second=_number(record.get("read_per_second")),
        gpu_busy=_number(record.get("gpu_busy")),
        batches=int(batches or 0),
        seconds=_number(record.get("seconds")) or 0.0,
        error=_text(record.get("error", "")),
        fresh=fresh,
    )


def loader_of(record: Mapping[str, Any]) -> TunedLoader | None:
    """Return the loader that a record describes; None for what describes none."""
    setting, cpus, size = setting_of(record.get("setting")), _number(record.get("cpus")), record.get("batch_size")
    if setting is None or not cpus:
        return None
    return TunedLoader(
        at=_text(record.get("at", "")),
        key=str(record.get("key", "")),
        kind=_text(record.get("class", "")),
        batch_size=size if isinstance(size, int) and 0 < size < MAX_NUMBER else None,
        setting=setting,
        changes_in_place=record.get("changes_in_place") is True,
        reason=_text(record.get("reason", "")),
        cuda=record.get("cuda") is True,
        cpus=cpus,
        stepped=record.get("stepped") is not False,
    )


def setting_of(value: object) -> Setting | None:
    """Return the setting that JSON holds, None for anything else."""
    if not (isinstance(value, list) and len(value) == 3):
        return None
    workers, prefetch, pinned = value
    if not (_is_count(workers) and _is_count(prefetch) and pinned in (True, False, None)):
        return None
    return Setting(workers, prefetch, pinned)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10_000


def _text(value: object) -> str:
    """Return a text that can be written to a file: names of files that are no UTF-8 come with half characters."""
    return str(value)[:MAX_CHARACTERS].encode("utf-8", "backslashreplace").decode()


def _number(value: object) -> float | None:
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < MAX_NUMBER
    return float(value) if fits else None  # type: ignore[arg-type]
