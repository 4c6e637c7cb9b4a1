"""Rows as a table for people, and time spans in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield rows as lines whose columns stand below each other."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def age(seconds: float) -> str:
    """Return a time span in its one or two largest units: `42s`, `3m12s`, `2h5m`, `4d3h`."""
    total = max(0, int(seconds))
    minutes, secs = divmod(total, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{secs}s" if minutes else f"{secs}s"
