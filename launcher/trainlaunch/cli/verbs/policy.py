"""`trainlaunch policy export`: the policies in force for a folder, as admission policies of a cluster."""

from __future__ import annotations

import argparse
from pathlib import Path

from trainlaunch.cli.arguments.job_arguments import POLICY_ARGUMENTS, reach_of
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.streams import Streams

USAGE = Usage(
    examples=(
        "trainlaunch policy export > admission.yaml",
        "trainlaunch policy export --enforce --policy prod.yaml | kubectl apply -f -",
    ),
    exit_codes="0 fine, 1 a bad policy, 2 usage, 70 a bug of ours, 130 interrupted",
    arguments=(
        argument("action", choices=("export",), help="write ValidatingAdmissionPolicies and their bindings"),
        argument(
            "folder",
            nargs="?",
            type=Path,
            default=Path(),
            metavar="DIR",
            help="folder of job files (default: this one)",
        ),
        argument("--enforce", action="store_true", help="deny; else a server warns and writes its audit log"),
        argument(
            "--controller",
            action="append",
            default=[],
            metavar="USER",
            help="a user that makes pods or Jobs of judged objects, where it isn't its project's usual one, like "
            "system:serviceaccount:ml:training-operator; repeatable",
        ),
        *POLICY_ARGUMENTS,
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Print the admission policies."""
    from trainlaunch.policy import policies_in
    from trainlaunch.policy.admission import admission_text

    policy = policies_in(args.folder, policy=args.policy, reach=reach_of(args))
    streams.result(admission_text(policy, enforce=args.enforce, controllers=args.controller))
    return 0
