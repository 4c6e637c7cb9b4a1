"""Asks the engine what an image's name stands for: its digest in the registry, and its ENTRYPOINT."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainlaunch.committed.lock_writer import ImageFacts
from trainlaunch.diagnostics import Diagnostic, Span
from trainlaunch.errors import TargetUnavailable
from trainlaunch.job.reading.lock_reader import DIGEST
from trainlaunch.run.docker.client import Engine
from trainlaunch.run.docker.image import IMAGE, inspect_image

PODMANS_OWN = "localhost/"  # what Podman calls images that came from no registry; it has a digest for them too
_HUB = re.compile(r"(?:index\.)?docker\.io/(?:library/)?")  # what the engine leaves out of names


def facts_of(engine: Engine, images: Mapping[str, Span]) -> dict[str, ImageFacts]:
    """Return the facts of each image; nothing is pulled.

    Raises TargetUnavailable with all images that this engine doesn't have, or has without a registry's digest.
    """
    facts: dict[str, ImageFacts] = {}
    problems: list[Diagnostic] = []
    for image, span in images.items():
        inspected = inspect_image(engine, image)
        digest = None if inspected is None else _digest(image, inspected)
        if engine.is_podman and image.startswith(PODMANS_OWN):
            digest = None
        if inspected is None:
            problems.append(_absent(image, span))
        elif digest is None:
            problems.append(_not_pinned(image, span))
        else:
            entrypoint = (inspected.get("Config") or {}).get("Entrypoint") or ()
            facts[image] = ImageFacts(digest, tuple(entrypoint))
    if problems:
        raise TargetUnavailable(problems)
    return facts


def _digest(image: str, inspected: Mapping[str, Any]) -> str | None:
    """Return the digest under which the image's own repository has it; None where it never came from or went there."""
    name, _, stated = image.partition("@")
    if stated:
        return stated if DIGEST.fullmatch(stated) else None
    wanted = _repository(name)
    known = (each.partition("@") for each in inspected.get("RepoDigests") or ())
    found = sorted(digest for repository, _, digest in known if _repository(repository) == wanted)
    return found[0] if found and DIGEST.fullmatch(found[0]) else None


def _repository(name: str) -> str:
    """Return an image's name without its tag, as the engine spells repositories."""
    folder, slash, last = _HUB.sub("", name, count=1).rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"


def _absent(image: str, span: Span) -> Diagnostic:
    return Diagnostic(
        IMAGE,
        f"image {image} is not on this engine",
        f"run `docker pull {image}`, then lock again",
        why="the engine tells the digest and the ENTRYPOINT of images that it has; `lock` pulls nothing",
        span=span,
        field="image",
    )


def _not_pinned(image: str, span: Span) -> Diagnostic:
    return Diagnostic(
        "TL515",
        f"image {image} has no digest of a registry, so nothing can pin it",
        f"run `docker push {image}` (or `docker pull {image}` where a registry has it), then lock again",
        why="a digest is a registry's; an image that was built here and never pushed has none of that name",
        span=span,
        field="image",
    )
