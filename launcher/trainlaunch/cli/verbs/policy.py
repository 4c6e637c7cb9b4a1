"""`trainlaunch policy export`: the policies in force for a folder, as admission policies of a cluster."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from trainlaunch.cli.arguments.job_arguments import POLICY_ARGUMENTS, open_named, reach_of
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.streams import Streams
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError
from trainlaunch.exit_codes import EXIT_FINDINGS
from trainlaunch.sanitize import one_line

_APIS = ("v1", "v1beta1", "v1alpha1")

USAGE = Usage(
    examples=(
        "trainlaunch policy export > admission.yaml",
        "trainlaunch policy export --enforce --policy prod.yaml | kubectl apply -f -",
        "kubectl get pods -A -o yaml | trainlaunch policy export --mutating --try -",
    ),
    exit_codes="0 fine, 1 a bad policy or a pod that is refused, 2 usage, 70 an internal error, 130 interrupted",
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
            "--mutating",
            action="store_true",
            help="write a MutatingAdmissionPolicy too, which gives pods that train a /dev/shm where they have none",
        ),
        argument(
            "--api",
            choices=_APIS,
            help="version of that policy's API: v1 from Kubernetes 1.36 on (the default), v1beta1 in 1.34 and 1.35, "
            "v1alpha1 in 1.32 and 1.33",
        ),
        argument(
            "--try",
            dest="try_file",
            action="append",
            default=[],
            metavar="FILE",
            help="write nothing, and list what these policies would do with the pods of `kubectl get pods -o yaml`; "
            "- is stdin",
        ),
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
    """Print the admission policies, or what they would do with pods."""
    from trainlaunch.policy import policies_in
    from trainlaunch.policy.admission import admission_documents, admission_text

    given = next((name for name, value in (("--api", args.api), ("--try", args.try_file)) if value), None)
    if given and not args.mutating:
        raise _usage(f"{given} is about the policy that repairs pods", "add --mutating")
    mutating = (args.api or _APIS[0]) if args.mutating else None
    policy = policies_in(args.folder, policy=args.policy, reach=reach_of(args))
    if len(args.try_file) > 1:
        raise _usage("--try is there twice", "give all pods in one file")
    if args.try_file:
        documents = admission_documents(policy, enforce=True, controllers=args.controller, mutating=mutating)
        return _try(documents, args.try_file[0], streams)
    streams.result(admission_text(policy, enforce=args.enforce, controllers=args.controller, mutating=mutating))
    return 0


def _try(documents: list[dict[str, Any]], name: str, streams: Streams) -> int:
    """Print what the documents would do with each pod of a file."""
    from trainlaunch.policy.pod_reader import NoPodsError, counted, read_pods
    from trainlaunch.policy.pod_trial import LEFT, REFUSED, REPAIRED, try_pods

    if not name:
        raise _usage("--try has no file", "name one, or - for stdin")
    with open_named(name, f"--try {name}") as file:
        data = file.read()
    try:
        pods, others = read_pods(data)
    except NoPodsError as error:
        raise _usage(f"--try {name}: {error}", "give what `kubectl get pods -A -o yaml` prints") from error
    counts: Counter[str] = Counter()
    try:
        for each in try_pods(documents, pods):
            counts[each.verdict] += 1
            streams.row(one_line(f"{each.verdict:<8}  {each.name}: {each.why}"))
    except ModuleNotFoundError as error:
        raise _usage(
            "cel-expr-python, which evaluates policies as a server does, is not installed",
            "run `pip install 'trainlaunch[cel]'`",
        ) from error
    if others:
        streams.say(f"not tried, since pods alone are: {counted(others)}")
    streams.say(", ".join(f"{counts[verdict]} {verdict}" for verdict in (REPAIRED, LEFT, REFUSED)))
    return EXIT_FINDINGS if counts[REFUSED] else 0


def _usage(message: str, fix: str) -> UsageError:
    return UsageError([Diagnostic("TL118", message, fix)])
