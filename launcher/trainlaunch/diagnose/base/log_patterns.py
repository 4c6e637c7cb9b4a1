"""A text that a program prints for one reason: how its lines are found in gigabytes of others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

# Each text contains one of these. A log is searched for them alone, at the speed of memory; a line that has one is then
# asked for the texts that belong to it. Long and rare words: each costs up to half a second a
# gigabyte, long ones less, and those with one capital or x before them cost that once together.
PREFILTERS: tuple[str, ...] = (
    "rror",
    "xception",
    "xceed",
    "xitcode",
    "Traceback (most recent call last)",
    "File ",
    "shm",
    "NCCL",
    "illed",
    "SIG",
    "egmentation fault",
    "Aborted",
    "Evicted",
    "OOM",
    "imed out",
    "specified deadline",
    "ot found",
    "o such file",
    "enied",
    "trainlaunch: preflight stopped",
    "CUDA",
    "NVIDIA",
    "DataLoader w",
    "nable to",
    "Image",
    "oo many open files",
    "Xid (",
    "ibv_",
    "o space left on device",
    "Length of IterableDataset",
    "nodes are available",
    "NodeNot",
    "return code = -",
    "MountVolume",
    "TaintManager",
    "o matching manifest",
    "local_rank: ",
    "Cuda failure",
    "FATAL:  ",
    "NV_ERR_NO_MEMORY",
    "what():  ",
    "to run as root",
    "Can not execute",
    "Value 'sm_",
    "Unsupported gpu",
    "SignalException",
    "Cannot connect to the Docker",
    "There are not enough slots",
    "Resource temporarily",
    "Thread ",
    "RLIMIT_NPROC",
    "OS thread",
    "Operation not permitted",
    "No module named",
    "This process",
    "An attempt has been",
    "The node was low",
    "Preempt",
    "Instance ",
    "Failed to pull image",
    "Allocate failed due to",
    "There appear to be",
    "Driver/library",
    "FAILED. ",
    "Root Cause (",
    "Pin memory thread",
    "Caught ",
    "Could not ",
    "node types can fulfill",
)
MAX_CHARACTERS = 4096  # of a line; what a program says of an error stands in its first page


class LogPattern:
    """A text that some program prints, as a regular expression; `literal` is a part that each such line contains.

    The literal is compared as it is, capitals and all, and contains one of PREFILTERS. Parts between `.*` are
    looked for one behind the other, so that a line takes no longer than it is long; the match is the last part's.
    One of a `beside` says something only beside an exit code or another text: by itself it ends nothing.
    """

    __slots__ = ("beside", "literal", "root", "source")

    def __init__(self, literal: str, source: str = "", *, beside: bool = False) -> None:
        self.literal, self.beside = literal, beside
        self.source = source or re.escape(literal)
        self.root = next((each for each in PREFILTERS if each in literal), "")

    def found_in(self, line: str) -> re.Match[str] | None:
        """Return where a line has the text, None where it has not."""
        return in_order(self.source, line) if self.literal in line else None


def in_order(source: str, line: str) -> re.Match[str] | None:
    """Return where a line has a regular expression: the match of what stands behind its last `.*`."""
    return next(filter(None, (_found(parts, line) for parts in ways(source))), None)


def _found(parts: Iterable[re.Pattern[str]], line: str) -> re.Match[str] | None:
    found, at = None, 0
    for part in parts:
        found = part.search(line, at)
        if found is None:
            return None
        at = found.end()
    return found


@cache
def ways(source: str) -> tuple[tuple[re.Pattern[str], ...], ...]:
    """Return the ways in which a line can have a text, each as its parts between `.*`.

    They are compiled when a line first has the literal: a start that explains nothing pays nothing.
    """
    flags = "(?i)" if source.startswith("(?i)") else ""
    every = [_split(each, ".*") for each in _split(source.removeprefix(flags), "|")]
    one = "|".join(parts[0] for parts in every if len(parts) == 1)
    several = [parts for parts in every if len(parts) > 1]
    return tuple(tuple(re.compile(flags + part) for part in parts) for parts in ([[one]] if one else []) + several)


def _split(source: str, mark: str) -> list[str]:
    """Split a regular expression at a mark that stands outside of its groups and classes."""
    pieces, depth = [""], 0
    for part in re.findall(r"\\.|\[\^?.[^\]]*\]?|\.\*|.", source):
        depth += (part == "(") - (part == ")")
        if part == mark and not depth:
            pieces.append("")
        else:
            pieces[-1] += part
    return pieces


def by_root(texts: tuple[LogPattern, ...]) -> dict[str, tuple[LogPattern, ...]]:
    """Return the texts that a line with a root may have. Raises ValueError for a text that no root leads to."""
    lost = [each.literal for each in texts if not each.root]
    if lost:
        raise ValueError(f"no root in {lost}")
    found: dict[str, list[LogPattern]] = {}
    for each in texts:
        found.setdefault(each.root, []).append(each)
    return {root: tuple(each) for root, each in found.items()}
