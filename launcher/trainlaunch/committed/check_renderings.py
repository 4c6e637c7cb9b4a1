"""Compares committed rendered files with what their job files render now; it finds them by their header.

Reads nothing but the rendered files, the job files that they name, and those files' locks and policies.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from trainlaunch.committed.cluster_changes import cluster_change
from trainlaunch.committed.comparison import (
    CURRENT,
    DIFFERS,
    HEAD,
    MAX_BYTES,
    REJECTED,
    Checked,
    bad_header,
    differs,
    job_file_missing,
    line_span,
    no_longer_renders,
    no_rendering,
    of_newer_format,
    older_format,
    policy_from_here,
    rendered_with_force,
    review_file,
    unreadable,
)
from trainlaunch.committed.job_files import is_job
from trainlaunch.committed.render_jobs import parallel_map
from trainlaunch.container.name_hash import RENDERING_FORMAT
from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.errors import JobFileRejected, UsageError
from trainlaunch.job.reserved import HEADER_START
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.render.header import Header, named_job_file, read_header
from trainlaunch.render.kubernetes import is_own_kustomization, kustomization_text, resources_in
from trainlaunch.repository.regular_files import open_regular, read_regular
from trainlaunch.repository.root import ITS_OWN, Reach, link_outside, outside, repository_of
from trainlaunch.rules import plan_and_findings
from trainlaunch.targets import KUBERNETES, is_rendered
from trainlaunch.verify import verified

SUFFIXES = (".yaml", ".yml", ".sh", ".json", ".Dockerfile")  # of files that are looked into while walking a folder
HIDDEN = frozenset(
    {".github", ".gitlab", ".devcontainer"}
)  # where CI and editors keep their files; no other is entered
RENDERINGS_PER_PROCESS = 150  # fewer than these cost less than the start of a process
RENDERINGS_PER_CHUNK = 48  # a multiple of the targets, whose rendered files of one job then share a parsed file mostly


class RenderingFiles(NamedTuple):
    """The files that hold a rendered file, ordered by job file, and the `others` of their endings in the same folders.

    `unread` are warnings about links that lead elsewhere.
    """

    renderings: list[Path]
    others: list[Path]
    unread: list[Diagnostic]


def find_renderings(paths: Iterable[Path], *, reach: Reach = ITS_OWN) -> RenderingFiles:
    """Return the files that hold a rendered file: `paths` themselves, and those in folders below them.

    Links to folders are not entered, nor hidden ones but HIDDEN; only regular files are read there. Raises UsageError
    for what can't be read, and for a named file that is not a rendered file.
    """
    found: dict[Path, str] = {}
    problems: list[Diagnostic] = []
    others: list[Path] = []
    unread: list[Diagnostic] = []
    for path in paths:
        candidates: Iterable[Path] = _files_below(path, problems) if path.is_dir() else (path,)
        for each in candidates:
            led = link_outside(each, reach, "put the file itself there, or add `--allow-outside DIR`")
            if led:
                problems.append(led) if each is path else unread.append(led._replace(severity=Severity.WARNING))
                continue
            if path is not each and not each.is_file():
                continue  # a pipe would be read for ever
            try:
                job_file = _job_file(each)
            except OSError as cause:
                problems.append(unreadable(each, cause))
                continue
            if job_file is not None:
                found[each] = job_file
            elif each is path:
                problems.append(no_rendering(path))
            else:
                others.append(each)
    if problems:
        raise UsageError(problems)
    return RenderingFiles(sorted(found, key=lambda path: (found[path], str(path))), others, unread)


def _files_below(folder: Path, problems: list[Diagnostic]) -> Iterator[Path]:
    def closed(cause: OSError) -> None:  # os.walk itself leaves such a folder out, and less would be checked
        problems.append(unreadable(Path(cause.filename), cause))

    for parent, folders, files in os.walk(folder, onerror=closed):
        folders[:] = [each for each in folders if not each.startswith(".") or each in HIDDEN]
        for each in files:
            if each.endswith(SUFFIXES):
                yield Path(parent, each)


def _job_file(path: Path) -> str | None:
    """Return the job file of a rendered file, spelled the same for all that it has, None where `path` isn't one."""
    with open_regular(path) as file:
        head = file.read(HEAD).decode(errors="replace")
    if is_own_kustomization(path, head):
        return ""
    if HEADER_START[1:] not in head:
        return None
    job_file = named_job_file(head)
    # What only looks like a header is kept: compared says what is wrong with it.
    return "" if job_file is None else os.path.normpath(path.parent / job_file)


def compare_all(paths: Sequence[Path], *, policy: Path | None = None, reach: Reach = ITS_OWN) -> Iterator[Checked]:
    """Yield how each rendered file compares, in order; many of them are shared out among the CPUs of this process."""
    compare = functools.partial(compared, policy=policy, reach=reach)
    yield from parallel_map(compare, paths, per_process=RENDERINGS_PER_PROCESS, chunk=RENDERINGS_PER_CHUNK)


def compared(path: Path, *, policy: Path | None = None, reach: Reach = ITS_OWN) -> Checked:
    """Return how the rendered file `path` compares with what its job file renders now. Writes nothing.

    `policy` replaces the one that the rendered file or its job file names. Nothing outside of `reach` is read.
    """
    led = link_outside(path, reach, "put the file itself there")
    if led:
        return Checked(path, REJECTED, findings=(led,))
    try:
        data = read_regular(path, MAX_BYTES)
        text = data.decode(errors="replace")
        if is_own_kustomization(path, text):
            return _compared_kustomization(path, text)
        header = read_header(text)
    except (OSError, ValueError) as cause:
        return Checked(path, REJECTED, findings=(bad_header(path, str(cause)),))
    if header is None:
        return Checked(path, REJECTED, findings=(bad_header(path, "its header is incomplete"),))
    job = os.path.normpath(path.parent / header.job_file)
    checked = Checked(path, CURRENT, job, header.target, header)
    refused = _refused(path, header, job, reach)
    if refused:
        return replace(checked, status=REJECTED, findings=(refused,))
    try:
        plan, findings = _plan(checked, header, policy, reach)
        now = render(plan, base=_base(path, header))
        if plan.job.patch is not None:  # unlike our own templates, it is new with each job
            verified(plan, now, base=_base(path, header))
    except JobFileRejected as rejected:
        errors = (*rejected.diagnostics, no_longer_renders(path, header, job))
        return replace(checked, status=REJECTED, findings=errors)
    policies = plan.job.policy.files if plan.job.policy else ()
    checked = replace(checked, policies=policies, name=plan.job.name)
    said = (*(each for each in findings if each.severity is Severity.WARNING), *review_file(checked))
    if now.encode() == data:
        return replace(checked, findings=said)
    finding = older_format(checked) if checked.outdated else differs(checked, text, now)
    change = cluster_change(plan, text, now) if checked.target == KUBERNETES.name else None
    return replace(checked, status=DIFFERS, text=text, now=now, findings=(finding, *said), change=change)


def _compared_kustomization(path: Path, text: str) -> Checked:
    now = kustomization_text(resources_in(path.parent))
    checked = Checked(path, CURRENT, str(path.parent), "kustomize")
    if now == text:
        return checked
    return replace(checked, status=DIFFERS, text=text, now=now, findings=(differs(checked, text, now),))


def rewritten(checked: Checked, *, policy: Path | None = None, reach: Reach = ITS_OWN) -> str:
    """Return the text that a rendered file that differs should have, read back before anybody writes it.

    Raises RenderingDisagrees where it says something else than the plan.
    """
    if checked.status != DIFFERS:
        raise ValueError(f"{checked.path} does not differ")
    if checked.header is None:
        return checked.now  # a kustomization.yaml, which no plan decides
    plan, _ = _plan(checked, checked.header, policy, reach)
    return verified(plan, checked.now, base=_base(checked.path, checked.header))


def _plan(
    checked: Checked, header: Header, policy: Path | None, reach: Reach
) -> tuple[LaunchPlan, tuple[Diagnostic, ...]]:
    if policy is None and header.policy is not None:
        policy = policy_from_here(checked.path, header.policy)
        if not reach.holds(policy, checked.path):
            fix = f"add `--policy {policy}` if it is meant"
            place = line_span(checked.path, header.line)
            raise JobFileRejected([outside(checked.path, f"--policy {header.policy}", reach, fix, place)])
    spec = read_job(Path(checked.job), target=header.target, sets=header.sets, policy=policy, reach=reach)
    return plan_and_findings(spec, name=header.name)


def _base(path: Path, header: Header) -> Path | None:
    return None if header.relative_to_job else path.parent


def _is_job_above(path: Path, job: Path) -> bool:
    """Whether a rendered file of no repository names a job in a folder above it, where most are rendered from."""
    real = Path(os.path.realpath(job))
    above = Path(os.path.realpath(path)).is_relative_to(real.parent)
    return above and repository_of(path) is None and is_job(real)


def _refused(path: Path, header: Header, job: str, reach: Reach) -> Diagnostic | None:
    """Return why the job isn't even read, or None."""
    if not is_rendered(header.target):
        return bad_header(path, f"it names the target {header.target}, which renders no file", line=header.line)
    if header.format > RENDERING_FORMAT:
        return of_newer_format(path, header)
    if not reach.holds(Path(job), path) and not _is_job_above(path, Path(job)):
        fix = "render it again from a job file of its repository, or add `--allow-outside DIR`"
        return outside(path, f"the job file {header.job_file}", reach, fix, line_span(path, header.line))
    if not Path(job).exists():
        return job_file_missing(path, header, job)
    return rendered_with_force(path, header, job) if header.forced else None
