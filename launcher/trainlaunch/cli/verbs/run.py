"""`trainlaunch run -- COMMAND`: the bare command, with what only we know before and after it; no job file."""

from __future__ import annotations

import argparse
import shlex
import signal
from pathlib import Path

from trainlaunch.cli.arguments.job_arguments import JOB_OUTPUT_ARGUMENT
from trainlaunch.cli.arguments.run_argument import opened_store
from trainlaunch.cli.arguments.verb_table import ArgumentGroup, Usage, argument
from trainlaunch.cli.output.command_output import Hidden, first_lines, teller_of_command
from trainlaunch.cli.output.run_document import beside_document, with_document
from trainlaunch.cli.output.run_output import Screen
from trainlaunch.cli.output.streams import Streams
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError
from trainlaunch.init.command_plan import CommandNumbers, command_plan, stated_variables
from trainlaunch.run.base.caller_terminal import CallerTerminal
from trainlaunch.run.base.console import Console
from trainlaunch.run.base.store import Starting
from trainlaunch.run.run_lock import new_run_id

USAGE = Usage(
    examples=(
        "trainlaunch run -- python train.py --epochs 3",
        "trainlaunch run --workers auto -- torchrun --nproc_per_node 2 train.py",
        "trainlaunch run -d -e WANDB_MODE=offline -- python train.py",
    ),
    exit_codes=(
        "the command's own; 125 for anything before its first process, 75 and 78 from the preflight (this machine, the "
        "files), 128+n when signal n ended it, as Ctrl-C's 130"
    ),
    arguments=(
        argument("command", nargs="*", metavar="COMMAND", help="the command, behind --; its words arrive as they are"),
        argument("-d", "--detach", action="store_true", help="start it without a terminal and return; print its name"),
        JOB_OUTPUT_ARGUMENT,
        argument("-q", "--quiet", action="store_true", help="say nothing of ours unless something is wrong"),
        ArgumentGroup(
            (
                argument("--workers", metavar="auto|N", help="workers of each DataLoader (default: the script's own)"),
                argument("--cpus", help="CPUs that the plan counts on (default: those that this process may use)"),
                argument("--memory", help="memory that the plan counts on, like 32Gi"),
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
    command: list[str] = args.command
    if len(command) == 1 and Path(command[0]).suffix in {".yaml", ".yml"}:
        fix = f"write `trainlaunch up {shlex.quote(command[0])}`"
        raise UsageError([Diagnostic("TL118", f"run starts a command, and {command[0]} is a job file", fix)])
    if not command:
        fix = "write it behind --, like `trainlaunch run -- python train.py`"
        raise UsageError([Diagnostic("TL118", "run has no command", fix)])
    asked = CommandNumbers(args.name, args.cpus, args.memory, args.gpus, args.workers, tuple(args.sets))
    run_id = new_run_id()
    planned = command_plan(command, asked, stated_variables(args.env, args.env_file), run_id)
    for line in () if args.quiet else first_lines(planned, run_id):
        streams.say(line)
    shown = beside_document(streams) if args.output == "json" else streams
    terminal = None if args.detach or shown is not streams else CallerTerminal()
    screen = Screen(shown, is_raw=lambda: terminal is not None and terminal.is_raw)
    how = Starting(
        typed=shlex.join(["trainlaunch", *args.words]),
        detach=args.detach,
        share_gpus=True,
        as_shell=True,
        terminal=terminal,
        run=run_id,
    )
    tell = teller_of_command(planned, run_id, screen, shown, quiet=args.quiet)
    if shown is not streams:
        tell = with_document(tell, planned.plan, streams, run_id)
    with opened_store(argparse.Namespace(context=None, namespace=None), (planned.plan.target,)) as store:
        return store.start(planned.plan, _console(screen, terminal), how, tell)


def _console(screen: Screen, terminal: CallerTerminal | None) -> Console:
    """Return what shows the command's output as it comes, without the preflight's own line in it."""

    def hang_up(why: str) -> None:
        if terminal is not None:
            terminal.signal(signal.SIGHUP)
        screen.leave(why)

    on_one = terminal is not None and terminal.streams.stdout is not None  # which both streams then share
    out = Hidden(screen.out) if on_one else screen.out
    err = screen.err if on_one else Hidden(screen.err)
    return Console(out, err, screen.say, lambda _: "", hang_up, lambda: screen.left, report_deviations=False)
