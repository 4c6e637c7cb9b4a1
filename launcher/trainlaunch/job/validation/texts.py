"""Checks what the texts of a repository can't say that somebody else's tool runs on an engine: CI, editors, builds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainlaunch.job.host_paths import below_repository
from trainlaunch.job.spec import is_floating
from trainlaunch.job.validation.context import ValidationContext, cannot
from trainlaunch.job.validation.engines import check_engine
from trainlaunch.job.validation.shared import check_one_node, check_shared
from trainlaunch.sanitize import shorten
from trainlaunch.targets import DEVCONTAINER, DOCKERFILE, GITHUB, GITLAB

_SOURCE = "add env: {name} to {field}: the variable, or the secret of CI, that holds it"
_PATHS = frozenset({"bind", "code"})
_CLUSTERS = frozenset({"pvc", "config"})
_HEALTH = ("interval", "timeout", "retries", "start_period", "stall_after")
_GITHUB_GRACE = "a cancelled job is stopped with SIGINT, 7.5 s later SIGTERM, and killed after 10 s"
_OPTIONS = "the runner takes container.options apart by other rules than a shell where one of these stands"
_IDS = "an id begins with a letter or _"
_VOLUMES = "an entry of container.volumes is SOURCE:TARGET:MODE"
_GITLAB_GRACE = "a cancelled job's container is stopped as the runner's own settings say"
_KEYWORDS = frozenset({
    *("image", "services", "stages", "types", "variables", "cache", "include", "default", "workflow", "spec", "pages"),
    *("true", "false", "nil"),
})  # fmt: skip
_TOML = "a volume of config.toml is SOURCE:TARGET:MODE"
_VARIABLES = (
    r"\$\{(?:env|localEnv|containerEnv|localWorkspaceFolder|localWorkspaceFolderBasename|containerWorkspaceFolder"
    r"|containerWorkspaceFolderBasename|devcontainerId)(?::(?:(?!\$\{)[^}])*)?\}"
)
_REPLACED = "a devcontainer replaces it by its own value, and has no way to write it literally"
_LINE = "an instruction of a Dockerfile is one line"
_COPY = "COPY takes it for a pattern or a variable"


def check_github_actions(job: ValidationContext) -> None:
    """Report each field of the job file that a GitHub job has no key for."""
    _check_text(job)
    _check_job_of_ci(job, _GITHUB_GRACE)
    name = job.value("name")
    if name and not name[0].isalpha():
        cannot(job, "name", f"job whose id begins with a digit ({name})", fix=f"write job-{name}", why=_IDS)
    refuse_characters(job, r"[\\$`\"'\x00-\x1f\x7f]", _OPTIONS, ("labels.",))
    refuse_characters(job, r"[:\\$`\"'\x00-\x1f\x7f]", _VOLUMES, ("mounts.",))


def check_gitlab_ci(job: ValidationContext) -> None:
    """Report each field of the job file without a key in a GitLab job or its runner's config.toml."""
    _check_text(job)
    _check_job_of_ci(job, _GITLAB_GRACE)
    name = job.value("name")
    if name in _KEYWORDS:
        cannot(job, "name", f"job called {name}", fix=f"write {name}-job", why="it is a keyword of the file itself")
    for field in ("read_only", "labels", "stop_signal"):
        if job.value(field):
            cannot(job, field, f"{field} of a job's container", fix=f"delete {field}, or take --target github-actions")
    for field, secret in job.entries("secrets"):
        if secret.get("as") == "file":
            cannot(
                job,
                f"{field}.as",
                f"secrets as files ({field})",
                fix="write as: env",
                why="a variable of GitLab's own type File is one, with its path in the variable of its name",
            )
    refuse_characters(job, r"[:\"\\\x00-\x1f\x7f]", _TOML, ("mounts.",))


def check_devcontainer(job: ValidationContext) -> None:
    """Report each field of the job file that a devcontainer.json has no property for."""
    _check_text(job)
    if job.value("healthcheck.stall_after") is not None:
        cannot(
            job,
            "healthcheck.stall_after",
            "health check, which alone would tell (healthcheck.stall_after)",
            fix="delete it",
            why="nobody asks after a devcontainer's health",
        )
    refuse_characters(job, _VARIABLES, _REPLACED, ("env.", "labels.", "mounts.", "working_dir", "command.", "script"))


def check_dockerfile(job: ValidationContext) -> None:
    """Report each field of the job file without a word in a Dockerfile or in the line that starts its image."""
    _check_text(job)
    image = job.value("image")
    if image and is_floating(image):
        cannot(
            job,
            "image",
            f"base without a fixed tag ({image})",
            fix="write the tag of a release, or a digest (name@sha256:…)",
            why="the next build would be another image",
        )
    for field, secret in job.entries("secrets"):
        source, name = secret.get("env"), field.partition(".")[2]
        if source not in (None, name):
            cannot(
                job,
                f"{field}.env",
                f"variable {name} that another one fills ({field}.env {source})",
                fix=f"write env: {name}",
                why="the line that starts the image passes variables on by their own names; a value would show in it",
            )
    refuse_characters(job, r"[\x00-\x08\x0a-\x1f\x7f]", _LINE, ("env.", "labels.", "working_dir", "mounts."))
    for field, mount in job.mounts():
        odd = re.search(r"[*?\[\]$\\]", f"{mount.get('source') or '.'}{mount.get('target')}")
        if odd and _is_of_repository(mount):
            cannot(job, field, f"way to copy a path with {odd[0]} ({field})", fix="rename the folder", why=_COPY)


CHECKS = {
    GITHUB.name: check_github_actions,
    GITLAB.name: check_gitlab_ci,
    DEVCONTAINER.name: check_devcontainer,
    DOCKERFILE.name: check_dockerfile,
}


def _check_text(job: ValidationContext) -> None:
    """Report what no engine has, several nodes, and mounts that a checkout of the repository doesn't have."""
    check_shared(job, source_fix=_SOURCE)
    check_one_node(job)
    check_engine(job)
    if job.value("healthcheck.on_unhealthy") == "stop":
        cannot(
            job,
            "healthcheck.on_unhealthy",
            "way to stop an unhealthy job (healthcheck.on_unhealthy: stop)",
            fix="write report",
            why="whoever runs this file checks the job's health at most; `trainlaunch up` and a kubelet stop it",
        )
    for field, mount in job.mounts():
        kind, source = mount.get("type"), str(mount.get("source") or ".")
        if kind in _CLUSTERS:
            cannot(
                job,
                field,
                f"{kind} mounts, and {field} asks for one",
                fix=f"give it another one, like --set {field}.type=bind --set {field}.source=./data",
            )
        elif kind in _PATHS and not source.startswith("/") and below_repository(job.root.span.file, source) is None:
            cannot(
                job,
                field,
                f"{source} of {field}, which is outside the repository",
                fix="move it into the repository, or write the whole path that the runner's machine has",
                why="a runner has the repository alone, at a path that it chooses",
            )


def _check_job_of_ci(job: ValidationContext, grace: str) -> None:
    """Report what a job of CI has no key for; `grace` says how long its runner lets a cancelled job end."""
    stated = [each for each in _HEALTH if job.value(f"healthcheck.{each}") is not None]
    if stated:
        cannot(
            job,
            f"healthcheck.{stated[0]}",
            f"health check (healthcheck.{stated[0]})",
            fix="delete it",
            why="its runner starts the container with a process of its own and asks nobody "
            "whether the job in it is well",
        )
    if job.value("stop_grace_period") is not None:
        cannot(job, "stop_grace_period", "stop_grace_period", fix=f"delete it: {grace}", why=grace)
    if job.value("pull_policy") == "never":
        cannot(job, "pull_policy", "pull_policy never", fix="write always", why="its runner pulls before each job")
    _refuse_read_only_clone(job)
    deadline = job.value("active_deadline")
    if isinstance(deadline, int) and deadline % 60:
        cannot(
            job,
            "active_deadline",
            f"active_deadline of {deadline} seconds",
            fix=f"write {deadline // 60 + 1}m",
            why="it counts whole minutes",
        )


def _refuse_read_only_clone(job: ValidationContext) -> None:
    """Report parts of the repository that the job may not write to: a runner clones it into the container itself."""
    for field, mount in job.mounts():
        read_only = mount.get("read_only") or mount.get("type") == "code"
        if read_only and _is_of_repository(mount):
            cannot(
                job,
                f"{field}.read_only",
                f"read-only folder of the repository ({field})",
                why="its runner clones the repository into the container, where the job may write to it",
                fix=f"add --set {field}.type=bind --set {field}.read_only=false",
            )


def _is_of_repository(mount: Mapping[str, Any]) -> bool:
    return mount.get("type") in _PATHS and not str(mount.get("source") or ".").startswith("/")


def refuse_characters(job: ValidationContext, pattern: str, why: str, fields: tuple[str, ...]) -> None:
    """Report values of these fields in which one of these characters would not arrive."""
    for field, text in _texts(job):
        match = re.search(pattern, text) if field.startswith(fields) else None
        if match:
            cannot(
                job,
                field,
                f"way to write {shorten(match[0])} in {field}",
                fix=f"write {field} without it, or read the value from a file",
                why=why,
            )


def _texts(job: ValidationContext) -> Iterator[tuple[str, str]]:
    for field, mount in job.mounts():
        yield from ((f"{field}.{key}", str(mount[key])) for key in ("source", "target") if mount.get(key))
    for block in ("env", "labels"):
        yield from ((field, f"{field.partition('.')[2]}={value}") for field, value in job.entries(block))
    for name in ("working_dir", "image"):
        yield name, str(job.value(name) or "")
    yield from (*job.arguments(), *job.entries("image_entrypoint"))
    yield "script", str(job.value("script") or "")
