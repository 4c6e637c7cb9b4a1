"""Jobs of GitHub Actions and GitLab CI: the container that a job runs in, and the docker lines in its steps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from trainlaunch.diagnostics import Edit
from trainlaunch.formats.docker import shell_lexer as shell
from trainlaunch.formats.docker.line import parsed
from trainlaunch.formats.docker.placed_values import PlacedText
from trainlaunch.formats.docker.read import workload_of
from trainlaunch.formats.workload import Known, Value
from trainlaunch.lint.command_lines import Region, read_regions
from trainlaunch.lint.devcontainer import word_of
from trainlaunch.lint.edits import yaml_edits
from trainlaunch.rules.sources.container_facts import engine_text
from trainlaunch.rules.sources.programs import Argv
from trainlaunch.rules.sources.source_text import GITHUB, GITLAB, SourceContainer, SourceText, at, entries_in, items_in
from trainlaunch.rules.sources.training_commands import commands_in
from trainlaunch.yamltree.changes import Set
from trainlaunch.yamltree.tolerant import Documents, Mapping, Node, Scalar

_QUOTED = {"'": "''", '"': "\\"}  # what of a quoted scalar is not as it is written
_SCRIPTS = ("before_script", "script", "after_script")


def read_github(text: str, name: str, found: Documents) -> SourceText:
    """Return the containers of a workflow's jobs and those that its steps start."""
    root = found.nodes[0] if found.nodes else None
    listed = [(key, job) for key, job in entries_in(at(root, "jobs")).items() if isinstance(job, Mapping)]
    runs = at(root, "runs")  # of a composite action
    owners = [*(job for _, job in listed), *([runs] if isinstance(runs, Mapping) else [])]
    scripts = [each for job in owners for each in _steps(job)]
    inside = read_regions(text, name, _regions(text, scripts), GITHUB, _unfolded(text, scripts))
    own = tuple(each for key, job in listed for each in _container(text, name, key, job))
    return inside._replace(containers=(*own, *inside.containers), nodes=found.nodes)


def read_gitlab(text: str, name: str, found: Documents) -> SourceText:
    """Return what the scripts of a pipeline's jobs start."""
    root = found.nodes[0] if found.nodes else None
    jobs = [root, *root.items.values()] if isinstance(root, Mapping) else []
    scripts = [each for job in jobs for key in _SCRIPTS for each in _scalars(at(job, key))]
    regions, shell_text = _regions(text, scripts), _unfolded(text, scripts)
    return read_regions(text, name, regions, GITLAB, shell_text)._replace(nodes=found.nodes)


def _steps(job: Mapping) -> Iterator[Scalar]:
    for step in items_in(at(job, "steps")):
        run = at(step, "run")
        if isinstance(run, Scalar):
            yield run


def _scalars(node: Node | None) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    for each in items_in(node):
        yield from _scalars(each)


def _regions(text: str, scripts: list[Scalar]) -> Iterator[Region]:
    """Yield where the shell of each script stands, if no quoting changes it."""
    for node in dict.fromkeys(scripts):
        if node.plain or text[node.start] in "|>" or _QUOTED[text[node.start]] not in node.raw[1:-1]:
            yield _inside(text, node)


def _unfolded(text: str, scripts: list[Scalar]) -> str:
    """Return the text with a space for each line end of the scripts that YAML folds into one."""
    for node in dict.fromkeys(scripts):
        if "\n" in node.raw and text[node.start] != "|":
            start, end = _inside(text, node)
            text = text[:start] + _folded(text[start:end], block=text[node.start] == ">") + text[end:]
    return text


def _folded(text: str, *, block: bool) -> str:
    """Return lines as one where nothing but a line end parts them; in a block only those that are indented alike."""
    lines = text.split("\n")
    least = min((len(each) - len(each.lstrip()) for each in lines if each.strip()), default=0)
    plain = [bool(each.strip()) and not (block and each[least : least + 1].isspace()) for each in lines]
    ends = [" " if pair == (True, True) else "\n" for pair in pairwise(plain)]
    return "".join(line + end for line, end in zip(lines, (*ends, ""), strict=True))


def _container(text: str, name: str, key: str, job: Mapping) -> Iterator[SourceContainer]:
    """Yield the container of a job, which the runner makes by `docker create` with the options as they are."""
    container = at(job, "container")
    image = container if isinstance(container, Scalar) else at(container, "image")
    if not isinstance(image, Scalar):
        return
    options = at(container, "options")
    found: list[shell.Word] = []
    if isinstance(options, Scalar):
        start, end = _inside(text, options)
        found = [each for each in shell.tokens(text, start, end) if isinstance(each, shell.Word)]
    line = parsed(("docker", "create"), word_of(job.keys["container"]), [*found, word_of(image)])
    workload = workload_of(line, PlacedText(text, name))._replace(place=f"jobs.{key}.container")
    env = {**_variables(at(job, "env")), **_variables(at(container, "env"))}
    argvs = tuple(_commands(job))

    def add(size: int) -> tuple[Edit, ...]:
        return _added(text, name, key, container, image.text, size)

    own = container if isinstance(container, Mapping) else job
    yield SourceContainer(workload._replace(env={**env, **workload.env}), argvs, own, job, add_shm=add)


def _inside(text: str, node: Scalar) -> Region:
    if node.plain:
        return node.start, node.end
    if text[node.start] in "|>":
        return text.find("\n", node.start, node.end) + 1 or node.end, node.end
    return node.start + 1, node.end - 1


def _variables(node: Node | None) -> dict[str, Value[str]]:
    return {
        name: Known(value.text, value.raw, value.span)
        for name, value in entries_in(node).items()
        if isinstance(value, Scalar) and "${{" not in value.text
    }


def _commands(job: Mapping) -> Iterator[Argv]:
    for run in _steps(job):
        yield from commands_in(run.text)


def _added(text: str, name: str, key: str, container: Node | None, image: str, size: int) -> tuple[Edit, ...]:
    flag = f"--shm-size={engine_text(size)}"
    options = at(container, "options")
    if isinstance(options, Scalar) and "\n" in options.raw:
        return ()
    if isinstance(container, Mapping):
        value = f"{options.text} {flag}" if isinstance(options, Scalar) else flag
        return yaml_edits(text, name, [Set(("jobs", key, "container", "options"), value)], 0)
    return yaml_edits(text, name, [Set(("jobs", key, "container"), {"image": image, "options": flag})], 0)
