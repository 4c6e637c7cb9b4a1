"""A flag of docker run is written with underscores, as Compose's keys are.

**Why it matters**: docker stops before anything starts: `unknown flag: --shm_size`, exit 125.

**Example**:

```shell
docker run --rm --shm_size 2gb trainer:1 python train.py
```

**Use instead**:

```shell
docker run --rm --shm-size 2gb trainer:1 python train.py
```

**Fix**: `--fix` writes the dashes; safe.

**References**: docker run reference.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Edit, Severity
from launcher.formats.docker.table import FLAGS
from launcher.rules.written.model import DEFECTS, Finding, Word, WrittenFile

CODE = "TL318"
NAME = "flag-with-underscores"
SEVERITY = Severity.ERROR
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each flag of a container's line that docker knows by another spelling."""
    lines = {each.workload.span: each.workload for each in file.containers if each.workload.format == "docker_run"}
    for command in file.commands:
        run = next(
            (index for index, each in enumerate(command) if file.source.span(each.start, each.end) in lines), None
        )
        if run is None:
            continue
        workload = lines[file.source.span(command[run].start, command[run].end)]
        for word in command[run + 1 :]:
            if not word.text.startswith("-"):
                continue
            name = word.text.partition("=")[0]
            right = name[2:].replace("_", "-")
            if word.known and "_" in name and right in FLAGS and name in workload.rest:  # it stands before the image
                yield _finding(file, word, name, right)._replace(about=workload.place)


def _finding(file: WrittenFile, word: Word, name: str, right: str) -> Finding:
    start = word.start + file.text[word.start : word.end].find(name)
    span = file.source.span(start, start + len(name))
    return Finding(
        Diagnostic(
            CODE,
            f"docker run has no flag {name}",
            f"write --{right}",
            why=f"docker stops with `unknown flag: {name}`, exit 125; underscores are Compose's",
            severity=SEVERITY,
            span=span,
        ),
        NAME,
        (Edit(span, f"--{right}"),),
        safe=file.text.startswith(name, start),
    )
