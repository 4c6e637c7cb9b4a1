"""The options of `logs` that name a part of one, as users of `docker logs` and `kubectl logs` write them."""

from __future__ import annotations

import argparse
import re
import time

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError
from trainlaunch.run.base.clock import SECOND, nanoseconds
from trainlaunch.run.base.log_position import LogPart

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:d|h|ms|us|µs|ns|m|s))+")
_PART = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)(d|h|ms|us|µs|ns|m|s)")
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_EPOCH = re.compile(r"\d{1,11}(?:\.\d{1,9})?")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)([T ]\d\d:\d\d(?::\d\d)?)?(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?")
MAX_LINES = 2**31 - 1


def add_log_arguments(parser: argparse.ArgumentParser) -> None:
    """Add them."""
    parser.add_argument("--tail", metavar="N", default="all", help="the last N lines of each node (default: all)")
    parser.add_argument("--since", metavar="T", help="lines since then, as in 10m, 1h30m or 2026-01-31T08:00:00Z")
    parser.add_argument("--timestamps", action="store_true", help="put the time before each line")


def part_of(args: argparse.Namespace) -> LogPart:
    """Return the part that the arguments ask for; a duration counts back from now. Raises UsageError (TL118)."""
    return LogPart(_tail(args.tail), None if args.since is None else _since(args.since), args.timestamps)


def attempt(text: str) -> int:
    """Read --attempt for argparse."""
    if not re.fullmatch(r"[1-9]\d{0,8}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of an attempt; the first is 1")
    return int(text)


def _tail(text: str) -> int | None:
    if text in {"all", "-1"}:
        return None
    if not re.fullmatch(r"\d{1,10}", text, re.ASCII):
        raise _unreadable("--tail", text, "a number of lines", "write --tail 100, or leave it out for all")
    return min(int(text), MAX_LINES)


def _since(text: str) -> int:
    if _DURATION.fullmatch(text):
        ago = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
        return max(0, time.time_ns() - int(ago * SECOND))
    if _EPOCH.fullmatch(text):
        whole, _, fraction = text.partition(".")
        return int(whole) * SECOND + int(fraction.ljust(9, "0"))
    if found := _MOMENT.fullmatch(text):
        day, clock, fraction, zone = found.groups()
        try:  # one without a zone is this machine's own time, as `docker logs` reads it
            return max(0, nanoseconds(f"{day}{clock or 'T00:00'}{fraction or ''}{zone or ''}"))
        except (ValueError, OverflowError):
            pass  # like a 13th month
    raise _unreadable("--since", text, "a duration or a time", "write --since 10m, or --since 2026-01-31T08:00:00Z")


def _unreadable(option: str, text: str, what: str, fix: str) -> UsageError:
    return UsageError([Diagnostic("TL118", f"{option} {text!r} is not {what}", fix)])
