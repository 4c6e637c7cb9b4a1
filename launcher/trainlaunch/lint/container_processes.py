"""What runs in the containers of a text beside what it says itself: their images' own process, and shell scripts.

The text's own words stay as they are (`argv`), and findings stand at them; rules that ask what a container does read
`argvs`.
"""

from __future__ import annotations

from trainlaunch.job.shm_owners import as_started
from trainlaunch.lint.built_images import image_of
from trainlaunch.lint.image_builds import Builds, build_of, builds_of
from trainlaunch.lint.shell_scripts import script_started, with_scripts
from trainlaunch.rules.sources.instructions import is_command
from trainlaunch.rules.sources.programs import UNKNOWN, Argv, program, work_of
from trainlaunch.rules.sources.source_text import (
    DEVCONTAINER,
    BuiltImage,
    SourceContainer,
    SourceText,
    at,
    text_at,
)
from trainlaunch.rules.sources.training_commands import argvs_of, is_training
from trainlaunch.yamltree.tolerant import Scalar

_NULL = frozenset({"", "~", "null", "Null", "NULL"})  # which leaves a service the CMD of its image
_ONLY_TELLS = frozenset({"--help", "-h", "--version"})


def with_processes(file: SourceText) -> SourceText:
    """Return a text whose containers have what their images and their shell scripts run."""
    builds = builds_of(file) if file.containers else {}
    return file._replace(containers=tuple(_completed(each, file, builds) for each in file.containers))


def _completed(container: SourceContainer, file: SourceText, builds: Builds) -> SourceContainer:
    build, own = build_of(container, file, builds), container.argvs
    image = image_of(build, container) if build is not None else None
    if image is not None:
        if file.kind == DEVCONTAINER and text_at(container.own, "overrideCommand") != "false":  # its editor's shell
            image = image._replace(entrypoint=(), command=())
        container = container._replace(built=image)
        container = container._replace(argvs=_joined(container, image))
    found = with_scripts(container)
    indirect = found != own and not any(map(is_training, own))
    return container._replace(argvs=found, indirect=indirect)


def _joined(container: SourceContainer, image: BuiltImage) -> tuple[Argv, ...]:
    """Return a container's commands with those of its image, as an engine joins them; its own where that is unsure."""
    workload, own = container.workload, container.argv
    if workload.entrypoint is not None or (own and all(each.startswith("$") for each in own)):
        return container.argvs
    if isinstance(given := at(container.own, "command"), Scalar) and given.plain and given.text in _NULL:
        own = ()
    words = own if own or workload.command is not None else image.command
    if not _ONLY_TELLS.isdisjoint(words):
        return container.argvs
    found = argvs_of((*image.entrypoint, *words) if image.entrypoint else as_started(image.base, words))
    if not own or not image.entrypoint:
        return found
    script = script_started(container, (*image.entrypoint, *words))
    if script is not None:
        return (*found, *container.argvs) if script.takes_words else found
    certain = any(program(each).script or work_of(each)[0] != UNKNOWN for each in found)
    return found if certain and not is_command(own) else container.argvs
