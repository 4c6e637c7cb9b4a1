"""A data set opens a file in `__init__` and reads it in `__getitem__`, and its loader has workers.

**Why it matters**: forked workers share one file offset. They read each other's samples without an error: of 20,000,
129 were wrong with four workers. Handles of h5py and LMDB break in other ways.

**Example**:

```training-script
class Images(Dataset):
    def __init__(self, path):
        self.file = open(path, "rb")

    def __getitem__(self, index):
        self.file.seek(index * 4)
        return self.file.read(4)

loader = DataLoader(Images("data"), num_workers=4)
```

**Use instead**:

```training-script
class Images(Dataset):
    def __init__(self, path):
        self.path = path

    def __getitem__(self, index):
        with open(self.path, "rb") as file:
            file.seek(index * 4)
            return file.read(4)

loader = DataLoader(Images("data"), num_workers=4)
```

**Fix**: none by itself.

**References**: torch.utils.data documentation, multi-process data loading; open(2): an offset belongs to the open file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile
from launcher.rules.written.scripts import datasets, has_workers, method, name_of, span_of

CODE = "TL340"
NAME = "handle-shared-by-workers"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
FIX = "open it in __getitem__, or once in each worker where it is still None"
WHY = "forked workers share the file's offset and read each other's samples, without an error"
_OPENS = frozenset({"open", "io.open", "h5py.File", "lmdb.open", "tarfile.open", "zipfile.ZipFile", "sqlite3.connect"})


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each handle that the workers of a loader would share."""
    if not has_workers(file.tree):
        return
    for owner in datasets(file.tree):
        reads = method(owner, "__getitem__")
        used = {name_of(each) for each in ast.walk(reads) if isinstance(each, ast.Attribute)} if reads else set()
        stored = {name_of(each) for each in _stored(reads)}
        for name, value in _opened(method(owner, "__init__")):
            if name in used - stored:
                yield _finding(file, name, value)


def _stored(function: ast.FunctionDef | None) -> Iterator[ast.expr]:
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node


def _opened(function: ast.FunctionDef | None) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and name_of(node.value.func) in _OPENS:
            for target in node.targets:
                if name_of(target).startswith("self."):
                    yield name_of(target), node.value


def _finding(file: WrittenFile, name: str, value: ast.Call) -> Finding:
    return Finding(
        Diagnostic(
            CODE,
            f"{name} is opened in __init__ and read in __getitem__, so all workers share one handle",
            FIX,
            why=WHY,
            severity=SEVERITY,
            span=span_of(file, value),
        ),
        NAME,
    )
