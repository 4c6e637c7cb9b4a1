"""A shell on this host like a job's process, or in the folder of one that runs."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from trainlaunch.errors import TargetUnavailable
from trainlaunch.exit_codes import exit_of_signal
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import Say
from trainlaunch.run.base.container_shell import MARK
from trainlaunch.run.local.keeper import in_memory, when_parent_dies
from trainlaunch.run.local.process_spec import local_findings, process_spec
from trainlaunch.run.local.processes import RUN_ID, RUN_MARK, remove_own_folder

PASSED_ON = (signal.SIGTERM, signal.SIGHUP)


def run_shell(plan: LaunchPlan, token: str, say: Say) -> int:
    """Run a shell plan's process to its end and return its exit code, 128+n for signal n.

    It has no record and no mark of a run. Keys are its own, Ctrl-C too; it ends with this process. Raises
    TargetUnavailable.
    """
    findings = local_findings(plan)
    if findings:
        raise TargetUnavailable(findings)
    spec = process_spec(plan, run_id=f"{plan.name}-shell-{token[:8]}", folder=Path("/nowhere"), attempt=1)
    env = {name: value for name, value in spec.env.items() if name != RUN_MARK}
    files = {name: in_memory(text) for name, text in spec.files.items()}
    try:
        return _to_its_end(spec.argv, {**env, **files, MARK: token}, spec.cwd)
    finally:
        remove_own_folder(env[RUN_ID])


def in_folder_of(pid: int, command: Sequence[str], token: str) -> int:
    """Run a command in the folder and with the variables of a process of this host; raises OSError where it is gone."""
    process = Path(f"/proc/{pid}")
    pairs = (each.partition("=") for each in (process / "environ").read_text(errors="surrogateescape").split("\0"))
    env = {name: value for name, _, value in pairs if name and name != RUN_MARK}
    return _to_its_end(command, {**env, MARK: token}, str((process / "cwd").resolve(strict=True)))


def _to_its_end(argv: Sequence[str], env: dict[str, str], cwd: str) -> int:
    hangs_up = when_parent_dies(signal.SIGHUP)
    with (
        subprocess.Popen(argv, env=env, cwd=cwd, preexec_fn=hangs_up) as process,  # noqa: PLW1509 - one thread
        _passing_on(process) as passed,
    ):
        code = process.wait()
    if passed:  # a shell whose terminal is gone may also end by itself, with any code
        return exit_of_signal(passed[0])
    return 128 - code if code < 0 else code


@contextlib.contextmanager
def _passing_on(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Let Ctrl-C be the program's alone, and pass on what ends us; gives the signals that were."""
    passed: list[int] = []

    def handler(number: int, _frame: FrameType | None) -> None:
        if number in PASSED_ON:
            passed.append(number)
            process.send_signal(number)

    heard = (signal.SIGINT, signal.SIGQUIT, *PASSED_ON)
    before = {each: signal.signal(each, handler) for each in heard}
    try:
        yield passed
    finally:
        for each, old in before.items():
            signal.signal(each, old)
