"""What is to be said of committed renderings beside their bytes: headers, options, names, and jobs without any."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from trainlaunch.committed.compared import HEAD, MOST_BYTES, Checked
from trainlaunch.committed.jobs import find_jobs
from trainlaunch.diagnostics import Diagnostic, Severity, Span
from trainlaunch.job.reserved import HEADER_START, KUBERNETES_LABEL_PREFIX, LABEL_PREFIX
from trainlaunch.repository.reading import open_regular
from trainlaunch.repository.root import Reach

_OURS = re.compile(rf'"?(?:{re.escape(KUBERNETES_LABEL_PREFIX)}job|{re.escape(LABEL_PREFIX)}job)"?\s*[:=]')
_VALUES = re.compile(r"(image|shm_size|shm_extra|resources|data_loader|torchrun|ranks_per_container)\b")


def without_header(path: Path) -> Diagnostic | None:
    """Return what is said of a file that has no header on top, None where it is none of ours.

    A header that stands further down counts as none: whatever is above it is nobody's.
    """
    with open_regular(path) as file:
        head = file.read(HEAD).decode(errors="replace")
        if HEADER_START in head:
            return None
        text = head + file.read(MOST_BYTES).decode(errors="replace")
    below = text.find(HEADER_START)
    if below < 0 and not _OURS.search(text):
        return None
    line = text.count("\n", 0, below) + 1 if below >= 0 else 1
    where = f"has its header in line {line}" if below >= 0 else "has no header"
    return Diagnostic(
        "TL155",
        f"{path} looks like a rendering and {where}; it is compared with nothing",
        "render it again with `trainlaunch render JOB --target TARGET --write-to DIR --overwrite`, or delete it",
        why="the first lines of a rendering say which job file, target and options it was made from",
        span=Span(str(path), line, 1, line, 1),
    )


def of_one(checked: Checked) -> Iterator[Diagnostic]:
    """Yield what is to be said of one rendering's header."""
    if checked.header is None:
        return
    span = Span(str(checked.path), checked.header.line, 1, checked.header.line, 1)
    changed = [each.partition("=")[0] for each in checked.header.sets if _VALUES.match(each)]
    if changed:
        yield Diagnostic(
            "TL156",
            f"{checked.path} was rendered with --set {', '.join(changed)}, which {checked.job} does not say",
            "write it into the job file, a profile or a policy, and render again",
            why="who reviews the job file sees other values than what runs",
            severity=Severity.WARNING,
            span=span,
        )


def of_all(found: Sequence[Checked]) -> Iterator[Diagnostic]:
    """Yield what is to be said of renderings together: two job files that have one name for one target."""
    first: dict[tuple[str, str], Checked] = {}
    for each in found:
        if not each.name:
            continue
        other = first.setdefault((each.name, each.target), each)
        if other.job != each.job:
            yield Diagnostic(
                "TL157",
                f"{each.job} and {other.job} have the name {each.name}, and both are rendered for {each.target}",
                f"give one of them another name; {other.path} and {each.path} take each other's place",
                why="a name is what an engine and a cluster know a job by",
                severity=Severity.WARNING,
                span=Span(str(each.path), 1, 1, 1, 1),
            )


def not_rendered(paths: Iterable[Path], found: Iterable[Checked], reach: Reach) -> Iterator[Diagnostic]:
    """Yield an error for each job file below `paths` that no rendering was made from."""
    rendered = {os.path.realpath(each.job) for each in found if each.job}
    for path in find_jobs((each for each in paths if each.is_dir()), reach=reach):
        if os.path.realpath(path) not in rendered:
            yield Diagnostic(
                "TL157",
                f"{path} is a job file, and no rendering here was made from it",
                f"run `trainlaunch render {path} --write-to DIR`, or delete it",
                why="--all-rendered asks for one of each",
                span=Span(str(path), 1, 1, 1, 1),
            )
