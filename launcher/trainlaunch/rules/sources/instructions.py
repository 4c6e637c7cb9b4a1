"""Instructions of a Dockerfile: the stages that they make, what one has a shell run, and who gets a command."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from trainlaunch.diagnostics import Severity
from trainlaunch.rules.sources.near_files import near_file
from trainlaunch.rules.sources.near_scripts import text_with_modules
from trainlaunch.rules.sources.programs import Argv, program
from trainlaunch.rules.sources.source_text import Instruction, SourceContainer, SourceText, context_of
from trainlaunch.rules.sources.training_commands import SHELLS, shell_text

_NO_ENTRYPOINT = re.compile(
    r"(?:docker\.io/)?(?:library/)?(?:python|ubuntu|debian|nvidia\/cuda|pytorch/pytorch|continuumio/\w+)(?:[:@]|$)"
)

_WORD = re.compile(r'"([^"]*)"')
_PYTHON = re.compile(r"python[\d.]*")
_HANDS_ON = re.compile(r"\bargv\b|REMAINDER|subprocess|Popen|\bexec|\bos\.(?:system|spawn)|runpy")


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


def process_of(file: SourceText, stage: list[Instruction]) -> dict[str, Instruction]:
    """Return the CMD and the ENTRYPOINT of a stage: the last of each, and none for images that are built of it."""
    return {each.name: each for each in stage if each.name in {"CMD", "ENTRYPOINT"} and not is_for_children(file, each)}


def is_for_children(file: SourceText, each: Instruction) -> bool:
    """Return whether an instruction is carried out in builds of what is made from the image."""
    line = file.text[file.text.rfind("\n", 0, each.start) + 1 : each.start]
    return "ONBUILD" in line.upper()


def is_of_posix_shell(stage: list[Instruction]) -> bool:
    """Return whether a shell of POSIX reads what a stage's instructions have in their shell form."""
    shells = [each.value for each in stage if each.name == "SHELL"]
    own = not shells or not SHELLS.isdisjoint(map(posixpath.basename, _WORD.findall(shells[-1])))
    return own and "mcr.microsoft.com/windows" not in stage[0].value


def without_entrypoint(image: str) -> Severity:
    """Return how grave a command in one word is: whether an image's ENTRYPOINT takes it apart is its own business."""
    return Severity.WARNING if _NO_ENTRYPOINT.match(image) else Severity.INFO


def instruction_text(each: Instruction) -> str | None:
    """Return what an instruction has a shell run; None where it runs a program itself."""
    return shell_text(tuple(word.text for word in each.words)) if each.exec_form else each.value


def script_given_command(container: SourceContainer) -> str:
    """Return the script of the image's ENTRYPOINT that gets a whole command as its arguments; empty for none.

    Only where it lies there, and starts no other program. Python alone takes the command's program for a script.
    """
    image, own = container.built, container.argv
    if image is None or container.workload.entrypoint is not None or not is_command(own):
        return ""
    first, started = posixpath.basename("".join(image.entrypoint[:1])), program(image.entrypoint)
    if _PYTHON.fullmatch(first) and all(re.fullmatch(r"-[uBIOS]+", each) for each in image.entrypoint[1:]):
        return first
    if not _PYTHON.fullmatch(first) or started.launched or not started.script.endswith(".py"):
        return ""
    path = near_file(container.workload.span.file, started.script, context_of(container))
    text = text_with_modules(path) if path is not None else None
    return "" if text is None or _HANDS_ON.search(text) else started.script


def is_command(argv: Argv) -> bool:
    """Return whether words begin with a shell, a launcher, or Python and a script."""
    name = posixpath.basename("".join(argv[:1]))
    return name in SHELLS or name == "torchrun" or (_PYTHON.fullmatch(name) is not None and program(argv).script != "")
