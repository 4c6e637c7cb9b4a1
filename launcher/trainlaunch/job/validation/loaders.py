"""Checks what the job says about its DataLoaders, whatever the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainlaunch.job.building.spec import inherited
from trainlaunch.job.names import shown
from trainlaunch.job.tokens import OF_LOADERS, token_of
from trainlaunch.job.validation.fields import Checked
from trainlaunch.job.values.scalars import BAD


def check_loaders(job: Checked) -> None:
    """Report every contradiction between the loaders' fields, and tokens of loaders that the job doesn't have."""
    shared = job.value("data_loader") or {}
    _check_one_measure(job, "data_loader", shared)
    loaders = job.value("data_loader.loaders")
    if loaders == {}:
        _check_no_tokens(job)
    if loaders is None:
        _check_batch_size(job, "data_loader", shared)
        return
    for name, own in loaders.items():
        if own is not BAD:
            path = f"data_loader.loaders.{name}"
            _check_one_measure(job, path, own)
            _check_batch_size(job, path, inherited(shared, own))


def _check_no_tokens(job: Checked) -> None:
    """Report each token that stands for a value of a DataLoader in a job without one."""
    for index, argument in enumerate(job.value("command") or ()):
        token = token_of(argument) if isinstance(argument, str) else None
        if token in OF_LOADERS:
            job.add(
                "TL109",
                f"command.{index}",
                f"command.{index} is {shown(argument)}, and data_loader is none",
                why="a job without DataLoaders has no such number; the argument would arrive as 0 or empty",
                fix=f"delete the argument, write {{{{{token}}}}} for these very characters, or state data_loader",
            )


def _check_one_measure(job: Checked, path: str, stated: Mapping[str, Any]) -> None:
    if "sample" in stated and "batch_bytes" in stated:
        job.add(
            "TL109",
            f"{path}.batch_bytes",
            f"{path} states sample and batch_bytes",
            why="each alone gives the bytes of a batch",
            fix=f"delete {path}.sample, or {path}.batch_bytes",
        )


def _check_batch_size(job: Checked, path: str, values: Mapping[str, Any]) -> None:
    if values.get("sample") and values.get("sample") is not BAD and "batch_size" not in values:
        job.add(
            "TL106",
            path,
            f"{path}.batch_size is missing, and a sample is stated",
            why="a batch is batch_size samples; null says that the dataset yields batches and sample is one of them",
            fix=f"add batch_size: 32 under {path}, or null",
        )
