"""When a pod was told to end, and whether its container ended before or after that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainlaunch.run.base.clock import seconds


def removal_of(
    meta: Mapping[str, Any],
    status: Mapping[str, Any],
    conditions: Mapping[str, Mapping[str, Any]],
    ended: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what a Pod has of it: the values of its fields `disrupted`, `interrupted` and `removal_asked`."""
    return {
        "disrupted": (conditions.get("DisruptionTarget") or {}).get("status") == "True",
        "interrupted": _interrupted(meta, status, conditions, ended),
        "removal_asked": _removal_asked(meta),
    }


def _removal_asked(meta: Mapping[str, Any]) -> float:
    """Return when a pod's deletion was asked for: its deletionTimestamp is when the grace period is over."""
    until = stamped(meta.get("deletionTimestamp"))
    return until - int(meta.get("deletionGracePeriodSeconds") or 0) if until else 0.0


def _interrupted(
    meta: Mapping[str, Any],
    status: Mapping[str, Any],
    conditions: Mapping[str, Mapping[str, Any]],
    ended: Mapping[str, Any],
) -> bool:
    """Whether a container that ended with 0 had been told to end before; a deadline is told by its own reason."""
    if ended.get("exitCode") != 0 or status.get("reason") == "DeadlineExceeded":
        return False
    finished, asked = stamped(ended.get("finishedAt")), _removal_asked(meta)
    disrupted = conditions.get("DisruptionTarget") or {}
    if disrupted.get("status") == "True" and stamped(disrupted.get("lastTransitionTime")) <= finished:
        return True
    # A pod that has ended is deleted without a grace period: in the same second, that tells which came first.
    if asked and (asked < finished or (asked == finished and bool(meta.get("deletionGracePeriodSeconds")))):
        return True
    return status.get("phase") == "Failed" and bool(status.get("reason"))


def stamped(text: object) -> float:
    """Return a time of the API as seconds since the epoch, 0 where it sets none."""
    return seconds(text) if isinstance(text, str) and text else 0.0
