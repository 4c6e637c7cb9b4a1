"""Sizes of /dev/shm that a platform leaves out or keeps for itself: CI runners, swarm, Fargate, SageMaker, pods."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trainlaunch.diagnostics import Severity
from trainlaunch.formats.compose.read import read_documents
from trainlaunch.formats.workload import ABSENT, SIZE, Workload
from trainlaunch.repository.own_files import own_text
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import at_container, container_rule, text_rule
from trainlaunch.rules.sources.container_facts import command_span, has_gpu
from trainlaunch.rules.sources.source_text import (
    COMPOSE,
    DEVCONTAINER,
    ECS,
    GITHUB,
    GITLAB,
    SAGEMAKER,
    SourceContainer,
    SourceText,
    SourceWord,
    at,
    below,
    field,
    is_fargate,
    items_in,
    text_at,
)
from trainlaunch.rules.sources.training_commands import commands_in, program_of, stated_workers
from trainlaunch.units import counted
from trainlaunch.yamltree.tolerant import Mapping, Scalar, Sequence, documents

_TWO = 2
_PORT = re.compile(r"--(?:master[-_]port|rdzv[-_]endpoint|standalone|nnodes|rdzv[-_]conf)\b")
_SWITCHES = frozenset({  # of `docker service create`
    *("-d", "--detach", "-q", "--quiet", "-t", "--tty", "--init", "--read-only", "--no-healthcheck"),
    *("--no-resolve-image", "--with-registry-auth"),
})  # fmt: skip
_SWARMS = ("placement", "update_config", "rollback_config", "endpoint_mode")
_HOSTED = re.compile(r"(?:ubuntu|windows|macos)-|self-hosted$|.*\$\{\{")


@container_rule("TL317", Severity.ERROR)
def size_in_podman_pod(container: SourceContainer) -> Iterator[Problem]:
    """A podman run has both --pod and --shm-size."""
    declared = container.workload.shm.declared
    if container.podman and declared is not None and "--pod" in container.workload.rest:
        yield Problem(
            f"--shm-size {declared.text} is set for a container of a pod, whose /dev/shm is the pod's",
            f"move --shm-size={declared.text} to podman pod create",
            "the pod's first container owns /dev/shm of all its containers",
            span=declared.span,
        )


@text_rule("TL320", Severity.ERROR, DEVCONTAINER)
def run_args_unused(file: SourceText) -> Iterator[Problem]:
    """RunArgs stand beside dockerComposeFile."""
    root = file.nodes[0] if file.nodes else None
    arguments = at(root, "runArgs")
    composed = at(root, "dockerComposeFile")
    named = [each.text for each in (composed, *items_in(composed)) if isinstance(each, Scalar) and each.text != "null"]
    if isinstance(root, Mapping) and any(named) and isinstance(arguments, Sequence) and arguments.items:
        given = {each.text.partition("=")[0] for each in arguments.items if isinstance(each, Scalar)}
        service = f"services.{text_at(root, 'service')}"
        found = [each for name in dict.fromkeys(named) for each in _services(file, name) if each.place == service]
        sized, equipped = any(each.shm.kind != ABSENT for each in found), any(map(has_gpu, found))
        missed = ("--gpus" in given and not equipped) or (bool(given & {"--shm-size", "--ipc"}) and not sized)
        yield Problem(
            "runArgs is not used with dockerComposeFile",
            "set them in the Compose file: shm_size: 8gb, and GPUs under deploy.resources.reservations.devices",
            "the container is made by `docker compose up`, which takes no arguments of docker run",
            "runArgs",
            root.keys["runArgs"].span,
            None if missed else Severity.INFO,
        )


def _services(file: SourceText, name: str) -> tuple[Workload, ...]:
    """Return the services of a Compose file that a devcontainer names."""
    own = Path(file.source.span(0, 0).file)
    text = own_text(own.parent / name, own)
    return tuple(read_documents(documents(text, name))) if text else ()


@container_rule("TL321", Severity.INFO, kinds=(GITHUB,))
def options_left_to_runner(container: SourceContainer) -> Iterator[Problem]:
    """The runner of a sized container has a name that is neither GitHub's own nor self-hosted."""
    runner, shm = at(container.pod, "runs-on"), container.workload.shm
    if isinstance(runner, Scalar) and not _HOSTED.match(runner.text) and shm.kind == SIZE and shm.span is not None:
        yield Problem(
            f"if {runner.text} is a scale set in Kubernetes mode, --shm-size in container.options has no effect",
            "add a Memory emptyDir at /dev/shm to the pod template of its container hooks",
            "there the job's container is a pod, and docker's options are not read",
            span=shm.span,
        )


@text_rule("TL326", Severity.INFO, SAGEMAKER)
def size_for_local_mode(file: SourceText) -> Iterator[Problem]:
    """The shm_size of local mode."""
    config = at(file.nodes[0], "local", "container_config") if file.nodes else None
    if isinstance(config, Mapping) and "shm_size" in config.keys:
        yield Problem(
            "this size applies in SageMaker's local mode only",
            "look at df /dev/shm on a training instance before the workers are counted there",
            "training instances size /dev/shm themselves and don't read this file",
            "local.container_config.shm_size",
            config.keys["shm_size"].span,
        )


@text_rule("TL347", Severity.INFO)
def shm_size_in_swarm(file: SourceText) -> Iterator[Problem]:
    """An error for a size of `docker service`, and an info for one of a service that swarm's keys place."""
    for command in file.commands:
        words = [each.text for each in command]
        service = next((index for index, each in enumerate(words[:4]) if each == "service"), 0)
        if "docker" not in words[:service] or words[service + 1 : service + 2] not in (["create"], ["update"]):
            continue
        following = command[service + 2 :]  # of `update`, options may stand anywhere
        for word in _own_options(following) if words[service + 1] == "create" else following:
            if word.known and word.text.partition("=")[0] == "--shm-size":
                yield Problem(
                    "docker service has no flag --shm-size",
                    "write --mount type=tmpfs,target=/dev/shm,tmpfs-size=BYTES",
                    "docker stops with `unknown flag: --shm-size`, exit 125",
                    span=file.source.span(word.start, word.end),
                    severity=Severity.ERROR,
                )
    for container in file.containers if file.kind == COMPOSE else ():
        yield from at_container(container, _of_stack(container))


def _own_options(words: tuple[SourceWord, ...]) -> Iterator[SourceWord]:
    """Yield the words before the image, the first that is neither an option nor the value of one."""
    last = ""
    for word in words:
        is_value = last.startswith("-") and "=" not in last and last not in _SWITCHES
        if word.known and not word.text.startswith("-") and not is_value:
            return
        last = word.text
        yield word


def _of_stack(container: SourceContainer) -> Iterator[Problem]:
    shm, deploy = container.workload.shm, at(container.own, "deploy")
    key = next((each for each in _SWARMS if at(deploy, each) is not None), None)
    if text_at(deploy, "mode") == "global":
        key = "mode: global"
    if shm.kind == SIZE and shm.span is not None and key is not None:
        yield Problem(
            f"docker stack deploy, which reads deploy.{key}, ignores shm_size",
            "mount a tmpfs at /dev/shm instead: type tmpfs, target /dev/shm, tmpfs.size in bytes",
            "swarm's services have no such option; docker compose has",
            span=shm.span,
        )


@container_rule("TL349", Severity.ERROR, kinds=(ECS,))
def size_on_fargate(container: SourceContainer) -> Iterator[Problem]:
    """A container of Fargate sets a size."""
    size = field(container.own, "linuxParameters", "sharedMemorySize")
    if isinstance(size, Scalar) and size.text.isdecimal() and is_fargate(container.pod):
        yield Problem(
            f"sharedMemorySize {size.raw} is set for Fargate, which does not take it",
            "run it with the launch type EC2, or delete the size and use no DataLoader workers",
            "containers of Fargate have 64 MiB of /dev/shm",
            span=size.span,
        )


@text_rule("TL375", Severity.WARNING, COMPOSE, GITHUB, GITLAB)
def rendezvous_port_shared(file: SourceText) -> Iterator[Problem]:
    """Launchers on the host's network meet at torchrun's usual port: two at once, or whoever else runs there."""
    found = [each for each in file.containers if _on_usual_port(each)]
    if file.kind == COMPOSE and len(found) < _TWO:
        return
    for container in found[:1] if file.kind != COMPOSE else found[1:]:
        yield Problem(
            "torchrun takes port 29500 of the host, as every other one there does",
            "add --standalone, or --master-port with a port of its own",
            "the second of them stops with EADDRINUSE, or joins the wrong group",
            container.workload.place,
            command_span(container.workload),
            severity=None if file.kind == COMPOSE else Severity.INFO,
        )


def _on_usual_port(container: SourceContainer) -> bool:
    rest = container.workload.rest
    networks = {str(each) for key in ("--network", "--net") for each in _listed(rest.get(key, ()))}
    if "host" not in networks | {str(rest.get("service.network_mode"))}:
        return False
    alone = [each for each in container.argvs if program_of(each) == "torchrun"]
    return any(not any(_PORT.match(word) for word in each) for each in alone)


def _listed(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


@text_rule("TL350", Severity.INFO, GITLAB)
def size_left_to_gitlab_runner(file: SourceText) -> Iterator[Problem]:
    """The script of a job with an image sets workers."""
    root = file.nodes[0] if file.nodes else None
    if not isinstance(root, Mapping):
        return
    shared = at(root, "image") is not None or at(root, "default", "image") is not None
    imaged, told = _with_image(root), set[int]()
    for name, job in root.items.items():
        script = at(job, "script")
        if script is None or not (shared or name in imaged) or script.start in told:
            continue
        told.add(script.start)  # which jobs may have of each other by an anchor
        scripts = [each.text for each in below(script) if isinstance(each, Scalar)]
        workers = stated_workers([argv for each in scripts for argv in commands_in(each)], {})
        if workers:
            yield Problem(
                f"{counted(workers, 'DataLoader worker')} with the /dev/shm of the runner's configuration",
                "see to it that the runner sets it: shm_size in [runners.docker], or an empty_dir of medium "
                "Memory at /dev/shm for the Kubernetes executor",
                "a job of GitLab can't size /dev/shm, and 64 MiB are the default",
                span=root.keys[name].span,
            )


def _with_image(root: Mapping) -> frozenset[str]:
    """Return the jobs of GitLab that name an image, or extend one that does."""
    jobs = {name: job for name, job in root.items.items() if isinstance(job, Mapping)}
    found = [name for name, job in jobs.items() if "image" in job.items]
    by_base: dict[str, list[str]] = {}
    for name, job in jobs.items():
        extended = at(job, "extends")
        for each in (extended, *items_in(extended)):
            if isinstance(each, Scalar):
                by_base.setdefault(each.text, []).append(name)
    for base in found:  # which grows by those that extend it
        found += by_base.pop(base, [])
    return frozenset(found)
