"""The job file of a command line: what `run` starts, as a person would have written it down before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from trainlaunch.init.job_text import resource
from trainlaunch.init.loader_text import SAMPLE, data_loader_block
from trainlaunch.job.tokens import literal_of
from trainlaunch.script.script_facts import ScriptFacts
from trainlaunch.yamltree.emitter import yaml_string

SECRET_NAME = re.compile(
    r"(?i)(?:^|_)(?:token|secret|passw(?:or)?d|api_?key|access_?key|private_?key|credentials?)(?:_|$)"
)


class ContainerOptions(NamedTuple):
    """The container of a command: `folders` are mounted at their own paths, True for those that it can't write to.

    `user` is uid:gid, `home` the folder among them that is HOME where nothing sets another.
    """

    image: str
    entrypoint: Sequence[str]
    user: str
    home: str
    folders: Mapping[str, bool]


class CommandOptions(NamedTuple):
    """A command line and what was asked for it; `folder` is where it runs, `extra` are words of ours behind it.

    `env` are variables that were set for it alone, `filled` those that get the planned values, `secrets` those
    whose value is left to the shell. `ranks` None: the command says how many it starts.
    """

    name: str
    command: Sequence[str]
    folder: str
    env: Mapping[str, str] = {}
    filled: Mapping[str, str] = {}
    secrets: Sequence[str] = ()
    cpus: str = ""
    memory: str = ""
    gpus: str = ""
    ranks: int | None = None
    extra: Sequence[str] = ()
    container: ContainerOptions | None = None


def command_text(options: CommandOptions, facts: ScriptFacts | None) -> str:
    """Return a job file for this host whose command arrives word for word."""
    return "\n".join(_lines(options, facts)) + "\n"


def with_loader_fields(text: str, fields: Mapping[str, str], why: str) -> str:
    """Return a job file whose data_loader sets these fields as well, where it doesn't yet; `why` is a comment."""
    lines = text.splitlines()
    head = "data_loader:"
    at = lines.index(head) if head in lines else len(lines)
    if at == len(lines):
        lines.append(head)
    stated = "\n".join(line for line in lines[at:] if not line.lstrip().startswith("#"))
    missing = [f"  {name}: {value} # {why}" for name, value in fields.items() if f"{name}: " not in stated]
    if "batch_bytes" in fields:  # the sample's place is taken
        lines = [line for line in lines if line.lstrip() not in SAMPLE]
    return "\n".join([*lines[: at + 1], *missing, *lines[at + 1 :]]) + "\n"


def _lines(options: CommandOptions, facts: ScriptFacts | None) -> Iterator[str]:
    yield f"name: {yaml_string(options.name)}"
    container = options.container
    if container is None:
        yield "target: local"
    else:
        yield from _container_lines(container)
    words = [*map(literal_of, options.command), *options.extra]
    yield f"command: [{', '.join(map(yaml_string, words))}]"
    yield f"working_dir: {yaml_string(options.folder)}"
    stated = {name: literal_of(value) for name, value in options.env.items()}
    env = {**({"HOME": container.home} if container else {}), **stated, **options.filled}
    if env:
        yield f"env: {{{', '.join(f'{name}: {yaml_string(value)}' for name, value in env.items())}}}"
    if options.secrets:
        yield f"secrets: {{{', '.join(f'{name}: {{env: {name}}}' for name in options.secrets)}}}"
    sizes = {"cpus": options.cpus, "memory": options.memory, "gpus": options.gpus}
    given = [f"{name}: {resource(name, value)}" for name, value in sizes.items() if value]
    if given:
        yield f"resources: {{{', '.join(given)}}}"
    if options.ranks is not None:
        yield f"ranks_per_container: {options.ranks}"
    if facts is not None and facts.loaders:
        yield from data_loader_block(facts, workers_certain=None)


def _container_lines(container: ContainerOptions) -> Iterator[str]:
    yield "target: docker"
    yield f"image: {yaml_string(container.image)}"
    yield f"image_entrypoint: [{', '.join(map(yaml_string, container.entrypoint))}]"
    yield f"user: {yaml_string(container.user)}"
    yield "mounts:"
    for folder, read_only in container.folders.items():
        path = yaml_string(folder)
        yield f"  - {{type: bind, source: {path}, target: {path}{', read_only: true' if read_only else ''}}}"
