"""A data set moves tensors to the GPU in `__getitem__`, and its loader has workers.

**Why it matters**: a forked worker can't use CUDA: `RuntimeError: Cannot re-initialize CUDA in forked subprocess`.
Under spawn each worker takes a CUDA context of its own, hundreds of MB of the GPU's memory.

**Example**:

```training-script
class Images(Dataset):
    def __getitem__(self, index):
        return torch.zeros(3).cuda()

loader = DataLoader(Images(), num_workers=4)
```

**Use instead**:

```training-script
class Images(Dataset):
    def __getitem__(self, index):
        return torch.zeros(3)

loader = DataLoader(Images(), num_workers=4, pin_memory=True)
for batch in loader:
    batch = batch.cuda(non_blocking=True)
```

**Fix**: none by itself.

**References**: torch.multiprocessing notes, CUDA in multiprocessing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile
from launcher.rules.written.scripts import datasets, has_workers, method, span_of

CODE = "TL341"
NAME = "cuda-in-worker"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
FIX = "return tensors of the CPU, and move each batch in the training loop"
WHY = "CUDA can't be used in a forked process whose parent has used it"


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each move to the GPU in what workers run."""
    if not has_workers(file.tree):
        return
    for owner in datasets(file.tree):
        reads = method(owner, "__getitem__")
        for node in ast.walk(reads) if reads is not None else ():
            if isinstance(node, ast.Call) and _moves(node):
                yield Finding(
                    Diagnostic(
                        CODE,
                        "__getitem__ uses CUDA, and it runs in the workers of the loader",
                        FIX,
                        why=WHY,
                        severity=SEVERITY,
                        span=span_of(file, node),
                    ),
                    NAME,
                )


def _moves(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "cuda":
        return True
    words = [each.value for each in call.args if isinstance(each, ast.Constant)]
    return call.func.attr == "to" and any(isinstance(each, str) and each.startswith("cuda") for each in words)
