"""A GitLab job trains with DataLoader workers, and its runner alone sizes /dev/shm.

**Why it matters**: a job has no key for it. The Docker executor's config.toml says `shm_size` in bytes under
`[runners.docker]`; the Kubernetes executor needs an empty_dir of medium Memory. Without them the job has 64 MiB.

**Example**:

```gitlab-ci
train:
  image: pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
  script: [python train.py --num-workers 4]
```

**Use instead**:

```gitlab-ci
train:
  image: pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
  script: [python train.py --num-workers 0]
```

**Fix**: none: the size stands with the runner, not in this file.

**References**: GitLab Runner, advanced configuration: runners.docker shm_size; Kubernetes executor, volumes of type
empty_dir.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.commands import commands_in, stated_workers
from launcher.rules.written.model import DEFECTS, GITLAB, Finding, WrittenFile, at, below
from launcher.yamltree.documents import Mapping, Scalar

CODE = "TL350"
NAME = "size-left-to-gitlab-runner"
SEVERITY = Severity.INFO
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each job with an image whose script states workers."""
    root = file.nodes[0] if file.kind == GITLAB and file.nodes else None
    shared = at(root, "image") is not None or at(root, "default", "image") is not None
    if not isinstance(root, Mapping):
        return
    for name, job in root.items.items():
        if name.startswith(".") or not isinstance(job, Mapping) or not (shared or "image" in job.items):
            continue
        scripts = [each.text for each in below(at(job, "script")) if isinstance(each, Scalar)]
        workers = stated_workers([argv for each in scripts for argv in commands_in(each)], {})
        if workers:
            yield Finding(
                Diagnostic(
                    CODE,
                    f"{workers} DataLoader workers run with the /dev/shm of the runner's configuration",
                    "see to it that the runner states it: shm_size in [runners.docker], or an empty_dir of medium "
                    "Memory at /dev/shm for the Kubernetes executor",
                    why="a job of GitLab can't size /dev/shm, and 64 MiB are the default",
                    severity=SEVERITY,
                    span=root.keys[name].span,
                ),
                NAME,
            )
