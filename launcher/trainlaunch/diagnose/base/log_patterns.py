"""A text that a program prints for one reason: how its lines are found in gigabytes of others.

And what engines, launchers and terminals put before a job's lines: taken off, and told apart by whose line it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache

# Each text contains one of these. A log is searched for them alone, at the speed of memory; a line that has one is then
# asked for the texts that belong to it. Long and rare words: each costs up to half a second a gigabyte, long ones less.
PREFILTERS: tuple[str, ...] = (
    "rror",
    "xception",
    "Traceback (most recent call last)",
    "  File ",
    "shm",
    "leaked shared_memory",
    "NCCL",
    "illed",
    "SIG",
    " fault",
    "Aborted",
    "hread",
    "Evicted",
    "reempt",
    "OOM",
    "imed out",
    "eadline",
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
    "was low on resource",
    "exceed",
    "new process before the",
    "o module named",
    "temporarily un",
    "exitcode",
    "return code = -",
    "MountVolume",
    "TaintManager",
    "to pull image",
    "o matching manifest",
    "llocate failed due to",
    "attempts left",
    "first observed failure",
    "local_rank: ",
    "Cuda failure",
    "FATAL:  ",
    "169.254.",
    "NV_ERR_NO_MEMORY",
    "srun: fatal: ",
    "library version mismatch",
    "what():  ",
    "to run as root",
)
MAX_CHARACTERS = 4096  # of a line; what a program says of an error stands in its first page


# What a run prints that does its work: a count beside a word of training, a bar, a rate.
WORKS = re.compile(
    rb"(?i)\b(?:epoch|(?:global_)?steps?|iter(?:ation)?s?|batch(?:es)?|(?:train|val|eval)?_?loss|lr|acc(?:uracy)?|ppl|"
    rb"samples?|tokens|throughput|reward)\b[\"':=#(\[ ]{1,4}\d|\d%\||\b(?:it/s|s/it)\b|\b(?:batch size|rank) \d+\s*$"
    rb"|^(?:saved|saving|loaded|downloaded|resum(?:ed|ing)|restored|validating|evaluating|training) "
)
# What a program says that goes on after an error.
GOES_ON = re.compile(
    rb"(?i)\bretry(?:ing)? (?!: )|\b(?:re)?trying (?!to )|\bfall(?:s|ing)? ?back\b|\bignor(?:ed?|ing)\b|"
    rb"\b(?:will|and) continue\b|\bcontinuing\b|\bskipp(?:ed|ing)\b|\bfrom scratch\b|\brecovered\b|\bhandled\b|"
    rb"\busing \S.{0,40} (?:instead|in ?stead)|\busing (?:the |a )?(?:slow|default|cpu)|\bdevice cpu\b|"
    rb"\brestarting the \w+|\b(?:attempt|try) \d+ of \d+"
)


WARNED = re.compile(r"\b(?:User|Future|Runtime|Deprecation)Warning: ")


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


_COLOURS = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
# Each form ends where the job's own text begins. Group `who` tells whose line it is where several are mixed.
_FORMS = (
    # journalctl, short and short-iso: time, host, unit[pid]:
    rf"(?:(?:{_MONTHS}) [ \d]\d \d\d:\d\d:\d\d|{_TIME}) [\w.-]+ (?P<unit>[\w.@/-]+(?:\[\d+\])): ",
    # containerd's own files: time, stream, partial or full
    rf"{_TIME} (?:stdout|stderr) [FP](?: |$)",
    # docker logs -t, kubectl logs --timestamps, GitHub
    rf"\ufeff?{_TIME}(?: |$)",
    r"##\[\w+\]",
    # docker compose: service-1  |
    r"(?P<service>[A-Za-z0-9][\w.-]*)\s*\| ?",
    # kubectl logs --prefix
    r"\[(?P<pod>pod/[^\]\s]+)\] ?",
    # torchrun --tee, torch's own excepthook, mpirun --tag-output
    r"\[(?P<rank>(?:default|rank|trainer|worker|local_rank|\w+-)?\d+)\]:? ?",
    r"\[\d+,(?P<mpi>\d+)\]<std(?:out|err)>: ?",
    # srun --label
    r"(?P<task>\d{1,5}): ",
    # Ray and vLLM: (Actor pid=1, ip=…)
    r"\((?P<actor>[^()\s]*(?: rank=\d+)? ?pid=\d+(?:, ip=[\d.]+)?)\) ?",
    # vLLM: ERROR 11-28 10:00:00 [core.py:700]
    r"(?:ERROR|WARNING|INFO|DEBUG|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./]+:\d+\] ?",
    # glog, as torchrun's error handlers print
    r"[EWIF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./]+:\d+\] ?(?:\[\d+\])? ?",
)
_PREFIX = re.compile("|".join(f"(?:{each})" for each in _FORMS))
MAX_PREFIXES = 5


def without_colours(text: str) -> str:
    """Return a text without a terminal's colours, titles and movements."""
    return _COLOURS.sub("", text) if "\x1b" in text else text


def unprefixed(line: str) -> tuple[str, str]:
    """Return a line as the job printed it, its indentation kept, and whose it is: `` where nothing tells.

    A progress bar's carriage returns leave what stands last, as on a terminal.
    """
    text = without_colours(line).rstrip("\r\n")
    if text.startswith('{"log":'):
        text = _of_json(text)
    if "\r" in text:
        text = text.rpartition("\r")[2] or text
    owner = ""
    for _ in range(MAX_PREFIXES):
        found = _PREFIX.match(text)
        if found is None:
            break
        owner += "".join(f"{each} " for each in found.groups() if each)
        text = text[found.end() :]
    return text, owner


def _of_json(line: str) -> str:
    """Return what an entry of Docker's own log files says."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line
    return str(entry.get("log", line)).rstrip("\r\n") if isinstance(entry, dict) else line
