"""Checks the fields that have Python of trainlaunch run in the job's own processes."""

from __future__ import annotations

from trainlaunch.job.validation.fields import Checked

_INJECT = "data_loader.inject"
_LEAST_PREFETCH = 2  # torch's own
_STALL = "healthcheck.stall_after"
_STOP = "healthcheck.on_unhealthy"


def check_inside(job: Checked) -> None:
    """Report waits that nobody could watch, and workers that no loader could get."""
    if job.value(_INJECT) == "num_workers":
        _check_injection(job)
    stops, stall = job.value(_STOP) == "stop", job.value(_STALL) is not None
    if stops and not stall:
        why = "a job is stopped for a batch that never comes, and only you know how long one may take"
        job.add("TL106", _STOP, f"{_STOP} is stop, and {_STALL} is missing", fix=f"add {_STALL}: 30m", why=why)
    if not stall:
        return
    if job.value("data_loader.inject") == "off":
        why = "torch's own DataLoader notes when it begins to wait, which trainlaunch adds to it inside the job"
        fix = f"delete data_loader.inject, or {_STALL}"
        job.add("TL109", _STALL, f"{_STALL} is stated, and data_loader.inject is off", fix=fix, why=why)
    if job.value("data_loader.loaders") == {}:
        message = f"{_STALL} is stated, and data_loader is none"
        why = "it is the longest wait for a batch, and a job without a DataLoader waits for none"
        job.add("TL109", _STALL, message, fix=f"delete {_STALL}", why=why)


def _check_injection(job: Checked) -> None:
    context = job.value("data_loader.multiprocessing_context") or "fork"
    if context != "fork":
        why = (
            "a script that never had workers may not run under another start method: it has no main guard, or a lambda"
        )
        fix = f"delete data_loader.multiprocessing_context, or write {_INJECT}: env and num_workers in the script"
        message = f"{_INJECT} is num_workers, and data_loader.multiprocessing_context is {context}"
        job.add("TL109", "data_loader.multiprocessing_context", message, fix=fix, why=why)
    loaders = job.value("data_loader.loaders")
    named = [f"data_loader.loaders.{name}.prefetch_factor" for name in loaders or ()]
    for field in ("data_loader.prefetch_factor", *named):
        prefetch = job.value(field)
        if prefetch is not None and prefetch < _LEAST_PREFETCH:
            message = f"{field} is {prefetch}, and {_INJECT}: num_workers leaves a loader torch's own {_LEAST_PREFETCH}"
            fix = f"delete {field}, or write num_workers and prefetch_factor in the script"
            job.add("TL109", field, message, fix=fix, why="more batches would wait in /dev/shm than it is sized for")
