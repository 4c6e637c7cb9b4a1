"""A devcontainer states runArgs and a Compose file; the arguments are not used.

**Why it matters**: with dockerComposeFile the container comes from `docker compose up`, which takes no arguments of
docker run. /dev/shm keeps 64 MiB and there is no GPU, without a word.

**Example**:

```devcontainer
{"dockerComposeFile": "compose.yaml", "service": "app", "runArgs": ["--shm-size=8g", "--gpus", "all"]}
```

**Use instead**:

```devcontainer
{"dockerComposeFile": "compose.yaml", "service": "app"}
```

and in compose.yaml `shm_size: 8gb`, and the GPUs under `deploy.resources.reservations.devices`.

**Fix**: none by itself, since the values belong into another file.

**References**: Dev Container metadata reference: runArgs is for image and build.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import DEFECTS, DEVCONTAINER, Finding, WrittenFile, at
from launcher.yamltree.documents import Mapping, Sequence

CODE = "TL320"
NAME = "run-args-unused"
SEVERITY = Severity.ERROR
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for runArgs beside dockerComposeFile."""
    root = file.nodes[0] if file.kind == DEVCONTAINER and file.nodes else None
    arguments = at(root, "runArgs")
    if not isinstance(root, Mapping) or at(root, "dockerComposeFile") is None:
        return
    if not isinstance(arguments, Sequence) or not arguments.items:
        return
    yield Finding(
        Diagnostic(
            CODE,
            "runArgs is not used with dockerComposeFile",
            "state them in the Compose file: shm_size: 8gb, and GPUs under deploy.resources.reservations.devices",
            why="the container is made by `docker compose up`, which takes no arguments of docker run",
            severity=SEVERITY,
            span=root.keys["runArgs"].span,
            field="runArgs",
        ),
        NAME,
    )
