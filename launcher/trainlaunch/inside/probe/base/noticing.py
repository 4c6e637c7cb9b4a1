"""What checks note of a loader before its first iterator starts workers: afterwards it may be another."""

from __future__ import annotations

import importlib
from typing import Any

from trainlaunch.inside.probe.base.limits import Late, limited
from trainlaunch.inside.probe.base.loader_stats import Seen

MODULES = (
    "handle_in_init",
    "threads_before_fork",
    "stale_dataset",
    "caching",
    "worker_hang",
    "worker_dependent_samples",
)
_SECONDS = 3.0


def notice(seen: Seen) -> None:
    """Note what each of MODULES wants to know later; one that raises or is late notes nothing."""
    for name in MODULES:
        try:
            with limited(_SECONDS):
                seen.noticed[name] = _module(name).notice(seen)
        except (Late, Exception):
            seen.noticed[name] = None


def noticed(seen: Seen, name: str) -> Any:
    """Return what a module noted; of a loader that was never iterated, what it notes now."""
    if name not in seen.noticed and not seen.iterators:
        seen.noticed[name] = _module(name).notice(seen)
    return seen.noticed.get(name)


def _module(name: str) -> Any:
    return importlib.import_module(f"trainlaunch.inside.probe.checks.{name}")
