"""Whether a run is started again after an attempt that failed, and how long that waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlaunch.exit_codes import EXIT_TRY_ELSEWHERE, FINAL
from trainlaunch.job.spec import JobSpec

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.evidence import Evidence

NEVER_RETRIED = frozenset({0, *FINAL})
MAX_BACKOFF_SECONDS = 360  # seconds, as a Job's controller waits at most, unless restart.backoff itself is longer


def may_retry(exit_code: int, evidence: Evidence | None, codes: tuple[int, ...] | None = None) -> bool:
    """Whether another attempt may end in another way: nobody stopped this one, and its files are not what was wrong.

    `codes` are those of restart.on_exit_codes, None for any; 75 says that another machine may do.
    """
    if evidence is None or evidence.stopped:
        return False
    if exit_code in NEVER_RETRIED and not (evidence.unhealthy and exit_code == 0):  # it saved, and did not finish
        return False
    return codes is None or exit_code in {*codes, EXIT_TRY_ELSEWHERE}


def backoff(job: JobSpec, ended: int) -> int:
    """Return the seconds between attempt number `ended` and the next: restart.backoff, twice as long each time."""
    if job.backoff is None:
        return 0
    return int(min(job.backoff * 2 ** min(ended - 1, 30), max(job.backoff, MAX_BACKOFF_SECONDS)))
