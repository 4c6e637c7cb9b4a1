"""Writes the lock of a job file: the same facts give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.job.building.lock import PARTS, VERSION
from launcher.yamltree.emitter import comment, yaml_string


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What an engine knows of an image: its registry `digest`, and the argv of its ENTRYPOINT, empty for none."""

    digest: str
    entrypoint: tuple[str, ...]


def lock_text(job_file: Path, images: Mapping[str, ImageFacts], others: Mapping[str, str] | None = None) -> str:
    """Return the text of the lock of `job_file`; `images` by the job file's own spelling.

    `others` are the lines of the parts that it has besides, by their names.
    """
    lines = [
        f"# Written by `trainlaunch lock {comment(job_file.name)}`: what the image names of that job file stand for.",
        "# Commit it beside the job file and don't edit it: plan, render, check and up use it, and ask no engine.",
        f"version: {VERSION}",
        "images:",
    ]
    for image in sorted(images):
        facts = images[image]
        lines.append(f"  {yaml_string(image)}:")
        lines.append(f"    digest: {yaml_string(facts.digest)}")
        if not facts.entrypoint:
            lines.append("    entrypoint: []")
            continue
        lines.append("    entrypoint:")
        lines += [f"      - {yaml_string(each)}" for each in facts.entrypoint]
    kept = "".join((others or {}).get(each, "") for each in PARTS if each != "images")
    return "\n".join(lines) + "\n" + kept
