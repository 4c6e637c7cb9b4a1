"""Checks what a devcontainer.json does not support."""

from __future__ import annotations

from trainlaunch.job.validation.context import ValidationContext, cannot
from trainlaunch.job.validation.engines import check_text, refuse_characters

_VARIABLES = (
    r"\$\{(?:env|localEnv|containerEnv|localWorkspaceFolder|localWorkspaceFolderBasename|containerWorkspaceFolder"
    r"|containerWorkspaceFolderBasename|devcontainerId)(?::(?:(?!\$\{)[^}])*)?\}"
)
_WHY = "a devcontainer replaces it by its own value, and has no way to write it literally"


def check(job: ValidationContext) -> None:
    """Report each stated field that a devcontainer.json has no property for."""
    check_text(job)
    if job.value("healthcheck.stall_after") is not None:
        what = "health check, which alone would tell (healthcheck.stall_after)"
        cannot(job, "healthcheck.stall_after", what, fix="delete it", why="nobody asks after a devcontainer's health")
    refuse_characters(job, _VARIABLES, _WHY, ("env.", "labels.", "mounts.", "working_dir", "command.", "script"))
