"""Jobs of a batch system whose containers have the node's /dev/shm, and nodes that would each be alone."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from trainlaunch.diagnostics import Severity
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import text_rule
from trainlaunch.rules.sources.programs import OTHER, SERVING, bare, program, work_of
from trainlaunch.rules.sources.source_text import SHELL, SourceText, SourceWord
from trainlaunch.rules.sources.training_commands import argvs_of, is_training

_DIRECTIVE = re.compile(r"^#SBATCH[ \t]+(--container-(?:image|name)\b\S*)", re.MULTILINE)
_OPTION = re.compile(r"--container-(?:image|name)(?:=.*)?")
_FALLBACK = re.compile(
    r"(?:^|[\s;])(\w+)=\"?\$\((?:[^()\n]|\([^()\n]*\))*\|\|[ ]*echo[ ]+[\"']?(localhost|127\.0\.0\.1)[\"']?[ ]*\)",
    re.MULTILINE,
)
_ONE_NODE = re.compile(r"\btorchrun\b|\btorch\.distributed\.(?:run|launch)\b")  # unless they are told otherwise
_MEETS = re.compile(r"--(?:rdzv[-_]endpoint|master[-_]addr)(?:=.*)?")


@text_rule("TL377", Severity.INFO, SHELL)
def shm_of_node(file: SourceText) -> Iterator[Problem]:
    """A container of pyxis trains, which has the /dev/shm of the node that it runs on."""
    directive = _DIRECTIVE.search(file.text)
    for command in file.commands if "--container-" in file.text else ():
        words = tuple(each.text for each in command)
        runs = bool(words) and posixpath.basename(words[0]) == "srun"
        option = next((each for each in command if runs and _OPTION.fullmatch(each.text)), None)
        shell = runs and program(words).name in {"bash", "sh"}
        shell = shell and any(work_of(each)[0] not in {OTHER, SERVING} for each in argvs_of(bare(words)))
        trains = is_training(words) or work_of(words)[1] or shell
        if (option is None and directive is None) or not trains:
            continue
        start, end = (option.start, option.end) if option is not None else (directive.span(1) if directive else (0, 0))
        yield Problem(
            "/dev/shm in a container of pyxis is the node's: its size is unknown, and stale files may be in it",
            "look at df /dev/shm on the node before the workers are counted there",
            "enroot binds the node's /dev/shm and has no option for its size; --mem counts what a job puts there",
            span=file.source.span(start, end),
        )
        return


@text_rule("TL378", Severity.INFO, SHELL)
def rendezvous_falls_back(file: SourceText) -> Iterator[Problem]:
    """Where ranks meet is the own node as soon as the lookup of another one fails."""
    for match in _FALLBACK.finditer(file.text):
        if any(_meets_at(command, match[1]) for command in file.commands):
            yield Problem(
                f"{match[1]} is {match[2]} where the lookup fails, and each node is then alone with its own ranks",
                f"leave out `|| echo {match[2]}`, and stop where {match[1]} is empty",
                "each node waits for the others at its own address until the rendezvous times out, or trains alone",
                span=file.source.span(match.start(1), match.end()),
            )


def _meets_at(command: tuple[SourceWord, ...], name: str) -> bool:
    """Return whether a command's ranks meet at an address that a variable names, and may be of several nodes."""
    words = [each.text for each in command]
    text = " ".join(words)
    if not is_training(tuple(words)) or re.search(r"--standalone|--nnodes[= ]1(?::1)?(?: |$)", text):
        return False
    if _ONE_NODE.search(text) and "nnodes" not in text:
        return False
    for index, word in enumerate(words):
        if _MEETS.fullmatch(word):
            value = word.partition("=")[2] or " ".join(words[index + 1 : index + 2])
            return re.search(rf"\$\{{?{name}\b", value) is not None
    return False
