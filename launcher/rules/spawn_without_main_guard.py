"""A loader of spawned workers is made at module level, and the script has no main guard.

**Why it matters**: each worker imports the script again and would start workers of its own: `RuntimeError: An attempt
has been made to start a new process before the current process has finished its bootstrapping phase`.

**Example**:

```training-script
loader = DataLoader(data, num_workers=2, multiprocessing_context="spawn")
for batch in loader:
    pass
```

**Use instead**:

```training-script
def main():
    for batch in DataLoader(data, num_workers=2, multiprocessing_context="spawn"):
        pass

if __name__ == "__main__":
    main()
```

**Fix**: none by itself.

**References**: Python, multiprocessing: safe importing of main module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile
from launcher.rules.written.scripts import is_guarded, loaders, name_of, pickles, span_of

CODE = "TL344"
NAME = "spawn-without-main-guard"
SEVERITY = Severity.ERROR
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each such loader that the module itself runs through."""
    tree = file.tree
    if tree is None or is_guarded(tree):
        return
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for call in loaders(statement):
            if pickles(call) and _is_run_through(tree, statement, call):
                yield Finding(
                    Diagnostic(
                        CODE,
                        f"{pickles(call)} imports this script in each worker, and it has no main guard",
                        'run the training in a function, called under if __name__ == "__main__":',
                        why="a worker that imports the script would start workers again, which Python refuses",
                        severity=SEVERITY,
                        span=span_of(file, call),
                    ),
                    NAME,
                )


def _is_run_through(tree: ast.Module, made: ast.stmt, call: ast.Call) -> bool:
    """Return whether a loop of the module itself goes through the loader."""
    names = {name_of(each) for each in made.targets} if isinstance(made, ast.Assign) and made.value is call else set()
    for statement in tree.body:
        for node in ast.walk(statement) if not isinstance(statement, (ast.FunctionDef, ast.ClassDef)) else ():
            if isinstance(node, ast.For) and (node.iter is call or (name_of(node.iter) in names - {""})):
                return True
    return False
