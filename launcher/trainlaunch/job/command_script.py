"""Which Python file a job's command runs, as its text tells, and where that file lies on this host."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from trainlaunch.job.host_paths import host_path, is_mapped
from trainlaunch.job.shell_commands import commands_of, program_at
from trainlaunch.job.spec import JobSpec

_PYTHON = re.compile(r"python[\d.]*")
_PYTHON_VALUES = frozenset({"-W", "-X", "--check-hash-based-pycs"})
_LAUNCHERS = frozenset({"torchrun", "deepspeed", "accelerate-launch", "ray", "composer"})
LAUNCHING_MODULES = frozenset(
    {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner"}
)
# Modules of Python that run the script behind them.
_RUNNING_MODULES = LAUNCHING_MODULES | {
    *("cProfile", "profile", "pdb", "debugpy", "trace", "coverage", "torch.utils.bottleneck", "viztracer")
}
_CHANGES_FOLDER = frozenset({"-C", "--chdir", "-D", "--cwd", "--directory"})  # options of programs in front of Python
_NO_PYTHON = frozenset({"--no-python", "--no_python"})  # the program behind is no script of Python


class CommandScript(NamedTuple):
    """The Python file that a command runs: `name` is a path or, of `python -m`, a module; `at` is its word's index."""

    name: str
    at: int
    module: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The paths that it may be, seen from the folder that the command runs in."""
        if not self.module:
            return (self.name,)
        path = self.name.replace(".", "/")
        return f"{path}.py", f"{path}/__main__.py"


def command_script(words: Sequence[str]) -> CommandScript | None:
    """Return the script of one command, behind wrappers and launchers of ranks; None where the text tells none."""
    at = program_at(words)
    if at is None:
        return None
    name = posixpath.basename(words[at])
    if name.endswith(".py"):
        return CommandScript(words[at], at)
    if name in _LAUNCHERS or (name == "accelerate" and words[at + 1 : at + 2] == ["launch"]):
        return launched_script(words, at + 1)
    return script_of_python(words, at + 1) if _PYTHON.fullmatch(name) else None


def script_of_python(words: Sequence[str], at: int) -> CommandScript | None:
    """Return what Python itself is told to run by the words from `at` on."""
    while at < len(words):
        word = words[at]
        if word == "-m":
            if at + 1 < len(words) and words[at + 1] in _RUNNING_MODULES:
                return launched_script(words, at + 2)
            return CommandScript(words[at + 1], at + 1, module=True) if at + 1 < len(words) else None
        if not word.startswith("-"):
            return CommandScript(word, at)
        if word in {"-", "-c"}:
            return None
        at += 2 if word in _PYTHON_VALUES else 1
    return None


def launched_script(words: Sequence[str], at: int) -> CommandScript | None:
    """Return the first file that a launcher may run by the words from `at` on; its options' values are none."""
    for index in range(at, len(words)):
        if words[index] in {"-m", "--module"} and index + 1 < len(words) and not words[index + 1].startswith("-"):
            return CommandScript(words[index + 1], index + 1, module=True)
        if words[index].endswith(".py") and not words[index].startswith("-"):
            return CommandScript(words[index], index)
    return None


def job_commands(job: JobSpec) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command that a job's own text runs, those of `sh -c` and `script` too."""
    words = job.command or ()
    text = next((words[at + 1] for at, each in enumerate(words[:-1]) if re.fullmatch(r"-[a-z]*c", each)), None)
    shell = bool(words) and re.fullmatch(r"(?:ba|da|a|z|k)?sh", posixpath.basename(words[0])) is not None
    if words and not (shell and text):
        yield words
    for each in (text if shell else None, job.script):
        yield from (command.words for command in commands_of(each or ""))


def script_on_this_machine(job: JobSpec) -> Path | None:
    """Return the file that a job's command runs, where it lies in a folder of this host that the job mounts.

    None where the text names none, or where it is in the image or on a PVC. Nothing is read.
    """
    found = next(filter(None, map(command_script, job_commands(job))), None)
    return next((each for each, _ in _places(job, found) if os.path.isfile(each)), None) if found else None  # noqa: PTH113 - may raise


def script_not_in_mount(job: JobSpec) -> tuple[Path, str] | None:
    """Return where a job's command has its script on this host and the path that it names, if nothing is there.

    None where another mount or a link may have it, or something in front of it may change into another folder.
    """
    words = job.command or ()
    found = command_script(words)
    if found is None or found.module or not found.name.endswith(".py") or not _is_certain(words, found):
        return None
    if job.image_entrypoint and not found.name.startswith("/"):
        return None
    at = posixpath.normpath(posixpath.join(job.working_dir or "/", found.name))
    hidden = (each.target for each in job.mounts if each.type not in {"bind", "code"})
    if any(at.startswith(posixpath.join(posixpath.normpath(each), "")) for each in hidden):
        return None
    for path, mounted in _places(job, found):
        if mounted is None or not os.path.isdir(mounted) or not _is_missing(path):  # noqa: PTH112 - may raise
            continue
        if not any(each.is_symlink() for each in path.parents if each.is_relative_to(mounted) and each != mounted):
            return path, found.name
    return None


def _is_missing(path: Path) -> bool:
    """Whether nothing is there; what this user may not look into is unknown."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _is_certain(words: Sequence[str], script: CommandScript) -> bool:
    """Whether a script's word is what runs, seen from working_dir, and no value of an option or argument of another."""
    before = words[: script.at]
    first = program_at(words) or 0
    if any(each.partition("=")[0] in _CHANGES_FOLDER for each in before[:first]):
        return False
    if posixpath.basename(words[first]) == "ray" or not _NO_PYTHON.isdisjoint(before):
        return False
    plain = [at for at in range(first + 1, script.at) if not words[at].startswith("-")]
    # Behind an option without `=` a word may be its value; `launch` is accelerate's.
    return all((words[at - 1].startswith("-") and "=" not in words[at - 1]) or words[at] == "launch" for at in plain)


def _places(job: JobSpec, script: CommandScript) -> Iterator[tuple[Path, Path | None]]:
    """Yield the files of this host that a script may be, with the folder that the job mounts, if one is."""
    folder = Path(job.path).absolute().parent
    mounted = (each for each in job.mounts if each.type in {"bind", "code"} and each.source is not None)
    binds = {each.target: os.path.normpath(folder / str(each.source)) for each in mounted}
    on_host = not job.target_record.starts_container
    inside = job.working_dir or (str(folder) if on_host else None)
    for name in script.files:
        path = name if name.startswith("/") else inside and posixpath.join(inside, name)
        if path is None:
            continue
        path = posixpath.normpath(path)
        here = host_path(path, binds)
        is_mounted = any(is_mapped(path, each) for each in binds)  # maybe at the same path
        if is_mounted or on_host:
            source = next(
                (each for each in sorted(binds.values(), key=len, reverse=True) if here.startswith(each)), None
            )
            yield Path(here), Path(source) if source is not None and is_mounted else None
