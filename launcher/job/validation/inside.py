"""Checks the fields that have Python of trainlaunch run in the job's own processes."""

from __future__ import annotations

from launcher.job.validation.fields import Checked

_STALL = "healthcheck.stall_after"
_STOP = "healthcheck.on_unhealthy"


def check_inside(job: Checked) -> None:
    """Report waits that nobody could watch."""
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
