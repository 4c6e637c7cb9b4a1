"""Finds the policy of a job file: the nearest `trainlaunch-policy.yaml` in its folder or one above it."""

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


def find_policy(job_file: Path, report: Report) -> Path | None:
    """Return the nearest policy upward from `job_file`, as seen from here where the job file is; None: there is none.

    A policy gives defaults, a command among them, so a file that somebody else may have left in a shared folder above
    is put in `report`.
    """
    # Text, not paths: `check` asks this for thousands of renderings.
    folder = os.path.normpath(job_file.absolute()).rpartition("/")[0]
    # A folder of that name and a link to nowhere are no absence: reading them says so.
    while not os.path.lexists(f"{folder}/{FILE_NAME}"):
        if not folder:
            return None
        folder = folder.rpartition("/")[0]
    found = f"{folder}/{FILE_NAME}"
    path = Path(found if job_file.is_absolute() else os.path.relpath(found))
    if _foreign(path, job_file):
        report.take(_not_trusted(path, job_file))
        return None
    return path


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
