"""Reads the folders of mounts of type code where the target has to be given their files, and checks them."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from trainlaunch.job.code_folder import WHOLE, CodeFolder, CodeRefused, read_code_folder
from trainlaunch.job.validation.context import ValidationContext
from trainlaunch.repository.root import Reach, outside
from trainlaunch.sanitize import shorten
from trainlaunch.targets import TARGETS


def code_folders(job: ValidationContext, file: Path, reach: Reach) -> dict[int, CodeFolder]:
    """Return the files by the index of their mount; a relative source is seen from the folder of the job's `file`.

    A target that mounts paths of this host is given none: there a source is looked at when the job starts, but one
    that is a file is an error everywhere.
    """
    base = file.parent
    known = job.target_record if job.target in TARGETS else None
    found: dict[int, CodeFolder] = {}
    for path, mount in job.entries("mounts"):
        if mount.get("type") != "code" or not isinstance(mount.get("source"), str):
            continue
        source, field = mount["source"], f"{path}.source"
        if not reach.holds(base / source, file):
            job.report.take(
                outside(
                    file,
                    f"{field}: {shorten(source)}",
                    reach,
                    f"move it into the repository, or add `--allow-outside "
                    f"{shlex.quote(os.path.normpath(base / source))}`",
                    job.node(field).span,
                )
            )
            continue
        try:
            if known is not None and not known.mounts_host_paths:
                found[int(path.rpartition(".")[2])] = read_code_folder(source, base / source)
            elif (base / source).is_file():
                job.add("TL134", field, f"{field}: {shorten(source)} is not a folder", fix=WHOLE)
        except CodeRefused as refused:
            job.add("TL134", field, f"{field}: {refused.message}", fix=refused.fix, why=refused.why)
    return found
