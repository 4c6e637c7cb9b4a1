"""`trainlaunch completion`: the completion script of a shell, written from the parser itself."""

from __future__ import annotations

import argparse

from trainlaunch.cli.output.streams import Streams

EXAMPLES = (
    "source <(trainlaunch completion bash)  # in ~/.bashrc; zsh: after compinit",
    "trainlaunch completion fish > ~/.config/fish/completions/trainlaunch.fish",
)
EXIT_CODES = "0 fine, 2 usage, 70 a bug of ours, 130 interrupted"
SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Print the script."""
    from trainlaunch.cli.arguments.grammar import verbs
    from trainlaunch.cli.verbs import completion_scripts

    write = {"bash": completion_scripts.bash, "zsh": completion_scripts.zsh, "fish": completion_scripts.fish}[
        args.shell
    ]
    streams.result(write(tuple(verbs())))
    return 0
