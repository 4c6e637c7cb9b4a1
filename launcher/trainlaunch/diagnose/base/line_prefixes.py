"""What engines, launchers and terminals put before a job's lines: taken off, and told apart by whose line it is."""

from __future__ import annotations

import json
import re

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
