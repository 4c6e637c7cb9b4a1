"""The commands, which of them are more than a module of their own name, and how their modules declare arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import argparse

# Commands as help shows them, in groups: name → summary. The module is `cli/verbs/NAME.py`; it has USAGE and run.
VERB_GROUPS = {
    "start here": {
        "run": "run a command with the right sizes and no job file; its terminal, signals and exit code are its own",
        "doctor": "tell why a run died or hangs, from the run or from a log; alone look at this host",
    },
    "with a job file": {
        "init": "write a commented job file, from flags or from a training script that is read and never run",
        "plan": "show what is decided for a job, each number with its derivation and origin",
        "up": "start the job and follow it; the exit code is the job's own",
        "ps": "list the runs of all jobs",
        "status": "show /dev/shm, health and workers of a run",
        "logs": "print a run's log",
        "attach": "follow a run that goes on, and start a supervisor if none is running",
        "wait": "wait until a run ends; the exit code is the job's own",
        "shell": "open a shell, or run a command, in a container like the job's, or in the one that runs",
        "down": "stop a run and remove all that it made",
    },
    "measure": {
        "probe": "run the script for some batches: measure what its loaders take of /dev/shm, and find their defects",
        "tune": "run the job's script with several settings of its DataLoader, and find the fastest",
    },
    "in a repository": {
        "render": "print or write the job as a docker run script, Compose file or Kubernetes manifest",
        "check": "compare rendered files with what their job files render now",
        "lint": "find and repair what is wrong with docker lines, Compose files, manifests and CI jobs written by hand",
        "lock": "pin the digest and the ENTRYPOINT of a job's images, as the engine has them",
        "policy": "export the policies in force as admission policies of a cluster",
    },
    "also": {
        "explain": "tell what a code like TL201 means, why, and what to write instead",
        "schema": "print the JSON Schema of the job file or of a policy",
        "completion": "print the completion script of a shell",
    },
}
VERBS = {verb: summary for group in VERB_GROUPS.values() for verb, summary in group.items()}
# What other programs call what a command here does: nothing of it is run.
OTHERS_VERBS = {
    "start": "up JOB",
    "create": "up JOB",
    "apply": "up JOB, or `trainlaunch render JOB --target kubernetes | kubectl apply -f -`",
    "exec": "shell RUN -- COMMAND",
    "stop": "down RUN",
    "rm": "down RUN",
    "delete": "down RUN",
    "kill": "down RUN",
    "top": "status RUN",
    "stats": "status RUN",
    "describe": "status RUN",
    "get": "ps",
    "inspect": "status RUN -o json",
    "train": "run -- python train.py",
    "launch": "run -- python train.py",
    "submit": "up JOB",
    "diagnose": "doctor RUN",
    "why": "doctor RUN",
}
# Commands whose exit code is the job's: anything that stops them before the job has one is 125.
VERBS_WITH_THE_JOBS_CODE = {"run", "up", "wait", "attach", "shell"}
# Commands that run what stands after `--`.
VERBS_WITH_A_COMMAND = {"run", "shell"}


class Argument(NamedTuple):
    """One argument of a command, as argparse takes it: its name or flags, and the rest."""

    names: tuple[str, ...]
    options: dict[str, Any]


class ArgumentGroup(NamedTuple):
    """Arguments that help shows together; without a title each of them excludes the others."""

    arguments: tuple[Argument, ...]
    title: str = ""
    description: str = ""


class Usage(NamedTuple):
    """How a command is typed, and what its help says of that."""

    examples: tuple[str, ...]
    exit_codes: str
    arguments: tuple[Argument | ArgumentGroup, ...]


def argument(*names: str, **options: Any) -> Argument:
    """Return an argument, given as for `add_argument`."""
    return Argument(names, options)


def add_arguments(parser: argparse._ActionsContainer, stated: Iterable[Argument | ArgumentGroup]) -> None:
    """Add arguments to a parser, in their order."""
    for each in stated:
        if isinstance(each, Argument):
            parser.add_argument(*each.names, **each.options)
        elif each.title:
            add_arguments(parser.add_argument_group(each.title, each.description), each.arguments)
        else:
            add_arguments(parser.add_mutually_exclusive_group(), each.arguments)
