"""The process runs under a number that may have no name in the image.

**Why it matters**: `getpass.getuser()` raises `KeyError: 'getpwuid(): uid not found: 1042'`, in torch.compile among
others, and HOME is `/`, which that user can't write.

**Example**:

```dockerfile
FROM pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
USER 10001
CMD ["python", "train.py"]
```

**Use instead**:

```dockerfile
FROM pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
ENV USER=app HOME=/tmp
USER 10001
CMD ["python", "train.py"]
```

**Fix**: none by itself.

**References**: Python, getpass.getuser: LOGNAME, USER, LNAME, USERNAME, then the password database.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity, Span
from launcher.rules.written.model import PRACTICE, Finding, WrittenFile

CODE = "TL328"
NAME = "uid-without-name"
SEVERITY = Severity.INFO
GROUP = PRACTICE
_NAMES = frozenset({"LOGNAME", "USER", "LNAME", "USERNAME"})
_ADDS = re.compile(r"\b(?:useradd|adduser)\b|/etc/passwd")


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each numeric user without a variable that names it."""
    for written in file.containers:
        workload = written.workload
        user = workload.user
        if workload.format != "docker_run" or user is None or _NAMES & ({*workload.env} | {*workload.secrets}):
            continue
        if _is_number(user.text) and not any("/etc/passwd" in str(each.target) for each in workload.mounts):
            yield _finding(user.text, user.span, "-e USER=…", workload.place)
    texts = [each.value for each in file.instructions]
    for each in file.instructions:
        number = re.fullmatch(r"([1-9][0-9]*)(?::\S+)?", each.value.strip()) if each.name == "USER" else None
        named = any(
            re.search(r"\b(?:LOGNAME|USER|LNAME|USERNAME)[= ]", it.value)
            for it in file.instructions
            if it.name == "ENV"
        )
        if number and not named and not any(map(_ADDS.search, texts)):
            yield _finding(number[1], file.source.span(each.start, each.end), "ENV USER=app HOME=/tmp", "")


def _is_number(text: str) -> bool:
    bare = text.strip("\"'")
    return bool(re.match(r"[1-9][0-9]*(?::|$)|\$\(id -u\)|\$\{?UID\b|`id -u`", bare))


def _finding(text: str, span: Span, add: str, place: str) -> Finding:
    return Finding(
        Diagnostic(
            CODE,
            f"user {text} may have no name in the image",
            f"add {add}, and a HOME that it may write",
            why="getpass.getuser() raises KeyError where neither a variable nor /etc/passwd names the uid",
            severity=SEVERITY,
            span=span,
            field=place,
        ),
        NAME,
    )
