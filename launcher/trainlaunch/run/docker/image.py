"""Gets the image of a plan into the engine, with progress, and asks what its name stands for: digest and ENTRYPOINT."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from trainlaunch.committed.lock_writer import ImageFacts
from trainlaunch.diagnostics import Diagnostic, Span
from trainlaunch.errors import TargetUnavailable
from trainlaunch.job.entrypoint import drops_command, lines_without
from trainlaunch.job.reading.lock_reader import DIGEST
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import Say
from trainlaunch.run.docker.checks import enforces
from trainlaunch.run.docker.client import Engine, EngineRefused
from trainlaunch.run.docker.image_versions import ask_versions
from trainlaunch.units import counted, human_size

if TYPE_CHECKING:
    from rich.progress import Progress

IMAGE = "TL503"
PODMANS_OWN = "localhost/"  # what Podman calls images that came from no registry; it has a digest for them too
_HUB = re.compile(r"(?:index\.)?docker\.io/(?:library/)?")  # what the engine leaves out of names


def ensure_image(engine: Engine, plan: LaunchPlan, say: Say) -> Mapping[str, Any]:
    """Return the engine's description of job.image, pulled as pull_policy says.

    Raises TargetUnavailable: TL503 where it can't be had, TL509 for an ENTRYPOINT that the job doesn't mention.
    """
    job = plan.job
    image = None if job.pull_policy == "always" else inspect_image(engine, job.image)
    if image is None and job.pull_policy == "never":
        raise TargetUnavailable([_absent(plan)])
    if image is None:
        _pull(engine, job.image, job.span("image"), say)
        image = inspect_image(engine, job.image)
    if image is None:
        raise TargetUnavailable([_absent(plan)])
    entrypoint = (image.get("Config") or {}).get("Entrypoint")
    if entrypoint and job.image_entrypoint is None:
        raise TargetUnavailable([unmentioned_entrypoint(plan, entrypoint)])
    return image


def inspect_image(engine: Engine, image: str) -> Mapping[str, Any] | None:
    """Return the engine's description of an image, or None where it has none of that name."""
    try:
        with engine.attempting(f"inspect image {image}") as client:
            found: Mapping[str, Any] = client.inspect_image(image)
            return found
    except EngineRefused as refused:
        if refused.status == 404:
            return None
        raise


class CommandImage(NamedTuple):
    """What is known of the image of a command line, and of its engine, before the command is planned.

    `entrypoint` is the image's own, without one that would not run what stands behind it; `variables` are the names of
    those that it sets. `cpus` are the engine's, None where it can't limit any.
    """

    name: str
    entrypoint: tuple[str, ...]
    variables: frozenset[str]
    cpus: int | None
    engine: str


def image_of_command(engine: Engine, image: str, say: Say) -> CommandImage:
    """Ask the engine, which gets the image where it isn't here. Raises TargetUnavailable (TL503)."""
    found = inspect_image(engine, image)
    if found is None:
        _pull(engine, image, None, say)
        found = inspect_image(engine, image)
    info = engine.info
    config = (found or {}).get("Config") or {}
    entrypoint = tuple(config.get("Entrypoint") or ())
    return CommandImage(
        image,
        () if drops_command(entrypoint) else entrypoint,
        frozenset(each.partition("=")[0] for each in config.get("Env") or ()),
        int(info.get("NCPU") or 0) if enforces(info, "CpuCfsQuota") else None,
        "Podman" if engine.is_podman else "Docker",
    )


def _pull(engine: Engine, image: str, span: Span | None, say: Say) -> None:
    say(f"pulling {image}")
    try:
        with engine.attempting(f"pull {image}") as client:
            events = client.pull(image, stream=True, decode=True)
            error = _show_progress(events, say)
    except EngineRefused as refused:
        raise TargetUnavailable([_pull_refused(image, span, refused.explanation)]) from refused
    if error:
        raise TargetUnavailable([_pull_refused(image, span, error)])


def _show_progress(events: Iterable[Mapping[str, Any]], say: Say) -> str:
    """Show a pull as one bar on a terminal, as a line a layer elsewhere; return the engine's error, or nothing."""
    layers = Layers()
    if not sys.stderr.isatty():
        for event in events:
            if layers.take(event):
                say(layers.line())
        return layers.error
    with _bar() as bar:
        task = bar.add_task("pulling", total=None)
        for event in events:
            layers.take(event)
            bar.update(task, completed=layers.received, total=layers.total or None)
    return layers.error


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True))
    return Progress(*columns, console=Console(stderr=True), transient=True)


class Layers:
    """The state of a pull: bytes received of the layers that announced a size, and the layers that are complete."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, int]] = {}
        self._complete: set[str] = set()
        self.error = ""

    @property
    def received(self) -> int:
        """Bytes downloaded."""
        return sum(done for done, _ in self._sizes.values())

    @property
    def total(self) -> int:
        """Bytes of all layers that announced their size."""
        return sum(size for _, size in self._sizes.values())

    def take(self, event: Mapping[str, Any]) -> bool:
        """Take one progress event of the engine; return whether it completed a layer."""
        self.error = str(event.get("error") or self.error)
        layer, status = str(event.get("id", "")), event.get("status")
        if status == "Downloading":
            detail = event.get("progressDetail") or {}
            self._sizes[layer] = (int(detail.get("current") or 0), int(detail.get("total") or 0))
        elif status == "Download complete" and layer in self._sizes:
            self._sizes[layer] = (self._sizes[layer][1],) * 2
        elif status == "Pull complete":
            self._complete.add(layer)
            return True
        return False

    def line(self) -> str:
        """Return the progress as a line for a log."""
        return f"pulled {counted(len(self._complete), 'layer')}, {human_size(self.received)}"


def _absent(plan: LaunchPlan) -> Diagnostic:
    image = plan.job.image
    return Diagnostic(
        code=IMAGE,
        message=f"image {image} is not on this engine and pull_policy is {plan.job.pull_policy}",
        why="nothing is pulled with that policy",
        fix=f"run `docker pull {image}` or `docker build -t {image} .`, or set pull_policy to missing",
        span=plan.job.span("image"),
        field="image",
    )


def _pull_refused(image: str, span: Span | None, words: str) -> Diagnostic:
    lowered = words.lower()
    network = any(each in lowered for each in ("timeout", "lookup", "connection refused", "no route", "unreachable"))
    advice = (
        f"check this host's way to the registry and retry; or load it by `docker load` or `docker build -t {image} .`"
        if network
        else f"check the spelling of {image}, run `docker login` for a private registry, or build it under that name"
    )
    return Diagnostic(
        code=IMAGE,
        message=f"docker: pull image {image}: the engine could not get it",
        why=f"the engine says: {words.strip()}",
        fix=advice,
        span=span,
        field="image",
    )


def unmentioned_entrypoint(plan: LaunchPlan, entrypoint: list[str]) -> Diagnostic:
    """Return the error for an image whose ENTRYPOINT the job does not mention (TL509)."""
    fix = f"add `image_entrypoint: {json.dumps(entrypoint, ensure_ascii=False)}` to run it in front, or "
    fix += "`image_entrypoint: []` to drop it"
    if drops_command(entrypoint):
        own = "put what it does at the start of a script, and " if len(entrypoint) > 2 else ""
        fix = f"{own}add {lines_without(entrypoint, plan.job.command)}: it doesn't run what stands behind it"
    return Diagnostic(
        code="TL509",
        message=f"image {plan.job.image} has an ENTRYPOINT and the job has no image_entrypoint",
        why="the preflight takes the place of the ENTRYPOINT, which would then not run",
        fix=fix,
        span=plan.job.span("image"),
        field="image_entrypoint",
    )


def facts_of(
    engine: Engine, images: Mapping[str, Span], known: Mapping[str, ImageFacts], *, ask: bool = True
) -> dict[str, ImageFacts]:
    """Return the facts of each image; nothing is pulled.

    `known` are those of earlier, by digest: an image whose Python isn't known is started once to tell it, if we `ask`.
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
            problems.append(_nothing_to_pin(image, span))
        elif digest is None:
            problems.append(_not_pinned(image, span))
        else:
            entrypoint = (inspected.get("Config") or {}).get("Entrypoint") or ()
            earlier = known.get(digest, ImageFacts(digest, ()))
            versions = (earlier.python, earlier.torch)
            if ask and not earlier.python:
                versions = ask_versions(engine, image)
            facts[image] = ImageFacts(digest, tuple(entrypoint), *versions)
    if problems:
        raise TargetUnavailable(problems)
    return facts


def _digest(image: str, inspected: Mapping[str, Any]) -> str | None:
    """Return the digest under which the image's own repository has it; None where it never came from or went there."""
    name, _, stated = image.partition("@")
    if stated:
        return stated if re.fullmatch(DIGEST, stated) else None
    wanted = _repository(name)
    known = (each.partition("@") for each in inspected.get("RepoDigests") or ())
    found = sorted(digest for repository, _, digest in known if _repository(repository) == wanted)
    return found[0] if found and re.fullmatch(DIGEST, found[0]) else None


def _repository(name: str) -> str:
    """Return an image's name without its tag, as the engine spells repositories."""
    folder, slash, last = _HUB.sub("", name, count=1).rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"


def _nothing_to_pin(image: str, span: Span) -> Diagnostic:
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
