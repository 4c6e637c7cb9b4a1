"""Checks what a job of GitLab CI does not support."""

from __future__ import annotations

from trainlaunch.job.validation.context import ValidationContext, cannot
from trainlaunch.job.validation.engines import check_job_of_ci, check_text, refuse_characters

_GRACE = "a cancelled job's container is stopped as the runner's own settings say"
_KEYWORDS = frozenset({
    *("image", "services", "stages", "types", "variables", "cache", "include", "default", "workflow", "spec", "pages"),
    *("true", "false", "nil"),
})  # fmt: skip
_TOML = "a volume of config.toml is SOURCE:TARGET:MODE"


def check(job: ValidationContext) -> None:
    """Report each stated field that neither a GitLab job nor its runner's config.toml has a key for."""
    check_text(job)
    check_job_of_ci(job, _GRACE)
    name = job.value("name")
    if name in _KEYWORDS:
        cannot(job, "name", f"job called {name}", fix=f"write {name}-job", why="it is a keyword of the file itself")
    for field in ("read_only", "labels", "stop_signal"):
        if job.value(field):
            cannot(job, field, f"{field} of a job's container", fix=f"delete {field}, or take --target github-actions")
    for name, secret in (job.value("secrets") or {}).items():
        if isinstance(secret, dict) and secret.get("as") == "file":
            why = "a variable of GitLab's own type File is one, with its path in the variable of its name"
            cannot(job, f"secrets.{name}.as", f"secrets as files (secrets.{name})", fix="write as: env", why=why)
    refuse_characters(job, r"[:\"\\\x00-\x1f\x7f]", _TOML, ("mounts.",))
