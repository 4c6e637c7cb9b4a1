"""Wrappers as they start in real containers, under each shell that a training image may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest
from trainlaunch.container.preflight import plan_variables, wrapper_words
from trainlaunch.plan.launch_plan import LaunchPlan

SHELLS: Mapping[str, tuple[str, ...]] = {
    "dash": ("/bin/dash",),
    "busybox": ("/bin/busybox", "sh"),
    "bash": ("/bin/bash", "--posix"),
}
EVERY_SHELL = pytest.mark.parametrize("shell", SHELLS)  # in the default too: where shells differ most
SHM = "--shm-size=256m"
DRIVER = Path(__file__).with_name("driver.py")


@dataclass(frozen=True, slots=True)
class Case:
    """One start of a wrapper; `setup` is shell text that root runs before it.

    `allowed_cpus` stands in for the list in /proc/self/status, since a machine has only so many CPUs.
    """

    plan: LaunchPlan
    env: Mapping[str, str] = field(default_factory=dict)
    user: int = 0
    cwd: str = "/"
    setup: str = ":"
    stdin: str = ""
    signals: tuple[str, ...] = ()
    allowed_cpus: str | None = None

    def started_by(self, shell: str) -> dict[str, object]:
        """Return this case for the driver, under one of SHELLS."""
        (_, _, text, *words), setup = wrapper_words(self.plan), self.setup
        if self.allowed_cpus is not None:
            assert text.count("/proc/self/status") == 1
            text = text.replace("/proc/self/status", "/var/status")
            setup += f"\nprintf 'Name:\\tsh\\nCpus_allowed_list:\\t%s\\n' {self.allowed_cpus} >/var/status"
        return {
            "argv": [*SHELLS[shell], "-c", text, *words, *self.plan.argv],
            "env": {**self.env, **plan_variables(self.plan)},
            "user": self.user,
            "cwd": self.cwd,
            "setup": setup,
            "stdin": self.stdin,
            "signals": self.signals,
        }


@dataclass(frozen=True, slots=True)
class Ended:
    """How a case ended: exit code, standard output and standard error."""

    code: int
    out: str
    err: str

    @property
    def variables(self) -> dict[str, str]:
        """The job's environment, where the job was `env -0`."""
        return dict(each.split("=", 1) for each in self.out.split("\0") if each)


class StartsPrograms(Protocol):
    """Starts what the driver takes, one after the other in a container with these flags; an end each."""

    def __call__(self, programs: list[dict[str, object]], *flags: str, image: str = "") -> list[Ended]: ...


class RunsCases(Protocol):
    """Runs cases one after the other in a container with these flags, under one shell; an end per case."""

    def __call__(self, cases: list[Case], *flags: str, image: str = "") -> list[Ended]: ...


def program(*argv: str, user: int = 0, **env: str) -> dict[str, object]:
    """Return what the driver takes of a program that is no wrapper."""
    return {"argv": argv, "env": env, "user": user, "cwd": "/", "setup": ":", "stdin": "", "signals": ()}


def pid_1_arguments(case: Case, shell: str) -> tuple[list[str], list[str]]:
    """Return the flags before the image, and the words after it, that make a case its container's first process."""
    argv = case.started_by(shell)["argv"]
    assert isinstance(argv, list)
    env = [f"--env={name}={value}" for name, value in plan_variables(case.plan).items()]
    return ["--init=false", f"--entrypoint={argv[0]}", *env], argv[1:]
