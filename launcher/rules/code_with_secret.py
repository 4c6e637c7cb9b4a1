"""Files of a code mount hold what a secret is for: a key, a token, a password.

**Why it matters**: on Kubernetes a mount of type code is a ConfigMap, written out in the rendering. Whoever reads the
repository, the pull request or the namespace reads what is in it. What was committed once stays in git's history, so it
is to be replaced too.

**Example**:

```sh
git init -q . && mkdir src && touch src/train.py && echo TOKEN=a > src/.env && git add src
trainlaunch plan job.yaml --target kubernetes --set 'resources={cpus: 1, memory: 8Gi}' \\
  --set 'mounts=[{type: code, source: ./src, target: /workspace}]'
```

**Use instead**:

```sh
git init -q . && mkdir src && touch src/train.py && git add src
trainlaunch plan job.yaml --target kubernetes --set 'resources={cpus: 1, memory: 8Gi}' \\
  --set 'secrets={TOKEN: {kubernetes: mine/token}}' --set 'mounts=[{type: code, source: ./src, target: /workspace}]'
```

**Fix**: none by itself; somebody has to say where the value comes from instead.

**References**: docs/secrets.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from launcher.diagnostics import Diagnostic, Severity
from launcher.job.names import shown
from launcher.plan.launch_plan import LaunchPlan

if TYPE_CHECKING:
    from launcher.job.code_folder import CodeFile

CODE = "TL214"
NAME = "code-with-secret"
SEVERITY = Severity.WARNING
_NAMED = 3
_VARIED = 10  # different bytes of a token; one of x alone stands for another
_EXAMPLES = frozenset({"example", "sample", "template", "dist", "tmpl", "defaults"})
_FILES = frozenset({".netrc", ".pgpass", ".git-credentials", ".pypirc", ".htpasswd", "kubeconfig"})
_FOLDERS = frozenset({".aws/credentials", ".kube/config", ".docker/config.json", ".huggingface/token"})
# With a line of the key itself: a program that looks for keys has the first line alone.
_KEY = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----[ \t\r]*\n"
    rb"(?:[^\n]{0,80}\n){0,4}[ \t]*[A-Za-z0-9+/=]{40}"
)
# Each of these forms is its issuer's own.
_TOKEN = re.compile(
    rb"(?<![A-Za-z0-9_-])(?:hf_[A-Za-z]{34}|gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{82}"
    rb"|glpat-[A-Za-z0-9_-]{20}|AKIA[A-Z2-7]{16}|xox[abp]-[A-Za-z0-9-]{24,80})(?![A-Za-z0-9_-])"
)


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield a warning for each code mount with files that hold a secret."""
    for index, folder in plan.job.code.items():
        found = [each.path for each in folder.files if _holds_secret(each)]
        if not found:
            continue
        source, field = str(plan.job.mounts[index].source), f"mounts.{index}.source"
        named = ", ".join(map(shown, found[:_NAMED])) + ", …" * (len(found) > _NAMED)
        yield Diagnostic(
            CODE,
            f"{shown(source)} holds a secret in {named}, which the rendering shows to everybody who reads it",
            "`git rm --cached` it, replace what it held, and state it in secrets",
            why="a code mount becomes a ConfigMap, and that keeps no secret",
            severity=SEVERITY,
            span=plan.job.span(field),
            field=field,
        )


def _holds_secret(file: CodeFile) -> bool:
    path = PurePosixPath(file.path)
    if path.name == ".env" or path.name.startswith(".env."):
        return not _EXAMPLES & set(path.name.split(".")) and b"=" in file.data
    named = path.name in _FILES or "/".join(path.parts[-2:]) in _FOLDERS
    tokens = (each[0] for each in _TOKEN.finditer(file.data))
    real = (each for each in tokens if not each.endswith(b"EXAMPLE") and len(set(each)) > _VARIED)
    return (named and bool(file.data.strip())) or _KEY.search(file.data) is not None or any(real)
