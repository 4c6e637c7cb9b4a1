"""A value of a Compose file has a `${` that is no variable of Compose's.

**Why it matters**: Compose stops before anything starts: `invalid interpolation format … You may need to escape any $
with another $`. `$(…)`, `$1` and `$?` are left as they are.

**Example**:

```compose
services:
  train:
    image: trainer:1
    command: [sh, -c, 'exec python train.py --rank ${1}']
```

**Use instead**:

```compose
services:
  train:
    image: trainer:1
    command: [sh, -c, 'exec python train.py --rank $${1}']
```

**Fix**: none by itself: `$${` is a `${` for the container's shell.

**References**: Compose file reference, interpolation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import COMPOSE, DEFECTS, Finding, WrittenFile, below
from launcher.yamltree.documents import Scalar

CODE = "TL372"
NAME = "interpolation-refused"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
_REFUSED = re.compile(r"\$\{(?:(?![A-Za-z_])|[A-Za-z_]\w*(?!\w|\}|:?[-?+]))[^}\s]{0,20}\}?")


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each scalar with a `${` behind which no name stands, or that nothing closes."""
    for root in file.nodes if file.kind == COMPOSE else ():
        for node in below(root):
            if not isinstance(node, Scalar) or "${" not in node.text:
                continue
            match = _REFUSED.search(node.text.replace("$$", "  "))
            if match is None:
                continue
            yield Finding(
                Diagnostic(
                    CODE,
                    f"Compose takes {match[0]} for a variable, and it is none",
                    f"write ${match[0]}",
                    why="Compose reads every ${ as the start of a variable's name, and $$ as one $",
                    severity=SEVERITY,
                    span=node.span,
                ),
                NAME,
            )
