"""A Dockerfile tries to size /dev/shm: by a mount in a RUN step, or by a variable.

**Why it matters**: a build has no right to mount (`mount: /dev/shm: permission denied`, exit 32), mounts of a build are
not in the image, and no variable sizes anything.

**Example**:

```dockerfile
FROM pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
RUN mount -o remount,size=8G /dev/shm
CMD ["python", "train.py"]
```

**Use instead**:

```dockerfile
FROM pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
# run with: docker run --shm-size=8g
CMD ["python", "train.py"]
```

**Fix**: none by itself: the size belongs to whoever starts the container.

**References**: docker run --shm-size; Kubernetes emptyDir with medium Memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import DEFECTS, Finding, Instruction, WrittenFile

CODE = "TL314"
NAME = "shm-set-in-image"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
_MOUNT = re.compile(r"\bmount\s(?:(?!\bmount\s)[^;&|\n])*/dev/shm\b|\btmpfs\s+/dev/shm\b|/dev/shm\s+tmpfs\b")
_RUN_MOUNT = re.compile(r"--mount=(?:(?!--mount=)\S)*(?:target|dst|destination)=/dev/shm\b")
_VARIABLE = re.compile(r"(?:^|\s)((?:docker_)?shm[-_]?size)\s*[= ]", re.IGNORECASE)


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a finding for each instruction that would size /dev/shm."""
    for each in file.instructions:
        message = _message(each)
        if message:
            yield Finding(
                Diagnostic(
                    CODE,
                    message,
                    "delete it, and start the container with --shm-size, shm_size or a Memory emptyDir",
                    why="/dev/shm belongs to the container, which the image can't size",
                    severity=SEVERITY,
                    span=file.source.span(each.start, each.end),
                ),
                NAME,
            )


def _message(each: Instruction) -> str:
    if each.name == "RUN" and _MOUNT.search(each.value) and not _RUN_MOUNT.search(each.value):
        return "a RUN step can't size /dev/shm of the container"
    variable = _VARIABLE.search(each.value) if each.name == "ENV" else None
    return f"the variable {variable[1]} sizes nothing" if variable else ""
