"""Starts wrappers in real containers, many cases per container, under each shell that a training image may have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainlaunch.container.preflight import preflight_text
from trainlaunch.plan.launch_plan import LaunchPlan

from tests.conftest import Runs

SHELLS: Mapping[str, tuple[str, ...]] = {
    "dash": ("/bin/dash",),
    "busybox": ("/bin/busybox", "sh"),
    "bash": ("/bin/bash", "--posix"),
}
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
        text, setup = preflight_text(self.plan), self.setup
        if self.allowed_cpus is not None:
            assert text.count("/proc/self/status") == 1
            text = text.replace("/proc/self/status", "/var/status")
            setup += f"\nprintf 'Name:\\tsh\\nCpus_allowed_list:\\t%s\\n' {self.allowed_cpus} >/var/status"
        return {
            "argv": [*SHELLS[shell], "-c", text, "trainlaunch", *self.plan.argv],
            "env": dict(self.env),
            "user": self.user,
            "cwd": self.cwd,
            "setup": setup,
            "stdin": self.stdin,
            "signals": self.signals,
        }


@dataclass(frozen=True, slots=True)
class Ended:
    """How a case ended: exit code, standard output and standard error."""

    shell: str
    code: int
    out: str
    err: str

    @property
    def variables(self) -> dict[str, str]:
        """The job's environment, where the job was `env -0`."""
        return dict(each.split("=", 1) for each in self.out.split("\0") if each)


def run_cases(
    docker_run: Runs, image: str, cases: list[Case], *flags: str, shells: tuple[str, ...] = tuple(SHELLS)
) -> list[list[Ended]]:
    """Run every case under every shell in one container with these flags; returns, per case, one end per shell."""
    started = [each.started_by(shell) for each in cases for shell in shells]
    done = docker_run(
        "--interactive",
        f"--volume={DRIVER}:/driver.py:ro",
        *flags,
        image,
        "python3",
        "/driver.py",
        input=json.dumps(started),
    )
    assert done.returncode == 0, done.stderr
    ended = [
        Ended(shell, each["code"], each["out"], each["err"])
        for each, shell in zip(json.loads(done.stdout), shells * len(cases), strict=True)
    ]
    return [ended[start : start + len(shells)] for start in range(0, len(ended), len(shells))]


def pid_1_arguments(case: Case, shell: str) -> tuple[list[str], list[str]]:
    """Return the flags before the image, and the words after it, that make a case its container's first process."""
    argv = case.started_by(shell)["argv"]
    assert isinstance(argv, list)
    return ["--init=false", f"--entrypoint={argv[0]}"], argv[1:]
