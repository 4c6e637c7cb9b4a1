"""How a committed rendered file compares with its job file, and what is said of it: bytes, header, options, name."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainlaunch.committed.cluster_changes import ClusterChange
from trainlaunch.committed.job_files import find_jobs
from trainlaunch.container.name_hash import RENDERING_FORMAT
from trainlaunch.diagnostics import Diagnostic, Severity, Span
from trainlaunch.job.reserved import HEADER_START, KUBERNETES_LABEL_PREFIX, LABEL_PREFIX
from trainlaunch.render.header import Header
from trainlaunch.repository.regular_files import open_regular
from trainlaunch.repository.root import Reach
from trainlaunch.targets import KUBERNETES

HEAD = 4096  # bytes of a file in which its header starts
MAX_BYTES = 4 * 1024 * 1024  # of a rendered file; its code is one ConfigMap of at most 1 MiB
CURRENT, DIFFERS, REJECTED = "current", "differs", "rejected"

_OURS = re.compile(rf'"?(?:{re.escape(KUBERNETES_LABEL_PREFIX)}job|{re.escape(LABEL_PREFIX)}job)"?\s*[:=]')
_VALUES = re.compile(r"(image|shm_size|shm_extra|resources|data_loader|torchrun|ranks_per_container)\b")


@dataclass(frozen=True, slots=True)
class Checked:
    """One rendered file. `status` is current, differs or rejected: it could not be compared, and `findings` say why.

    `job` and `target` are empty, and `header` is None, where its header can't be read. `text` is the file's, `now` what
    it should be; both are empty unless it differs. `policies` are the files in force for its job,
    `name` is the job's, and `change` is what a cluster makes of the difference, None elsewhere.
    """

    path: Path
    status: str
    job: str = ""
    target: str = ""
    header: Header | None = None
    text: str = ""
    now: str = ""
    findings: tuple[Diagnostic, ...] = ()
    policies: tuple[str, ...] = ()
    name: str = ""
    change: ClusterChange | None = None

    @property
    def format(self) -> int:
        """The rendered file format of the file; the current one where it has no header."""
        return self.header.format if self.header else RENDERING_FORMAT

    @property
    def outdated(self) -> bool:
        """Whether an older trainlaunch wrote it: then a diff says nothing of the job."""
        return self.format < RENDERING_FORMAT


def of_newer_format(path: Path, header: Header) -> Diagnostic:
    """Return the error for a rendered file that a later trainlaunch wrote."""
    return Diagnostic(
        "TL121",
        f"{path} has rendering format {header.format}, and this trainlaunch writes format {RENDERING_FORMAT}",
        "install the trainlaunch that wrote it, or a newer one",
        why="a later version rendered it; writing it again here would go back",
        span=line_span(path, header.line + 1),
    )


def policy_from_here(path: Path, policy: str) -> Path:
    """Return a header's policy as seen from the current folder; an absolute one stays so."""
    return Path(policy if policy.startswith("/") else os.path.relpath(path.parent / policy))


def rendered_with_force(path: Path, header: Header, job: str) -> Diagnostic:
    """Return the error for a rendered file that `--force` once let have a shm_size below the job's need."""
    options = ["--target", header.target, *(word for each in header.sets for word in ("--set", each))]
    options += ["--name", header.name] if header.name else []
    options += ["--policy", str(policy_from_here(path, header.policy))] if header.policy else []
    command = shlex.join(["trainlaunch", "render", job, *options, "--write-to", str(path.parent), "--overwrite"])
    return Diagnostic(
        "TL121",
        f"{path} was rendered with --force, which is no option any more",
        f"run `{command}`; set the shm_size that it asks for, where it does",
        why="the preflight stops a job whose shm_size is below its one-epoch peak with 78, before the first line of "
        "training",
        span=line_span(path, header.line),
    )


def job_file_missing(path: Path, header: Header, job: str) -> Diagnostic:
    """Return the error for a rendered file whose job file was moved or deleted."""
    return Diagnostic(
        "TL121",
        f"the job file {job}, which {path} was rendered from, does not exist",
        f"render it again with `trainlaunch render JOB --target {header.target} --write-to {path.parent}`, "
        "or delete it",
        why="the header names it as seen from the rendered file's own folder; one of the two was moved or deleted",
        span=line_span(path, header.line),
    )


def bad_header(path: Path, reason: str, *, line: int = 1) -> Diagnostic:
    """Return the error for a header that says nothing usable, at its line."""
    return Diagnostic(
        "TL121",
        f"{path} looks like a rendered file and can't be compared: {reason}",
        "render it again with `trainlaunch render JOB --target TARGET --write-to DIR`, or delete it",
        why="its header says which job file, target and options it was made from",
        span=line_span(path, line),
    )


def no_longer_renders(path: Path, header: Header, job: str) -> Diagnostic:
    """Return the error that follows those of the job file itself."""
    return Diagnostic(
        "TL122",
        f"{path} can't be compared: {job} does not render for {header.target}",
        f"correct {job}, or delete {path}",
        why="the job file has errors, which stand before this one",
        span=line_span(path, header.line),
    )


def older_format(checked: Checked) -> Diagnostic:
    """Return the finding about a file that an older trainlaunch rendered: its lines differ for that reason alone."""
    again = ", and a Job that gets another name starts again where Git applies it" * (checked.target == KUBERNETES.name)
    return Diagnostic(
        "TL120",
        f"{checked.path} has rendering format {checked.format}, and this trainlaunch writes format {RENDERING_FORMAT}",
        f"run `trainlaunch check --fix`{again}",
        why="the same job gives other bytes in another format",
        span=line_span(checked.path, checked.header.line + 1 if checked.header else 1),
    )


def differs(checked: Checked, text: str, now: str) -> Diagnostic:
    """Return the finding, at the first line that differs."""
    have, want = text.split("\n"), now.split("\n")
    same = next((n for n, (a, b) in enumerate(zip(have, want, strict=False)) if a != b), min(len(have), len(want)))
    line = min(same, len(have) - 1)
    return Diagnostic(
        "TL120",
        f"{checked.path} is not what {checked.job} renders now for {checked.target}, from line {line + 1} on",
        "run `trainlaunch check --fix`, and review what it changes",
        why="the job file, its lock, its policy, trainlaunch or the rendered file was changed, and the others were not",
        span=Span(str(checked.path), line + 1, 1, line + 1, len(have[line]) + 1),
    )


def unreadable(path: Path, cause: OSError) -> Diagnostic:
    """Return the error for a file or folder that the system doesn't give."""
    reason = cause.strerror or str(cause)
    return Diagnostic("TL124", f"{path} can't be read: {reason}", "name files and folders that are there")


def no_rendering(path: Path) -> Diagnostic:
    """Return the error for a named file without a header."""
    return Diagnostic(
        "TL124",
        f"{path} is not a file that trainlaunch rendered",
        "name a file that `trainlaunch render` wrote, or a folder of them",
        why=f"no line of its first {HEAD} bytes starts with `# Rendered by trainlaunch from`",
    )


def line_span(path: Path, line: int) -> Span:
    return Span(str(path), line, 1, line, 2)


def without_header(path: Path) -> Diagnostic | None:
    """Return what is said of a file that has no header on top, None where it is none of ours.

    A header that stands further down counts as none: whatever is above it is nobody's.
    """
    with open_regular(path) as file:
        head = file.read(HEAD).decode(errors="replace")
        if HEADER_START in head:
            return None
        text = head + file.read(MAX_BYTES).decode(errors="replace")
    below = text.find(HEADER_START)
    if below < 0 and not _OURS.search(text):
        return None
    line = text.count("\n", 0, below) + 1 if below >= 0 else 1
    where = f"has its header in line {line}" if below >= 0 else "has no header"
    return Diagnostic(
        "TL155",
        f"{path} looks like a rendered file and {where}; it is compared with nothing",
        "render it again with `trainlaunch render JOB --target TARGET --write-to DIR --overwrite`, or delete it",
        why="the first lines of a rendered file say which job file, target and options it was made from",
        span=Span(str(path), line, 1, line, 1),
    )


def review_file(checked: Checked) -> Iterator[Diagnostic]:
    """Yield what is to be said of one rendered file's header."""
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


def review_all(found: Sequence[Checked]) -> Iterator[Diagnostic]:
    """Yield what is to be said of rendered files together: two job files that have one name for one target."""
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
    """Yield an error for each job file below `paths` that no rendered file was made from."""
    rendered = {os.path.realpath(each.job) for each in found if each.job}
    for path in find_jobs((each for each in paths if each.is_dir()), reach=reach):
        if os.path.realpath(path) not in rendered:
            yield Diagnostic(
                "TL157",
                f"{path} is a job file, and no rendered file here was made from it",
                f"run `trainlaunch render {path} --write-to DIR`, or delete it",
                why="--all-rendered asks for one of each",
                span=Span(str(path), 1, 1, 1, 1),
            )
