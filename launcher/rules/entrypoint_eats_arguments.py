"""An ENTRYPOINT in shell form trains, and takes no arguments.

**Why it matters**: the shell gets the line as its whole text. What CMD says, or stands behind the image in docker
run, becomes `$0`, `$1` … of a text that doesn't use them: `docker run IMAGE --epochs 3` trains as before and says
nothing.

**Example**:

```dockerfile
FROM pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
ENTRYPOINT exec python train.py
CMD ["--epochs", "3"]
```

**Use instead**:

```dockerfile
FROM pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
ENTRYPOINT ["python", "train.py"]
CMD ["--epochs", "3"]
```

**Fix**: none by itself: variables in the line need a shell.

**References**: Dockerfile reference, ENTRYPOINT, shell form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.commands import commands_in, is_training, shell_text
from launcher.rules.written.model import DEFECTS, Finding, Instruction, WrittenFile

CODE = "TL358"
NAME = "entrypoint-eats-arguments"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_USES = re.compile(r"\$(?:[@*]|\{[@*]|[0-9])")


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for the last ENTRYPOINT if it is a shell's text that trains and uses no arguments."""
    last = {each.name: each for each in file.instructions if each.name in {"ENTRYPOINT", "CMD"}}
    each = last.get("ENTRYPOINT")
    text = _text(each) if each is not None else None
    if each is None or text is None or _USES.search(text) or not any(map(is_training, commands_in(text))):
        return
    lost = f"CMD {last['CMD'].value.strip()}" if "CMD" in last else "what stands behind the image in docker run"
    yield Finding(
        Diagnostic(
            CODE,
            f"the ENTRYPOINT is a shell's text, so {lost} is dropped",
            'write the ENTRYPOINT as a JSON list of words, or "$@" at the end of the text behind sh -c',
            why="arguments become $0, $1 … of the text, which doesn't use them",
            severity=SEVERITY,
            span=file.source.span(each.start, each.end),
        ),
        NAME,
    )


def _text(each: Instruction) -> str | None:
    return shell_text(tuple(word.text for word in each.words)) if each.exec_form else each.value
