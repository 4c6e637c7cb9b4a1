"""How the engine asks after a job: the values of `healthcheck`."""

from __future__ import annotations

from typing import NamedTuple


class HealthCheck(NamedTuple):
    """How the engine asks after the container; all durations in seconds.

    `stall_after` is the longest wait for one batch, None where waits are not watched.
    """

    interval: int
    timeout: int
    retries: int
    start_period: int
    on_unhealthy: str
    stall_after: int | None = None

    @property
    def stops(self) -> bool:
        """Whether an unhealthy job is stopped."""
        return self.on_unhealthy == "stop"
