"""A configuration of SageMaker's local mode sizes /dev/shm; training instances don't read it.

**Why it matters**: the same job has 8 GiB on this machine and the instance's own size in the cloud.

**Example**:

```sagemaker
local:
  container_config: {shm_size: 8gb}
```

**Use instead**:

```sagemaker
local:
  container_config: {}
```

**Fix**: none: it is right for local mode, and nothing states a size for training instances.

**References**: sagemaker-python-sdk, local mode configuration.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import DEFECTS, SAGEMAKER, Finding, WrittenFile, at
from launcher.yamltree.documents import Mapping

CODE = "TL326"
NAME = "size-for-local-mode"
SEVERITY = Severity.INFO
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for the shm_size of local mode."""
    config = at(file.nodes[0], "local", "container_config") if file.kind == SAGEMAKER and file.nodes else None
    if isinstance(config, Mapping) and "shm_size" in config.keys:
        yield Finding(
            Diagnostic(
                CODE,
                "this size holds in SageMaker's local mode alone",
                "look at df /dev/shm on a training instance before the workers are counted there",
                why="training instances size /dev/shm themselves and don't read this file",
                severity=SEVERITY,
                span=config.keys["shm_size"].span,
                field="local.container_config.shm_size",
            ),
            NAME,
        )
