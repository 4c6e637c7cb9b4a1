"""`trainlaunch completion`: the completion script of a shell, written from the parser itself."""

from __future__ import annotations

import argparse

from trainlaunch.cli.streams import Streams

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
    from trainlaunch.cli import shells
    from trainlaunch.cli.grammar import verbs

    write = {"bash": shells.bash, "zsh": shells.zsh, "fish": shells.fish}[args.shell]
    streams.result(write(tuple(verbs())))
    return 0
