"""`trainlaunch schema`: the JSON Schema of the job file, for editors and CI."""

from __future__ import annotations

import argparse
import json

from launcher.cli.common import CONTRACT_EXIT_CODES
from launcher.cli.streams import Streams

EXAMPLES = ("trainlaunch schema > trainlaunch.schema.json",)
EXIT_CODES = CONTRACT_EXIT_CODES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the schema has no variants."""


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Print the schema."""
    from launcher.job.schema import json_schema

    streams.result(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
    return 0
