"""Checks fields against each other, whatever the target."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from trainlaunch.exit_codes import EXIT_FILES_WRONG, FINAL
from trainlaunch.job.entrypoint import drops_command, lines_without
from trainlaunch.job.fields.table import default
from trainlaunch.job.fields.types import SUBDOMAIN
from trainlaunch.job.host_paths import normal_place
from trainlaunch.job.reserved import PLAN_VARIABLE, PREFLIGHT_PREFIX
from trainlaunch.job.shm_owners import RAY, WITH_LAW
from trainlaunch.job.starter import Starter
from trainlaunch.job.starter_search import starter_of
from trainlaunch.job.validation.context import ValidationContext
from trainlaunch.job.values.scalar_reader import BAD

_NAMED_SOURCE = {
    "volume": (r"[a-zA-Z0-9][a-zA-Z0-9_.-]+", "a volume's name"),
    "pvc": (SUBDOMAIN, "the name of a PersistentVolumeClaim"),
    "config": (SUBDOMAIN, "the name of a ConfigMap"),
}
# What the preflight exports from these fields; the same name in env would be overwritten in silence.
_PREFLIGHTS_OWN = {
    "TRAINLAUNCH_NUM_WORKERS": "data_loader.num_workers",
    "TRAINLAUNCH_PREFETCH_FACTOR": "data_loader.prefetch_factor",
    "TRAINLAUNCH_BATCH_SIZE": "data_loader.batch_size",
    "TRAINLAUNCH_PIN_MEMORY": "data_loader.pin_memory",
    "TRAINLAUNCH_PERSISTENT_WORKERS": "data_loader.persistent_workers",
    "TRAINLAUNCH_TIMEOUT": "data_loader.timeout",
    "TRAINLAUNCH_SHM_BYTES": "shm_size",
}
_NOT_RUN = "no process of the job ever ran: the next attempt would end the same way"
_WRONG_FILES = "it means that the configuration is wrong, and it stays so"
_ENGINES_OWN = frozenset({"/", "/proc", "/sys", "/dev"})


def _check_exit_codes(job: ValidationContext) -> None:
    for index, code in enumerate(job.value("restart.on_exit_codes") or ()):
        if code in FINAL:
            job.add(
                "TL107",
                f"restart.on_exit_codes.{index}",
                f"restart.on_exit_codes[{index}] is {code}, after which no attempt follows on any target",
                why=_WRONG_FILES if code == EXIT_FILES_WRONG else _NOT_RUN,
                fix=f"delete {code}; a job that wants another attempt on another machine ends with 75",
            )


def _check_owners(job: ValidationContext) -> None:
    """Report an owner of /dev/shm without a size that has no law, and Ray's where nothing says its store's size."""
    for path, owner in job.entries("shm_extra"):
        index, name = path.rpartition(".")[2], owner.get("name", BAD)
        if name is BAD or owner.get("size") is not None:
            continue
        if name not in WITH_LAW:
            job.add(
                "TL106",
                path,
                f"shm_extra[{index}] has no size, and trainlaunch knows none for {name}",
                fix=f"add size: 1Gi, what it takes at most, or the name of one of {', '.join(WITH_LAW)}",
                why="the law of an owner says how much of /dev/shm it takes",
            )
        elif name == RAY and job.value("resources.memory") is None:
            job.add(
                "TL106",
                path,
                f"shm_extra[{index}] is ray without a size, and resources.memory is missing",
                fix="add resources.memory, or the size: a tenth more than object_store_memory",
                why="Ray's object store is 30 % of the memory unless it is set",
            )


def check_fields(job: ValidationContext) -> None:
    """Report every contradiction between fields."""
    _check_process(job)
    _check_torchrun(job)
    _check_variables(job)
    _check_gpus(job)
    _check_mounts(job)
    _check_exit_codes(job)
    _check_owners(job)


def _check_process(job: ValidationContext) -> None:
    command, script = "command" in job.values, "script" in job.values
    if command and script:
        job.add(
            "TL109",
            "script",
            "command and script are both set",
            fix="delete one of them; in target_overrides write null",
        )
    if not command and not script and not {"command", "script"} & job.misspelt:
        job.add("TL106", "", "command or script is missing", fix="add command: [python, train.py]")
    for field, example in (("command", "python"), ("image_entrypoint", "/entrypoint.sh")):
        argv = job.value(field)
        if argv and argv[0] == "":
            job.add(
                "TL107",
                f"{field}.0",
                f"{field}.0 is empty; expected a program",
                fix=f"write the program, like {example}",
            )
    entrypoint = job.value("image_entrypoint") or ()
    if BAD not in entrypoint and drops_command(entrypoint):
        argv = job.value("command") or ()
        job.add(
            "TL107",
            "image_entrypoint",
            f"image_entrypoint is {shlex.join(entrypoint)}, which doesn't run what stands behind it",
            fix=f"write {lines_without(entrypoint, () if BAD in argv else argv)}",
            why="it takes the preflight for its own file or text, so neither the preflight nor the job would start",
        )


def _starter(job: ValidationContext) -> Starter | None:
    """Return what in the command or script starts ranks itself."""
    command = ["" if each is BAD else each for each in job.value("command") or ()]
    env = {field.partition(".")[2]: each for field, each in job.entries("env")}
    return starter_of(command, job.value("script"), env)


def _check_torchrun(job: ValidationContext) -> None:
    starter = _starter(job)
    if job.value("torchrun") is None or starter is None:
        return
    program = "torchrun" if starter.torch else starter.name
    job.add(
        "TL109",
        starter.field,
        f"{starter.field} calls {program}, and the torchrun block is set too",
        why="the block puts its own torchrun in front, so each of its ranks would start all ranks again",
        fix=f"write the command without {program}, as in [python, train.py], or delete the torchrun block",
    )


def _check_variables(job: ValidationContext) -> None:
    for name in job.value("secrets") or {}:
        if name in (job.value("env") or {}):
            job.add("TL109", f"secrets.{name}", f"{name} is in env and in secrets", fix=f"delete env.{name}")
    for place in ("env", "secrets"):
        for name in job.value(place) or {}:
            if name in _PREFLIGHTS_OWN and job.value("data_loader.inject") != "off":
                field = _PREFLIGHTS_OWN[name]
                job.add(
                    "TL109",
                    f"{place}.{name}",
                    f"{name} is the variable of {field}",
                    fix=f"delete {place}.{name} and write {field}",
                    why="the preflight exports the variable from that field and would overwrite this one",
                )
            if name.startswith(PREFLIGHT_PREFIX) or name == PLAN_VARIABLE:
                own = "is the plan's own" if name == PLAN_VARIABLE else f"begins with {PREFLIGHT_PREFIX}"
                job.add(
                    "TL107",
                    f"{place}.{name}",
                    f"{place}.{name} {own}",
                    fix="give the variable another name",
                    why="the preflight's own variables are named so, and one of the two would get the other's value",
                )


def _check_gpus(job: ValidationContext) -> None:
    gpus = job.value("resources.gpus")
    stated = job.value("ranks_per_container") or job.value("torchrun.nproc_per_node")
    starter = _starter(job)
    counted = starter is not None and isinstance(starter.count, int)  # by the command itself
    if gpus is not None and gpus.all and stated is None and not counted:
        job.add(
            "TL207",
            "resources.gpus",
            "resources.gpus is all, and ranks_per_container is not set",
            why="/dev/shm and workers are sized per training process, and all is a different number on each machine",
            fix="add ranks_per_container: 1, or the number of training processes",
        )
    _check_gpu_vendor(job, gpus.ids if gpus is not None else ())


def _check_gpu_vendor(job: ValidationContext, ids: tuple[str, ...]) -> None:
    vendor = job.value("resources.gpu_vendor") or default("resources.gpu_vendor")
    other = {"nvidia": "amd", "amd": "nvidia"}[vendor]
    resource = job.value("resources.gpu_resource")
    if resource is not None and resource.startswith(f"{other}.com/"):
        job.add(
            "TL109",
            "resources.gpu_resource",
            f"resources.gpu_resource is {resource}, and resources.gpu_vendor is {vendor}",
            fix=f"write gpu_vendor: {other}, or delete gpu_resource",
        )
    for index, each in enumerate(ids):
        if vendor == "amd" and not each.isdecimal():
            job.add(
                "TL107",
                f"resources.gpus.{index}",
                f"resources.gpus.{index} is {each}, an id of NVIDIA's, and resources.gpu_vendor is amd",
                fix="write its number, like 0",
                why="an AMD GPU is chosen by its device node: 0 is /dev/dri/renderD128, 1 is /dev/dri/renderD129",
            )


def _check_mounts(job: ValidationContext) -> None:
    seen: dict[str, str] = {}
    for path, mount in job.entries("mounts"):
        _check_source(job, path, mount)
        target = mount.get("target", BAD)
        if target is BAD:
            continue
        place, field = normal_place(target), f"{path}.target"
        if place == "/dev/shm":
            job.add("TL109", field, "a mount at /dev/shm takes shm_size's place", fix="delete it and write shm_size")
        elif place in _ENGINES_OWN:
            job.add("TL107", field, f"{field} is {place}, which the engine itself fills", fix="mount a folder below it")
        elif place in seen:
            job.add("TL109", field, f"{seen[place]} and {path} have the same target {place}", fix="delete one of them")
        seen.setdefault(place, path)


def _check_source(job: ValidationContext, path: str, mount: Mapping[str, Any]) -> None:
    kind, source = mount.get("type", BAD), mount.get("source")
    if BAD in (kind, source):
        return
    field = f"{path}.source"
    if kind in {"tmpfs", "scratch"}:
        _check_empty(job, path, kind, mount)
        return
    named, words = _NAMED_SOURCE.get(kind, ("", "a path of this host, like ./src"))
    if kind == "code" and mount.get("read_only") is False:
        job.add(
            "TL109",
            f"{path}.read_only",
            f"{path} is a code mount, which is read-only",
            fix=f"delete {path}.read_only, or write type: bind on docker, compose and local",
            why="it is the same everywhere, and a cluster's ConfigMap can't be written",
        )
    if source is None or source == "":
        job.add("TL106", path, f"{field} is missing; a {kind} mount needs one", fix=f"add source: {words}")
    elif named and not re.fullmatch(named, source):
        job.add(
            "TL107",
            field,
            f"{field} is a path or has other letters than {words}",
            fix="write type: bind" if kind == "volume" and "/" in source else f"write {words}",
        )
    elif source.startswith("~"):
        job.add(
            "TL107",
            field,
            f"{field} starts with ~",
            why="the shell expands ~, and no shell reads this file",
            fix="write the whole path, or one relative to the job file",
        )


def _check_empty(job: ValidationContext, path: str, kind: str, mount: Mapping[str, Any]) -> None:
    """Report what a mount that starts empty can't have."""
    if mount.get("read_only") is True:
        job.add(
            "TL109",
            f"{path}.read_only",
            f"{path} is a {kind} mount, and read_only",
            fix=f"delete {path}.read_only",
            why=f"a {kind} mount is empty at the start, and nobody could ever put anything there",
        )
    if mount.get("source") is not None:
        job.add("TL109", f"{path}.source", f"a {kind} mount has no source", fix=f"delete {path}.source")
