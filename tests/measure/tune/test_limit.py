"""What is said to limit the fastest setting, from its figures."""

from __future__ import annotations

import pytest
from trainlaunch.measure.tune.limit import LIMITS, agreed_limit, limit_of

from tests.measure.tune.made import LOADER, trial

CPU = LOADER._replace(cuda=False, cpus=2.0)


@pytest.mark.parametrize(
    ("figures", "ends", "limit", "words"),
    [
        ({"wait_share": 0.05}, "", "step", "on the CPU"),
        ({"wait_share": 0.6, "cpus_used": 1.9}, "", "cpu", "1.90 of 2 CPUs are busy"),
        ({"wait_share": 0.6, "cpus_used": 1.9, "throttled_share": 0.8}, "", "quota", "in 80 % of its periods"),
        ({"wait_share": 0.6, "cpus_used": 1.9, "throttled_share": 0.1}, "", "cpu", "1.90 of 2 CPUs"),
        ({"wait_share": 0.6, "cpus_used": 0.5, "cpus_queued": 2.0}, "", "cpu", "2.0 processes on average wait for one"),
        ({"wait_share": 0.9, "cpus_used": 0.1, "cpus_queued": 0.9}, "", "io", "only 0.10 of 2 CPUs"),
        ({"wait_share": 0.6, "cpus_used": 0.5, "cpus_queued": 0.1}, "", "io", "29 MiB/s"),
        ({"wait_share": 0.6, "cpus_used": 1.1, "worker_cpus": 0.1}, "", "process", "takes the batches of its workers"),
        ({"wait_share": 0.6, "cpus_used": 0.5}, "max_workers", "max_workers", "raise data_loader.max_workers"),
        ({"wait_share": 0.6, "cpus_used": 0.5}, "memory", "memory", "raise resources.memory"),
        ({"wait_share": 0.6, "cpus_used": 1.9}, "memory", "cpu", "1.90"),
    ],
)
def test_the_limit_follows_from_the_figures(figures: dict[str, float], ends: str, limit: str, words: str) -> None:
    """The CPUs before the last number of workers that was allowed: more of them would only share."""
    found = limit_of(trial(4, 8.0, **{"cpus_queued": 0.0, **figures}), CPU, at_the_end=ends)
    assert found is not None
    assert found.what == limit
    assert words in found.why
    assert found.what in LIMITS


def test_a_busy_gpu_is_the_limit_whatever_the_cpus_do() -> None:
    """The loop hardly waits."""
    found = limit_of(trial(4, 8.0, wait_share=0.04, gpu_busy=96.0), LOADER, at_the_end="memory")
    assert found is not None
    assert (found.what, "the GPU is busy 96 %" in found.why) == ("gpu", True)
    idle = limit_of(trial(4, 8.0, wait_share=0.04, gpu_busy=12.0), LOADER, at_the_end="")
    assert idle is not None
    assert (idle.what, "the GPU is busy 12 %" in idle.why) == ("step", True)


def test_figures_that_tell_nothing_name_no_limit() -> None:
    """CPUs that nobody counted, workers that are busy beside free CPUs, and two timings that disagree."""
    wide = CPU._replace(cpus=16.0)
    assert limit_of(trial(4, 8.0, wait_share=0.6, cpus_used=None), CPU, at_the_end="") is None
    assert limit_of(trial(4, 8.0, wait_share=0.6, cpus_used=3.9, worker_cpus=3.8), wide, at_the_end="") is None
    waits, steps = (trial(4, 8.0, wait_share=share, cpus_used=0.1) for share in (0.6, 0.02))
    assert agreed_limit([waits, steps], CPU, at_the_end="") is None
    agreed = agreed_limit([waits, waits], CPU, at_the_end="")
    assert agreed is not None
    assert agreed.what == "io"


def test_a_process_without_workers_that_is_busy_is_no_matter_of_storage() -> None:
    """It has no workers that could wait."""
    busy, idle = (trial(0, 8.0, wait_share=0.4, cpus_used=used, worker_cpus=0.0) for used in (0.98, 0.2))
    found = [limit_of(each, CPU, at_the_end="") for each in (busy, idle)]
    assert [each and each.what for each in found] == ["process", "io"]
