"""Finds the policies of a job file: each `trainlaunch-policy.yaml` from its folder up to the repository's root."""

from __future__ import annotations

import os
from pathlib import Path

from launcher.diagnostics import Diagnostic, Explanation, Report

TL144 = Explanation(
    "TL144",
    "policy-of-another-user",
    "A `trainlaunch-policy.yaml` above the job file belongs to a user who is neither you, root, nor the owner of "
    "the job file.",
    """\
**Why**: a policy can give a job its command and image, and a shared folder like `/tmp` holds anybody's files. Naming it
says that it is meant.

**Example**:

```text
$ trainlaunch plan /tmp/work/job.yaml
error[TL144]: the policy /tmp/trainlaunch-policy.yaml above /tmp/work/job.yaml belongs to another user (uid 1001)
```

**Write instead**:

```text
$ trainlaunch plan /tmp/work/job.yaml --policy /tmp/trainlaunch-policy.yaml
```
""",
)
FILE_NAME = "trainlaunch-policy.yaml"


def find_policies(job_file: Path, report: Report) -> list[Path]:
    """Return the policies upward from `job_file`, the nearest first, as seen from here where the job file is.

    The search ends with the folder that holds `.git`, the root of the repository, else with /. A policy gives defaults,
    a command among them, so a file that somebody else may have left in a shared folder above is put in `report`.
    """
    # Text, not paths: `check` asks this for thousands of renderings.
    folder = os.path.normpath(job_file.absolute()).rpartition("/")[0]
    found = []
    while True:
        # A folder of that name and a link to nowhere are no absence: reading them says so.
        if os.path.lexists(f"{folder}/{FILE_NAME}"):
            found.append(f"{folder}/{FILE_NAME}")
        if not folder or os.path.lexists(f"{folder}/.git"):
            break
        folder = folder.rpartition("/")[0]
    paths = [Path(each if job_file.is_absolute() else os.path.relpath(each)) for each in found]
    foreign = [each for each in paths if _foreign(each, job_file)]
    for each in foreign:
        report.take(_not_trusted(each, job_file))
    return [each for each in paths if each not in foreign]


def _foreign(path: Path, job_file: Path) -> bool:
    """Return whether the policy belongs to somebody other than root, this user and the owner of the job file."""
    try:
        return path.stat().st_uid not in {0, os.geteuid(), job_file.stat().st_uid}
    except OSError:
        return False  # one of the two can't be read, which its reader says


def _not_trusted(path: Path, job_file: Path) -> Diagnostic:
    return Diagnostic(
        TL144.code,
        f"the policy {path} above {job_file} belongs to another user (uid {path.stat().st_uid})",
        f"add `--policy {path}` if you trust it, or write the path of another as policy in the job file",
        why="a policy can give a job its command and image, and a shared folder like /tmp holds anybody's files",
    )
