"""The options that name a cluster and a namespace, for verbs that may act there."""

from __future__ import annotations

import argparse

from launcher.diagnostics import Diagnostic
from launcher.errors import UsageError


def add_place_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a cluster and a namespace."""
    parser.add_argument("--context", help="kubernetes: the kubeconfig's context (default: its current one)")
    parser.add_argument("--namespace", help="kubernetes: the namespace (default: the job's, else the context's)")


def names_a_place(args: argparse.Namespace) -> bool:
    """Return whether the arguments name a place in a cluster."""
    return args.context is not None or args.namespace is not None


def refuse_place_elsewhere(args: argparse.Namespace, target: str) -> None:
    """Raise UsageError where --context or --namespace is given for a target that has neither."""
    if target != "kubernetes" and names_a_place(args):
        option = "context" if args.context is not None else "namespace"
        message = f"--{option} names a place in a cluster, and the target is {target}"
        raise UsageError([Diagnostic("TL118", message, f"add `--target kubernetes`, or leave out --{option}")])
