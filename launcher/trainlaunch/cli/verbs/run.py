"""`trainlaunch run -- COMMAND`: the bare command, with what only we know before and after it; no job file."""

from __future__ import annotations

import argparse
import contextlib
import shlex
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from signal import SIGHUP
from typing import TYPE_CHECKING, NamedTuple

from trainlaunch.cli.arguments.job_arguments import JOB_OUTPUT_ARGUMENT, target_name
from trainlaunch.cli.arguments.set_variables import set_variables
from trainlaunch.cli.arguments.verb_table import ArgumentGroup, Usage, argument
from trainlaunch.cli.arguments.waiting import MAX_DATA_WAIT
from trainlaunch.cli.output.streams import Streams
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError
from trainlaunch.targets import DOCKER, LOCAL

if TYPE_CHECKING:  # what starts a command is imported by those who start one: its help needs none of it
    from trainlaunch.cli.output.run_output import Screen
    from trainlaunch.init.command_container import CommandContainer
    from trainlaunch.init.command_plan import CommandNumbers, CommandPlan
    from trainlaunch.run.base.caller_terminal import TypedKeys
    from trainlaunch.run.base.console import Console
    from trainlaunch.run.base.store import Followed, RunStore

USAGE = Usage(
    examples=(
        "trainlaunch run -- python train.py --epochs 3",
        "trainlaunch run --workers auto -- torchrun --nproc_per_node 2 train.py",
        "trainlaunch run --image registry.example/trainer:1.4 -- python train.py",
        "trainlaunch run -d -e WANDB_MODE=offline -- python train.py",
    ),
    exit_codes=(
        "the command's own; 125 for anything before its first process, 75 this host can't run it now, 78 invalid "
        "configuration, 128+n when signal n ended it, as Ctrl-C's 130"
    ),
    arguments=(
        argument("command", nargs="*", metavar="COMMAND", help="the command, behind --; its words arrive as they are"),
        argument("--image", help="run it in a container of this image, in Docker or Podman (default: on this host)"),
        argument("-d", "--detach", action="store_true", help="start it without a terminal and return; print its name"),
        JOB_OUTPUT_ARGUMENT,
        argument(
            "-q", "--quiet", action="store_true", help="print only the command's output unless something is wrong"
        ),
        ArgumentGroup(
            (
                argument("--workers", metavar="auto|N", help="workers of each DataLoader (default: the script's own)"),
                argument("--cpus", help="CPUs that the plan counts on, with --image a limit (default: this process's)"),
                argument("--memory", help="memory that the plan counts on, with --image a limit, like 32Gi"),
                argument("--gpus", help="a count, or ids like 0,1 (default: those that the shell sees)"),
            ),
            "numbers",
        ),
        ArgumentGroup(
            (
                argument(
                    "-e", "--env", action="append", default=[], metavar="NAME[=VALUE]", help="a variable; repeatable"
                ),
                argument("--env-file", type=Path, metavar="FILE", help="lines NAME=VALUE"),
                argument(
                    "--target",
                    type=target_name,
                    choices=(DOCKER.name, LOCAL.name),
                    metavar="docker|podman",
                    help="with --image: the engine, where both are here (default: docker)",
                ),
                argument(
                    "--mount",
                    action="append",
                    default=[],
                    dest="mounts",
                    metavar="DIR[:ro]",
                    help="with --image: another folder, at its own path; repeatable",
                ),
                MAX_DATA_WAIT,
                argument("--name", help="the job's name (default: the script's, or its folder's)"),
                argument(
                    "--set",
                    action="append",
                    default=[],
                    dest="sets",
                    metavar="FIELD=VALUE",
                    help="override one field of the job that is planned; repeatable",
                ),
            ),
            "seldom",
        ),
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Plan the command, start it in front of the caller, say how it ended."""
    from trainlaunch.init.command_plan import CommandNumbers, command_plan
    from trainlaunch.run.run_lock import new_run_id

    command: list[str] = args.command
    _require_command(command)
    asked = CommandNumbers(args.name, args.cpus, args.memory, args.gpus, args.workers, tuple(args.sets))
    env, run_id = set_variables(args.env, args.env_file), new_run_id()

    def planned_for(numbers: CommandNumbers, container: CommandContainer | None = None) -> CommandPlan:
        return command_plan(command, numbers, env, run_id, container)

    if args.image is not None and args.target == LOCAL.name:
        fix = "leave out one of them"
        raise UsageError([Diagnostic("TL118", "--target local is this host, and --image is a container's", fix)])
    if args.image is not None:
        return _in_container(args, streams, asked, planned_for)
    if args.mounts or args.target == DOCKER.name:
        fix = "add --image with the image that has the command's programs, or leave them out"
        raise UsageError(
            [Diagnostic("TL118", "--target docker and --mount are of a container, which needs --image", fix)]
        )
    return _here(args, streams, asked, planned_for)


def _require_command(command: list[str]) -> None:
    """Raise UsageError for what is no command, and say what was meant."""
    if not command:
        fix = "write it behind --, like `trainlaunch run -- python train.py`"
        raise UsageError([Diagnostic("TL118", "run has no command", fix)])
    program = Path(command[0])
    if len(command) == 1 and program.suffix in {".yaml", ".yml"}:
        fix = f"write `trainlaunch up {shlex.quote(command[0])}`"
        raise UsageError([Diagnostic("TL118", f"run starts a command, and {command[0]} is a job file", fix)])
    if program.suffix == ".py" and "/" not in command[0] and program.is_file():
        import shutil

        if shutil.which(command[0]) is None:
            told = f"{command[0]} is a script of this folder, and no program on PATH"
            fix = f"write `{shlex.join(['python', *command])}` behind --"
            raise UsageError([Diagnostic("TL118", told, fix)])


def _here(
    args: argparse.Namespace, streams: Streams, asked: CommandNumbers, planned_for: Callable[..., CommandPlan]
) -> int:
    from trainlaunch.cli.arguments.run_argument import opened_store
    from trainlaunch.cli.output.command_output import first_lines
    from trainlaunch.run.base.caller_terminal import CallerTerminal

    planned = planned_for(asked)
    with opened_store(argparse.Namespace(context=None, namespace=None), (planned.plan.target,)) as store:
        terminal = None if args.detach else CallerTerminal(shared=args.output != "json")
        automatic = partial(planned_for, asked._replace(workers="auto"))
        return _started(args, streams, _Ready(planned, automatic, store, terminal, first_lines(planned)))


def _in_container(
    args: argparse.Namespace, streams: Streams, asked: CommandNumbers, planned_for: Callable[..., CommandPlan]
) -> int:
    from trainlaunch.cli.arguments.run_argument import say_once
    from trainlaunch.cli.output.command_output import first_lines_of
    from trainlaunch.init.command_container import command_container, command_folders
    from trainlaunch.run.backends import docker_backend
    from trainlaunch.run.base.engine_terminal import EngineTerminal
    from trainlaunch.run.docker.image import image_of_command
    from trainlaunch.run.stores import MachineStore

    say = (lambda _: None) if args.quiet else say_once
    folders = command_folders(args.image, args.mounts, args.command)  # before an image is pulled
    with contextlib.closing(docker_backend(say)) as backend:
        image = image_of_command(backend.engine, args.image, say)
        container = command_container(image, folders)
        planned = planned_for(asked, container)
        automatic = partial(planned_for, asked._replace(workers="auto"), container)
        terminal = None if args.detach else EngineTerminal(shared=args.output != "json")
        store = MachineStore({DOCKER.name: backend}, {})
        return _started(args, streams, _Ready(planned, automatic, store, terminal, first_lines_of(planned, image)))


class _Ready(NamedTuple):
    """A planned command, what `--workers auto` would have planned, and what it is started with."""

    planned: CommandPlan
    automatic: Callable[[], CommandPlan]
    store: RunStore
    terminal: TypedKeys | None
    lines: Iterable[str]


def _started(args: argparse.Namespace, streams: Streams, ready: _Ready) -> int:
    from trainlaunch.cli.arguments.waiting import max_data_wait, workers_advice
    from trainlaunch.cli.output.command_output import in_options, teller_of_command
    from trainlaunch.cli.output.run_document import beside_document, with_document
    from trainlaunch.cli.output.run_output import Screen
    from trainlaunch.run.base.store import Starting

    planned, automatic, store, terminal, lines = ready
    for line in () if args.quiet else lines:
        streams.say(line)
    shown = beside_document(streams) if args.output == "json" else streams
    screen = Screen(shown, is_raw=lambda: terminal is not None and terminal.is_raw)
    how = Starting(
        typed=shlex.join(["trainlaunch", *args.words]),
        detach=args.detach,
        share_gpus=True,
        as_shell=True,
        terminal=terminal,
        run=planned.run,
        max_data_wait=max_data_wait(args, planned.plan),
    )

    def advise(followed: Followed) -> str:
        return workers_advice(planned, automatic, followed, args.workers)

    tell = teller_of_command(planned, screen, shown, advise, quiet=args.quiet)
    if shown is not streams:
        tell = with_document(tell, planned.plan, streams, planned.run)
    return store.start(
        planned.plan, _console(screen, terminal), how, lambda followed: tell(in_options(followed, planned))
    )


def _console(screen: Screen, terminal: TypedKeys | None) -> Console:
    """Return what shows the command's output as it comes, without the preflight's own line in it."""
    from trainlaunch.cli.output.command_output import Hidden
    from trainlaunch.run.base.console import Console

    def hang_up(why: str) -> None:
        if terminal is not None:
            terminal.signal(SIGHUP)
        screen.leave(why)

    on_one = terminal is not None and terminal.shares_output  # which both streams then share
    out = Hidden(screen.out) if on_one else screen.out
    err = screen.err if on_one else Hidden(screen.err)
    return Console(out, err, screen.say, lambda _: "", hang_up, lambda: screen.left, report_deviations=False)
