"""What a code mount brings that it shouldn't, and leaves out that it should."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from trainlaunch.diagnostics import Severity
from trainlaunch.did_you_mean import closest
from trainlaunch.job.command_script import script_not_in_mount
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.rules.base.rule import Problem, plan_rule
from trainlaunch.sanitize import shorten

if TYPE_CHECKING:
    from trainlaunch.job.code_folder import CodeFile, CodeFolder

_MAX_NAMED = 3
_VARIED = 10  # different bytes of a token; one of x alone stands for another
_EXAMPLES = frozenset({"example", "sample", "template", "dist", "tmpl", "defaults"})
_FILES = frozenset({".netrc", ".pgpass", ".git-credentials", ".pypirc", ".htpasswd", "kubeconfig"})
_FOLDERS = frozenset({".aws/credentials", ".kube/config", ".docker/config.json", ".huggingface/token"})
# With a line of the key itself: a program that looks for keys has the first line alone.
_KEY = (
    rb"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----[ \t\r]*\n"
    rb"(?:[^\n]{0,80}\n){0,4}[ \t]*[A-Za-z0-9+/=]{40}"
)
# Each of these forms is its issuer's own.
_TOKEN = (
    rb"(?<![A-Za-z0-9_-])(?:hf_[A-Za-z]{34}|gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{82}"
    rb"|glpat-[A-Za-z0-9_-]{20}|AKIA[A-Z2-7]{16}|xox[abp]-[A-Za-z0-9-]{24,80})(?![A-Za-z0-9_-])"
)


@plan_rule("TL212", Severity.WARNING)
def code_untracked(plan: LaunchPlan) -> Iterator[Problem]:
    """A code mount has files that git neither tracks nor ignores."""
    for field, source, folder in _sources(plan):
        if folder.untracked:
            yield Problem(
                f"git doesn't track {_named(folder.untracked)} in {source}, so the cluster doesn't get them",
                "`git add` what the job needs, and name the rest in .gitignore",
                "a code mount brings the files that git tracks, so that every checkout renders the same",
                field,
            )


@plan_rule("TL214", Severity.WARNING)
def code_with_secret(plan: LaunchPlan) -> Iterator[Problem]:
    """A code mount has files that hold a secret."""
    for field, source, folder in _sources(plan):
        paths = [each.path for each in folder.files if _holds_secret(each)]
        if paths:
            yield Problem(
                f"{source} holds a secret in {_named(paths)}, which the rendered file shows to everybody who reads it",
                "`git rm --cached` it, replace what it held, and set it in secrets",
                "a code mount becomes a ConfigMap, and that keeps no secret",
                field,
            )


def _sources(plan: LaunchPlan) -> Iterator[tuple[str, str, CodeFolder]]:
    """Yield each folder of code with its field and its name for a message."""
    for index, folder in plan.job.code.items():
        yield f"mounts.{index}.source", shorten(str(plan.job.mounts[index].source)), folder


def _named(paths: Sequence[str]) -> str:
    return ", ".join(map(shorten, paths[:_MAX_NAMED])) + ", …" * (len(paths) > _MAX_NAMED)


def _holds_secret(file: CodeFile) -> bool:
    path = PurePosixPath(file.path)
    if path.name == ".env" or path.name.startswith(".env."):
        return not _EXAMPLES & set(path.name.split(".")) and b"=" in file.data
    named = path.name in _FILES or "/".join(path.parts[-2:]) in _FOLDERS
    tokens = (each[0] for each in re.finditer(_TOKEN, file.data))
    real = (each for each in tokens if not each.endswith(b"EXAMPLE") and len(set(each)) > _VARIED)
    return (named and bool(file.data.strip())) or re.search(_KEY, file.data) is not None or any(real)


@plan_rule("TL218", Severity.ERROR)
def script_not_mounted(plan: LaunchPlan) -> Iterator[Problem]:
    """The folder is on this host, so that what isn't in it isn't in the container."""
    found = script_not_in_mount(plan.job)
    if found is None:
        return
    path, name = found
    folder = Path(plan.job.path).absolute().parent
    near = closest(path.name, [each.name for each in path.parent.glob("*.py")] if path.parent.is_dir() else ())
    correct = f"write {name.removesuffix(path.name)}{near} in command, or " if near else ""
    yield Problem(
        f"the command runs {name}, and {os.path.relpath(path, folder)} is no file",
        f"{correct}mount the folder that has it as mounts, and name it in command as it is seen from working_dir",
        "Python ends with code 2 before anything is loaded",
        "command",
    )
