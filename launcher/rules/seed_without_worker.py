"""A seed is `initial_seed() // 2**32`, which is the same in every worker.

**Why it matters**: torch's seed of a worker is a base plus its number, and only the low bits differ. Divided by 2³² all
workers get one seed, and draw the same augmentations, without an error.

**Example**:

```training-script
def seed_worker(worker_id):
    np.random.seed(torch.initial_seed() // 2**32)

loader = DataLoader(data, num_workers=4, worker_init_fn=seed_worker)
```

**Use instead**:

```training-script
def seed_worker(worker_id):
    np.random.seed(torch.initial_seed() % 2**32)

loader = DataLoader(data, num_workers=4, worker_init_fn=seed_worker)
```

**Fix**: none by itself: the draws of later runs differ from those of earlier ones.

**References**: PyTorch, Reproducibility: DataLoader.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile
from launcher.rules.written.scripts import name_of, span_of

CODE = "TL342"
NAME = "seed-without-worker"
SEVERITY = Severity.ERROR
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each division of torch's seed by 2**32."""
    for node in ast.walk(file.tree) if file.tree is not None else ():
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.FloorDiv) or not _is_32_bits(node.right):
            continue
        if isinstance(node.left, ast.Call) and name_of(node.left.func).rpartition(".")[2] == "initial_seed":
            yield Finding(
                Diagnostic(
                    CODE,
                    "initial_seed() // 2**32 is the same number in every worker",
                    "write initial_seed() % 2**32",
                    why="the seeds of workers differ in their low bits alone, which the division drops",
                    severity=SEVERITY,
                    span=span_of(file, node),
                ),
                NAME,
            )


def _is_32_bits(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value == 2**32
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Pow):
        return False
    values = [each.value for each in (node.left, node.right) if isinstance(each, ast.Constant)]
    return values == [2, 32]
