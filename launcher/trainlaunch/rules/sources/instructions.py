"""Instructions of a Dockerfile: the stages that they make, and what one has a shell run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainlaunch.diagnostics import Severity
from trainlaunch.rules.sources.source_text import Instruction, SourceText
from trainlaunch.rules.sources.training_commands import shell_text

_NO_ENTRYPOINT = re.compile(
    r"(?:docker\.io/)?(?:library/)?(?:python|ubuntu|debian|nvidia\/cuda|pytorch/pytorch|continuumio/\w+)(?:[:@]|$)"
)


def stages(file: SourceText) -> Iterator[list[Instruction]]:
    """Yield the instructions of each stage of a Dockerfile, its FROM first."""
    stage: list[Instruction] = []
    for each in file.instructions:
        if each.name == "FROM" and each.value.strip():
            if stage:
                yield stage
            stage = [each]
        elif stage:
            stage.append(each)
    if stage:
        yield stage


def without_entrypoint(image: str) -> Severity:
    """Return how grave a command in one word is: whether an image's ENTRYPOINT takes it apart is its own business."""
    return Severity.WARNING if _NO_ENTRYPOINT.match(image) else Severity.INFO


def instruction_text(each: Instruction) -> str | None:
    """Return what an instruction has a shell run; None where it runs a program itself."""
    return shell_text(tuple(word.text for word in each.words)) if each.exec_form else each.value
