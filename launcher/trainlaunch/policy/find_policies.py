"""Finds the policies of a job: those upward from its file, to the root of its repository."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from trainlaunch.diagnostics import Diagnostic, Report
from trainlaunch.repository.root import ITS_OWN, Reach, Repository, link_outside, repository_of

FILE_NAME = "trainlaunch-policy.yaml"


def find_policies(job_file: Path, report: Report, reach: Reach = ITS_OWN) -> list[Path]:
    """Return the policies upward from `job_file`, the nearest first, as seen from here where the job file is.

    The search ends at the root of its repository, else with /; from where a link leads to it goes on from there too. A
    policy gives defaults, a command among them, so one that somebody else may have left in a shared folder above, one
    that leads elsewhere, and a repository that would end the search for nobody's sake, are put in `report`.
    """
    found = list(_upward(job_file, report))
    real = Path(os.path.realpath(job_file))
    if real.parent != job_file.absolute().parent:
        known = set(map(os.path.realpath, found))
        found += (each for each in _upward(real, report) if os.path.realpath(each) not in known)
    paths = [Path(each if job_file.is_absolute() else os.path.relpath(each)) for each in found]
    kept = []
    for each in paths:
        led_away = link_outside(each, reach, f"put the file itself there, or add `--policy {each}`")
        if led_away:
            report.take(led_away)
        elif _foreign(each, job_file):
            report.take(_not_trusted(each, job_file))
        else:
            kept.append(each)
    return kept


def _upward(file: Path, report: Report) -> Iterator[str]:
    repository = repository_of(file)
    root = str(repository.root) if repository else ""
    # Text, not paths: `check` asks this for thousands of rendered files.
    folder = os.path.normpath(file.absolute()).rpartition("/")[0]
    while True:
        # A folder of that name and a link to nowhere are no absence: reading them says so.
        if os.path.lexists(f"{folder}/{FILE_NAME}"):
            yield f"{folder}/{FILE_NAME}"
        if not folder or folder == root:
            break
        folder = folder.rpartition("/")[0]
    if repository and repository.around and folder == root:  # else a link leads into it, which is looked at itself
        above = (each for each in repository.root.parents if each.is_relative_to(repository.around[-1]))
        passed = next((each / FILE_NAME for each in above if os.path.lexists(each / FILE_NAME)), None)
        if passed:
            report.take(_passed_over(str(passed), repository))


def _foreign(path: Path, job_file: Path) -> bool:
    """Return whether the policy belongs to somebody other than root, this user and the owner of the job file."""
    try:
        return path.stat().st_uid not in {0, os.geteuid(), job_file.stat().st_uid}
    except OSError:
        return False  # one of the two can't be read, which its reader says


def _not_trusted(path: Path, job_file: Path) -> Diagnostic:
    return Diagnostic(
        "TL144",
        f"the policy {path} above {job_file} belongs to another user (uid {path.stat().st_uid})",
        f"add `--policy {path}` if you trust it, or write the path of another as policy in the job file",
        why="a policy can give a job its command and image, and a shared folder like /tmp holds anybody's files",
    )


def _passed_over(policy: str, repository: Repository) -> Diagnostic:
    import shutil  # only on the way to an error

    outer = next(each for each in repository.around if Path(policy).is_relative_to(each))
    if shutil.which("git") is None:
        return Diagnostic(
            "TL136",
            f"git is not installed here, and says whether {repository.root} is a part of {outer}, where {policy} holds",
            f"install git, or add `--policy {policy}`",
        )
    return Diagnostic(
        "TL136",
        f"{repository.root} is a repository that {outer} doesn't track, so {policy} would not hold in it",
        f"make it a submodule of {outer}, delete {repository.root / '.git'}, or add `--policy {policy}`",
        why="a `.git` that nothing tracks can be left by anybody, and a limit must not end there",
    )
