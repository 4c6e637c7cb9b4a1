"""Unknown keys: says which known key is meant."""

from __future__ import annotations

from trainlaunch.diagnostics import Report
from trainlaunch.did_you_mean import closest
from trainlaunch.job.fields.table import JOB, rows
from trainlaunch.job.fields.types import Type
from trainlaunch.sanitize import shorten
from trainlaunch.yamltree.strict import ScalarNode

MAX_FINDINGS_WITH_SUGGESTION = 50  # findings; comparing thousands of unknown keys would take seconds and help nobody
MAX_LISTED = 15

# Names of Compose, Kubernetes and docker run for fields of ours that no comparison of letters finds.
_FOREIGN = {
    "environment": "env",
    "volumes": "mounts",
    "mem": "resources.memory",
    "mem_limit": "resources.memory",
    "memory_limit": "resources.memory",
    "shm": "shm_size",
    "workdir": "working_dir",
    "entrypoint": "image_entrypoint",
    "args": "command",
    "gpu": "resources.gpus",
    "batch": "data_loader.batch_size",
    "workers": "data_loader.num_workers",
    "backoff_limit": "restart.max_attempts",
    "restart_policy": "restart.max_attempts",
    "k8s": "kubernetes",
    "overrides": "target_overrides",
}


def refuse_unknown_key(
    report: Report, key: ScalarNode, type_: Type, *, path: str, table: Type | None = None
) -> str | None:
    """Report a key that the object at `path` doesn't know; return the nearest name that it does, None where none is.

    `table` is the type of the whole file; None: a job file.
    """
    where = f" in {path}" if path else ""
    known = [field.name for field in type_.fields]
    close = nearest_name(key.text, known, path, table) if len(report) < MAX_FINDINGS_WITH_SUGGESTION else None
    page = "docs/job-file.md" if table is None else "docs/policy.md"
    listed = ", ".join(known) if len(known) <= MAX_LISTED else f"the fields of {page}"
    report.add(
        "TL104",
        key,
        message=f"unknown key {shorten(key.text)}{where}",
        fix=f"write {_nested(close, path)}" if close else f"write one of {listed}, or delete it",
        field=path,
    )
    return close


def _nested(name: str, path: str) -> str:
    """Return a dotted field as a job file writes it; keys of a job file have no dots."""
    outer, _, inner = name.rpartition(".")
    return f"{inner} under {outer}, as in {outer}: {{{inner}: …}}" if outer and outer != path else inner


def nearest_name(name: str, known: list[str], path: str, table: Type | None = None) -> str | None:
    """Return the known name closest to `name`, or the full path of a field of that name elsewhere in the file."""
    letters = (f"_{letter.lower()}" if letter.isupper() else letter for letter in name[:64])
    snake = "".join(letters).lstrip("_").replace("-", "_")
    fixed = [each for each, field in rows(table or JOB) if "[" not in each and "NAME" not in each]
    if snake in fixed and "." in snake:
        return snake
    elsewhere = [each for each in fixed if each.rpartition(".")[2] == snake and each not in {name, f"{path}.{snake}"}]
    if elsewhere and snake not in known:
        return elsewhere[0]
    found = closest(snake, known, cutoff=0.7) or (_FOREIGN.get(snake) if table is None else None)
    return found if found not in {name, f"{path}.{snake}"} else None
