"""What a base image lacks that the command needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainlaunch.diagnostics import Severity
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import text_rule
from trainlaunch.rules.sources.instructions import stages
from trainlaunch.rules.sources.programs import Argv
from trainlaunch.rules.sources.source_text import DOCKERFILE, Instruction, SourceText
from trainlaunch.rules.sources.training_commands import argvs_of, commands_in, is_training

_COMPILER = re.compile(
    r"\bgcc|\bg\+\+|\bgxx|build-essential|\bclang|compilers?\b|\bcc\b|python3-(?:pip|dev|full)|devel"
)
_ELSEWHERE = re.compile(r"(?:^|\s)[\w./-]+\.sh\b|\bxargs\b|\.ya?ml\b")
_COMPILES = re.compile(
    r"--(?!(?:no|not|dont|skip|disable|without)[-_])(?:[\w-]*[-_])?compile(?:=(?:true|1|yes|on))?", re.IGNORECASE
)
_OFF = frozenset({"false", "0", "no", "off", "none"})


@text_rule("TL379", Severity.WARNING, DOCKERFILE)
def compiler_missing(file: SourceText) -> Iterator[Problem]:
    """A command compiles its model in an image without a C compiler."""
    every = [*stages(file)]
    if not every:
        return
    first, *rest = every[-1]
    base = first.value.split()[0]
    if _has_compiler(base) or any(_COMPILER.search(each.value) or _may_install(each) for each in rest):
        return
    argvs: list[Argv] = []
    for each in rest:
        if each.name in {"CMD", "ENTRYPOINT"}:
            argvs += argvs_of(tuple(word.text for word in each.words)) if each.exec_form else commands_in(each.value)
    if any(map(_compiles, argvs)):
        yield Problem(
            f"the command compiles its model, and {base} has no C compiler",
            "install gcc (apt-get install -y gcc)" + ", or take the -devel form of the image" * ("cuda" in base),
            "Triton compiles a launcher of each kernel with the image's C compiler, and the first step stops without",
            span=file.source.span(first.start, first.end),
        )


def _has_compiler(base: str) -> bool:
    """Return whether a base image may have a C compiler, as PyTorch's own -runtime images have."""
    name, _, tag = base.removeprefix("docker.io/").removeprefix("library/").partition(":")
    if name == "nvidia/cuda":
        return not ("-runtime-" in tag or "-base-" in tag)
    return not (name == "python" and "slim" in tag)


def _may_install(instruction: Instruction) -> bool:
    """Return whether a step runs a script or reads a list, which may install a compiler."""
    return instruction.name == "RUN" and _ELSEWHERE.search(instruction.value) is not None


def _compiles(argv: Argv) -> bool:
    """Return whether a training command asks for torch.compile by a flag that nothing behind it takes back."""
    at = next((index for index, word in enumerate(argv) if _COMPILES.fullmatch(word)), None)
    if at is None or not is_training(argv):
        return False
    return not {each.lower() for each in argv[at + 1 : at + 2]} & _OFF
