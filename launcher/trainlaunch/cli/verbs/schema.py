"""`trainlaunch schema`: the JSON Schema of the job file or of a policy, for editors and CI."""

from __future__ import annotations

import argparse
import json

from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.streams import Streams

USAGE = Usage(
    examples=(
        "trainlaunch schema > trainlaunch.schema.json",
        "trainlaunch schema policy > trainlaunch-policy.schema.json",
    ),
    exit_codes="0 fine, 2 usage, 70 an internal error, 130 interrupted",
    arguments=(argument("of", nargs="?", choices=("job", "policy"), default="job", help="which file (default: job)"),),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Print the schema."""
    from trainlaunch.job.fields.reference import json_schema
    from trainlaunch.policy.policy_reference import policy_schema

    schema = json_schema() if args.of == "job" else policy_schema()
    streams.result(json.dumps(schema, indent=2, ensure_ascii=False) + "\n")
    return 0
