"""`trainlaunch lock`: pin what the image names of a job file stand for, in a file beside it."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
from pathlib import Path

from launcher.cli.common import add_policy_argument
from launcher.cli.report import framed
from launcher.cli.streams import Streams, coloured
from launcher.cli.write import replace_file
from launcher.diagnostics import Diagnostic, Explanation
from launcher.errors import EXIT_FINDINGS

TL127 = Explanation(
    "TL127",
    "lock-stale",
    "The lock is not what this engine says of the job's images, or there is none (`lock --check`).",
    """\
**Why**: a tag was moved, the job's images were changed, or the lock was.

**Example**:

```text
docker pull registry.example/trainer:1 && trainlaunch lock --check job.yaml
```

**Write instead**:

```text
trainlaunch lock job.yaml && git diff job.lock.yaml
```
""",
)
EXAMPLES = (
    "trainlaunch lock job.yaml            # writes job.lock.yaml",
    "trainlaunch lock job.yaml --check    # in CI, after `docker pull`",
)
EXIT_CODES = (
    "0 written or current, 1 a bad job file or a stale lock (--check), 2 usage, 3 no engine or it lacks the image, "
    "70 a bug of ours, 130 interrupted"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("job", metavar="JOB", type=Path, help="the job file, like job.yaml")
    add_policy_argument(parser)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the lock would change")


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Ask the engine, then write the lock or compare it."""
    from launcher.committed.lock import lock_text
    from launcher.job.building.lock import lock_path
    from launcher.policy import stated_images
    from launcher.run.docker.client import Engine, find_endpoint
    from launcher.run.docker.facts import facts_of

    images = stated_images(args.job, policy=args.policy)
    with contextlib.closing(Engine(find_endpoint())) as engine:
        text = lock_text(args.job, facts_of(engine, images))
    path = lock_path(args.job)
    current = path.read_bytes() if path.is_file() else None
    if current == text.encode():
        streams.say(f"{path} is current: {', '.join(images)}")
        return 0
    if not args.check:
        replace_file(path, text)
        streams.say(f"wrote {path}: {', '.join(images)}")
        return 0
    had = "" if current is None else current.decode(errors="replace")
    lines = difflib.unified_diff(list(io.StringIO(had)), list(io.StringIO(text)), str(path), f"{path} (engine)")
    streams.result("".join(line if line.endswith("\n") else f"{line}\n" for line in lines))
    streams.say(framed(_stale(args.job, path, missing=current is None), colour=coloured(streams.err)))
    return EXIT_FINDINGS


def _stale(job: Path, path: Path, *, missing: bool) -> Diagnostic:
    return Diagnostic(
        TL127.code,
        f"{path} does not exist" if missing else f"{path} is not what this engine says of the images of {job}",
        f"run `trainlaunch lock {job}`, and review what it changes",
        why="" if missing else "a tag was moved, the job's images were changed, or the lock was",
    )
