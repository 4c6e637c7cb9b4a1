"""Checks what the job says about its DataLoaders, and the fields that have Python of trainlaunch run beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainlaunch.job.loader_spec import inherited
from trainlaunch.job.tokens import OF_LOADERS, near_token, token_of
from trainlaunch.job.validation.context import ValidationContext
from trainlaunch.job.values.scalar_reader import BAD
from trainlaunch.sanitize import shorten

_INJECT = "data_loader.inject"
_MIN_PREFETCH = 2  # torch's own
_STALL = "healthcheck.stall_after"
_STOP = "healthcheck.on_unhealthy"


def check_loaders(job: ValidationContext) -> None:
    """Report every contradiction between the loaders' fields, and tokens of loaders that the job doesn't have."""
    shared = job.value("data_loader") or {}
    _check_one_measure(job, "data_loader", shared)
    loaders = job.value("data_loader.loaders")
    _check_tokens(job)
    if loaders == {}:
        _check_no_tokens(job)
    if loaders is None:
        _check_batch_size(job, "data_loader", shared)
        return
    for path, own in job.entries("data_loader.loaders"):
        _check_one_measure(job, path, own)
        _check_batch_size(job, path, inherited(shared, own))


def _check_no_tokens(job: ValidationContext) -> None:
    """Report each token that stands for a value of a DataLoader in a job without one."""
    for field, value in _with_tokens(job):
        token = token_of(value)
        if token in OF_LOADERS:
            job.add(
                "TL109",
                field,
                f"{field} is {shorten(value)}, and data_loader is none",
                why="a job without DataLoaders has no such number; it would arrive as 0 or empty",
                fix=f"delete it, write {{{{{token}}}}} for these very characters, or set data_loader",
            )


def _with_tokens(job: ValidationContext) -> Iterator[tuple[str, str]]:
    """Yield the texts in which the preflight fills tokens, each with its path."""
    yield from job.arguments()
    yield from ((path, value) for path, value in job.entries("env") if isinstance(value, str))


def _check_tokens(job: ValidationContext) -> None:
    """Report each word in braces that is nearly a token."""
    for field, value in _with_tokens(job):
        near = near_token(value)
        if near is not None:
            job.add(
                "TL109",
                field,
                f"{field} is {shorten(value)}, and no token is called so",
                why="it would reach the job with its braces",
                fix=f"write {{{near}}}",
            )


def _check_one_measure(job: ValidationContext, path: str, stated: Mapping[str, Any]) -> None:
    if "sample" in stated and "batch_bytes" in stated:
        job.add(
            "TL109",
            f"{path}.batch_bytes",
            f"{path} sets sample and batch_bytes",
            why="each alone gives the bytes of a batch",
            fix=f"delete {path}.sample, or {path}.batch_bytes",
        )


def _check_batch_size(job: ValidationContext, path: str, values: Mapping[str, Any]) -> None:
    if values.get("sample") and values.get("sample") is not BAD and "batch_size" not in values:
        job.add(
            "TL106",
            path,
            f"{path}.batch_size is missing, and a sample is set",
            why="a batch is batch_size samples; null says that the dataset yields batches and sample is one of them",
            fix=f"add batch_size: 32 under {path}, or null",
        )


def check_inside(job: ValidationContext) -> None:
    """Report waits that nobody could watch, and workers that no loader could get."""
    if job.value(_INJECT) in {"num_workers", "force"}:
        _check_injection(job)
    stops, stall = job.value(_STOP) == "stop", job.value(_STALL) is not None
    if stops and not stall:
        job.add(
            "TL106",
            _STOP,
            f"{_STOP} is stop, and {_STALL} is missing",
            fix=f"add {_STALL}: 30m",
            why="a job is stopped for a batch that never comes, and only you know how long one may take",
        )
    if job.value("observe") and job.value(_INJECT) == "off":
        job.add(
            "TL109",
            "observe",
            f"observe is true, and {_INJECT} is off",
            fix=f"delete {_INJECT}, or observe",
            why="torch's own DataLoader notes how long it waits, which trainlaunch adds to it inside the job",
        )
    if not stall:
        return
    if job.value("data_loader.inject") == "off":
        job.add(
            "TL109",
            _STALL,
            f"{_STALL} is set, and data_loader.inject is off",
            fix=f"delete data_loader.inject, or {_STALL}",
            why="torch's own DataLoader notes when it begins to wait, which trainlaunch adds to it inside the job",
        )
    if job.value("data_loader.loaders") == {}:
        job.add(
            "TL109",
            _STALL,
            f"{_STALL} is set, and data_loader is none",
            fix=f"delete {_STALL}",
            why="it is the longest wait for a batch, and a job without a DataLoader waits for none",
        )


def _check_injection(job: ValidationContext) -> None:
    named = [f"{path}.prefetch_factor" for path, _ in job.entries("data_loader.loaders")]
    for field in ("data_loader.prefetch_factor", *named):
        prefetch = job.value(field)
        if prefetch is not None and prefetch < _MIN_PREFETCH:
            job.add(
                "TL109",
                field,
                f"{field} is {prefetch}, and {_INJECT}: {job.value(_INJECT)} leaves a loader its {_MIN_PREFETCH}",
                fix=f"delete {field}, or write num_workers and prefetch_factor in the script",
                why="more batches would wait in /dev/shm than it is sized for",
            )
