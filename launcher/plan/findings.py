"""Findings that are no errors: what a reviewer would say of a job that runs."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Severity
from launcher.job.spec import JobSpec
from launcher.plan.host import not_applied
from launcher.plan.launch_plan import SharedMemory
from launcher.plan.names import LONGEST_NAME, longest_cluster_name, shortened
from launcher.units import human_size

TOKENS_THAT_NEED_WORKERS = ("{prefetch_factor}",)


def findings_of(job: JobSpec, shm: SharedMemory, *, fixed_name: str | None) -> list[Diagnostic]:
    """Return warnings and infos, in the order of the job file's sections."""
    checks = (_floating_tag, _unsized, _token_without_workers, _entrypoint_unknown)
    found = [_name_shortened(job, fixed_name), not_applied(job), *(check(job, shm) for check in checks)]
    return [each for each in found if each is not None]


def _name_shortened(job: JobSpec, fixed_name: str | None) -> Diagnostic | None:
    name = fixed_name or job.name
    longest = longest_cluster_name(job.kubernetes.kind, job.nodes, fixed=fixed_name is not None)
    if job.target != "kubernetes" or len(name) <= longest:
        return None
    return Diagnostic(
        "TL402",
        f"name has {len(name)} characters, {longest} fit beside the suffix, so it becomes {shortened(name, longest)}",
        f"choose a name of at most {longest} characters",
        why=f"the name becomes a label of the job's pods, and labels hold {LONGEST_NAME} characters",
        severity=Severity.INFO,
        span=job.span("name"),
        field="name",
    )


def _floating_tag(job: JobSpec, shm: SharedMemory) -> Diagnostic | None:
    name = job.image.rsplit("/", 1)[-1]
    if job.target == "local" or "@" in name or (":" in name and not name.endswith(":latest")):
        return None
    return Diagnostic(
        "TL111",
        f"image {job.image} names no fixed release",
        "set image to a tag other than latest, or to a digest (name@sha256:…)",
        why="a floating tag changes under a committed rendering, so a run can't be repeated",
        severity=Severity.WARNING,
        span=job.span("image"),
        field="image",
    )


def _unsized(job: JobSpec, shm: SharedMemory) -> Diagnostic | None:
    if not shm.unsized:
        return None
    return Diagnostic(
        "TL209",
        f"/dev/shm is unsized: {human_size(shm.size.value)} is a cap, not a need, since data_loader has no sample",
        "run it once and paste the batch_bytes line that `up` and `status` print, or state data_loader.sample",
        why="the size follows from workers × prefetch_factor × the bytes of one batch; a cap costs nothing until used",
        severity=Severity.INFO,
        span=job.span("data_loader"),
        field="data_loader.sample",
    )


def _token_without_workers(job: JobSpec, shm: SharedMemory) -> Diagnostic | None:
    used = [token for token in TOKENS_THAT_NEED_WORKERS for each in job.command or () if each.endswith(token)]
    if not used or any(each.workers for each in shm.loaders):
        return None
    return Diagnostic(
        "TL208",
        f"the command passes {used[0]}, but num_workers is 0",
        "set data_loader.num_workers to 1 or more, or drop the argument",
        why="torch refuses a prefetch_factor without workers",
        severity=Severity.WARNING,
        span=job.span("command"),
        field="command",
    )


def _entrypoint_unknown(job: JobSpec, shm: SharedMemory) -> Diagnostic | None:
    if job.image_entrypoint is not None or job.target == "local":
        return None
    return Diagnostic(
        "TL403",
        "image_entrypoint is not stated, so an ENTRYPOINT of the image is replaced by the preflight",
        "set image_entrypoint to the image's ENTRYPOINT, or to [] where it has none",
        why="the preflight takes the ENTRYPOINT's place; `up` asks the image and stops for one, a rendering can't",
        severity=Severity.INFO,
        span=job.span("image"),
        field="image_entrypoint",
    )
