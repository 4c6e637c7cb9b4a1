"""A container's command mounts /dev/shm anew without the capability for it.

**Why it matters**: `mount -o remount,size=8g /dev/shm` needs SYS_ADMIN: `mount: /dev/shm: permission denied`, exit
32. Where the command goes on all the same, 64 MiB stay.

**Example**:

```shell
docker run --rm trainer:1 sh -c 'mount -o remount,size=8g /dev/shm && exec python train.py'
```

**Use instead**:

```shell
docker run --rm --shm-size=8g trainer:1 python train.py
```

**Fix**: none by itself: state the size for the container, and delete the mount.

**References**: mount(8); capabilities(7).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.engine_values import is_shm
from launcher.rules.written.commands import Argv
from launcher.rules.written.evidence import command_span, may_mount, size_text, suggested_shm
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile

CODE = "TL348"
NAME = "remount-in-container"
SEVERITY = Severity.ERROR
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each container that mounts /dev/shm itself and may not."""
    for written in file.containers:
        if not any(map(_mounts, written.argvs)) or may_mount(written.workload):
            continue
        yield Finding(
            Diagnostic(
                CODE,
                "the command mounts /dev/shm, for which the container has no capability",
                f"state the size for the container: {size_text(suggested_shm(written.workload, None), written)}",
                why="mount needs SYS_ADMIN, and stops with `permission denied`, exit 32",
                severity=SEVERITY,
                span=command_span(written.workload),
                field=written.workload.place,
            ),
            NAME,
        )


def _mounts(argv: Argv) -> bool:
    words = [each for each in argv if each != "sudo"]
    return bool(words) and posixpath.basename(words[0]) == "mount" and any(map(is_shm, words[1:]))
