"""A mount in memory that is meant as /dev/shm stands at another path.

**Why it matters**: PyTorch, NCCL and Python's semaphores use /dev/shm and nothing else. It keeps the runtime's 64
MiB, and workers die of `Bus error` though the text seems to size it.

**Example**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: train
    image: trainer:1
    resources: {limits: {memory: 16Gi}}
    volumeMounts: [{name: dshm, mountPath: /shm}]
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 4Gi}}]
```

**Use instead**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: train
    image: trainer:1
    resources: {limits: {memory: 16Gi}}
    volumeMounts: [{name: dshm, mountPath: /dev/shm}]
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 4Gi}}]
```

**Fix**: none by itself: the volume may serve something else too.

**References**: shm_overview(7).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import ABSENT, Known
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, Written, WrittenFile, at, text_at
from launcher.yamltree.documents import Sequence

CODE = "TL338"
NAME = "shm-at-wrong-place"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
_NEARLY = re.compile(r"(?:/dev)?/(?:shm(?:em)?|smh|shmm|sshm|shared_?mem(?:ory)?)|/dev/hsm|/run/shm|/var/shm|/dev")
_NAMED = re.compile(r"(?:^|[-_.])d?shm(?:em)?(?:$|[-_.])|shared-?mem")


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each mount in memory that is named for /dev/shm, or nearly is there, where nothing is."""
    for written in file.containers:
        if written.workload.shm.kind != ABSENT:
            continue
        for target in _misplaced(written):
            yield Finding(
                Diagnostic(
                    CODE,
                    f"a mount in memory stands at {target.value}, and /dev/shm has 64 MiB",
                    "mount it at /dev/shm",
                    why="PyTorch, NCCL and semaphores use /dev/shm alone",
                    severity=SEVERITY,
                    span=target.span,
                    field=written.workload.place,
                ),
                NAME,
            )


def _misplaced(written: Written) -> Iterator[Known[str]]:
    named = _named_for_it(written)
    for each in written.workload.mounts:
        if each.type != "tmpfs" or not isinstance(each.target, Known):
            continue
        path = posixpath.normpath("/" + each.target.value.lstrip("/"))
        if _NEARLY.fullmatch(path) or each.target.value in named:
            yield each.target


def _named_for_it(written: Written) -> set[str | None]:
    """Return the paths at which a pod's volumes are mounted whose name says /dev/shm."""
    listed = at(written.own, "volumeMounts") if written.workload.format == KUBERNETES else None
    mounts = listed.items if isinstance(listed, Sequence) else ()
    return {text_at(each, "mountPath") for each in mounts if _NAMED.search(text_at(each, "name") or "")}
