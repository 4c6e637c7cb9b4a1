"""A loader hands a lambda to workers that get everything pickled.

**Why it matters**: under spawn and forkserver `iter(loader)` stops with `Can't pickle <function <lambda>>`.

**Example**:

```training-script
if __name__ == "__main__":
    loader = DataLoader(data, num_workers=2, collate_fn=lambda b: b, multiprocessing_context="spawn")
```

**Use instead**:

```training-script
def collate(batch):
    return batch

if __name__ == "__main__":
    loader = DataLoader(data, num_workers=2, collate_fn=collate, multiprocessing_context="spawn")
```

**Fix**: none by itself.

**References**: Python, multiprocessing: spawn and forkserver start methods; pickle: what can be pickled.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile
from launcher.rules.written.scripts import argument, loaders, pickles, span_of

CODE = "TL343"
NAME = "lambda-to-spawned-worker"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
FIX = "write a function of the module"
WHY = "spawn and forkserver pickle the data set and the functions for each worker"


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each lambda that a loader's own call hands to spawned workers."""
    for call in loaders(file.tree):
        method = pickles(call)
        for name in ("collate_fn", "worker_init_fn") if method else ():
            value = argument(call, name)
            if isinstance(value, ast.Lambda):
                yield Finding(
                    Diagnostic(
                        CODE,
                        f"{name} is a lambda, which can't be pickled for workers that {method} starts",
                        FIX,
                        why=WHY,
                        severity=SEVERITY,
                        span=span_of(file, value),
                    ),
                    NAME,
                )
