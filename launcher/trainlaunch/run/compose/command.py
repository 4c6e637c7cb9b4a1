"""The Compose that is installed: which command it is, and how it is given a text without a secret in any file."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.target_names import node_names
from trainlaunch.run.base.secret_values import environment

CANDIDATES = (("docker", "compose"), ("docker-compose",), ("podman", "compose"))
OLDEST = 2  # the first version of the Compose specification: no pull_policy and no init before
_PROBE_SECONDS = 30
_CREATE_SECONDS = 600


class Compose(NamedTuple):
    """A command that is Compose, as it is typed, and its version."""

    words: tuple[str, ...]
    version: str

    def __str__(self) -> str:
        return f"`{' '.join(self.words)}` {self.version}"

    def create(
        self, plan: LaunchPlan, text: str, *, project: str, more: Mapping[str, Any], variables: Mapping[str, str]
    ) -> str:
        """Create, and don't start, the containers of `text` as a project; return what Compose said.

        `more` is laid over each service, its strings literal. `variables` name the engine to it, where its own search
        would find another or none.
        Its exit code is no proof (a packaged wrapper ends with 0 for everything): the caller asks the engine.
        Secrets go to it by its environment alone. A `.env` file beside the job is not read: it would be another source.
        """
        literal = json.dumps(more).replace("$", "$$")  # Compose expands variables in it
        services = {name: json.loads(literal) for name in node_names(plan.name, plan.nodes)}
        with _written(json.dumps({"services": services})) as overlay:
            command = [
                *(*self.words, "--project-name", project, "--file", "-", "--file", overlay),
                *("--project-directory", str(Path(plan.job.path).absolute().parent), "--env-file", os.devnull),
                *("create", "--pull", "never"),
            ]
            try:
                done = subprocess.run(
                    command,
                    input=text,
                    env={**_environment(plan), **variables},
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=_CREATE_SECONDS,
                    start_new_session=True,  # Ctrl-C is ours to act on, when all is made
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return f"no answer within {_CREATE_SECONDS} s"
        return _without_secrets(plan, f"{done.stdout}\n{done.stderr}".strip())


@contextlib.contextmanager
def _written(text: str) -> Iterator[str]:
    """Write a text to a file of its own and give its path; the file is gone afterwards."""
    with contextlib.ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trainlaunch-")))
            (folder / "run.json").write_text(text, encoding="utf-8")
        except OSError as cause:
            raise TargetUnavailable([_no_temporary_file(cause)]) from cause
        yield str(folder / "run.json")


def find_compose() -> Compose:
    """Return the first Compose that answers; raises TargetUnavailable (TL520) where none does, or only an old one."""
    old = []
    for words in CANDIDATES:
        version = _version(words)
        if version is None:
            continue
        if int(version.partition(".")[0]) >= OLDEST:
            return Compose(words, version)
        old.append(f"`{' '.join(words)}` is {version}")
    raise TargetUnavailable([_no_compose(", ".join(old))])


def _version(words: tuple[str, ...]) -> str | None:
    if shutil.which(words[0]) is None:
        return None
    try:
        asked = subprocess.run(
            [*words, "version", "--short"], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = asked.stdout.strip().removeprefix("v")
    return found if found.partition(".")[0].isdecimal() else None


def _environment(plan: LaunchPlan) -> dict[str, str]:
    """Return ours without what would give Compose other files, profiles or habits than those it is told."""
    secrets = {secret.env for secret in plan.job.secrets.values()}
    return {name: value for name, value in environment().items() if name in secrets or not name.startswith("COMPOSE_")}


def _without_secrets(plan: LaunchPlan, said: str) -> str:
    for value in _secret_values(plan):
        said = said.replace(value, "…")
    return said


def _secret_values(plan: LaunchPlan) -> Iterator[str]:
    names = (secret.env or name for name, secret in plan.job.secrets.items())
    return filter(None, map(environment().get, names))


def _no_compose(old: str) -> Diagnostic:
    tried = ", ".join(f"`{' '.join(each)}`" for each in CANDIDATES)
    return Diagnostic(
        code="TL520",
        message=f"no Compose of version {OLDEST} or later is installed" + (f": {old}" if old else ""),
        why=f"target compose creates what it runs by one of {tried}, and none of them answers",
        fix="install docker-compose-plugin or docker-compose-v2 (apt), or take `--target docker` for a single node",
    )


def _no_temporary_file(cause: OSError) -> Diagnostic:
    return Diagnostic(
        code="TL116",
        message=f"the file of a run's own values can't be written: {cause.strerror or cause}",
        why="Compose reads the run's id and attempt from a file in TMPDIR; nothing was created",
        fix="set TMPDIR to a folder that you can write to, on a disk with space",
    )
