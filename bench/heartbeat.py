"""What the heartbeat costs a batch: the time of `__next__` with and without it, on this machine.

    python bench/heartbeat.py [--batches 200000] [--rounds 7]

Prints the median of the rounds in microseconds, and exits 1 where it is above the 5 that docs/health.md promises.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from trainlaunch.inside.heartbeat import LINE, LINES, Heartbeat, follow

MOST = 5.0  # microseconds


class Iterator:
    """As torch's own, with nothing to wait for."""

    def __next__(self) -> int:
        return 1


def seconds(iterator: Any, batches: int) -> float:
    """Return the seconds that so many batches take."""
    begun = time.perf_counter()
    for _ in range(batches):
        iterator.__next__()
    return time.perf_counter() - begun


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        page = Path(folder, "heartbeat")
        page.write_bytes(b" " * LINE * LINES)
        noted: Any = type("Noted", (Iterator,), {"__next__": Iterator.__next__})
        follow(noted, Heartbeat(str(page)), lambda: None)
        costs = [
            (seconds(noted(), args.batches) - seconds(Iterator(), args.batches)) / args.batches * 1e6
            for _ in range(args.rounds)
        ]
    median = statistics.median(costs)
    print(f"heartbeat: {median:.2f} us a batch (rounds from {min(costs):.2f} to {max(costs):.2f}), at most {MOST}")
    return 0 if median <= MOST else 1


if __name__ == "__main__":
    raise SystemExit(main())
