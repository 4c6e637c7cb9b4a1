"""The completion scripts complete in real shells, and know every verb and option of the parser."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import pty
import re
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest
from trainlaunch.cli.arguments.verb_table import VERBS, add_arguments
from trainlaunch.cli.verbs import completion
from trainlaunch.cli.verbs.completion import verbs

WRITERS = {"bash": completion.bash, "zsh": completion.zsh, "fish": completion.fish}
# Text typed before Tab, and what must be offered, and what must not.
OFFERS = [
    ("trainlaunch ", set(VERBS), {"job.yaml", "--target"}),
    ("trainlaunch re", {"render"}, {"up", "plan"}),
    ("trainlaunch render --ta", {"--target"}, {"--set"}),
    ("trainlaunch render --target ", {"docker", "compose", "kubernetes", "all"}, {"job.yaml", "--set"}),
    ("trainlaunch render job.yaml --target ku", {"kubernetes"}, {"docker"}),
    ("trainlaunch plan ", {"job.yaml", "other.yml", "folder/"}, {"notes.txt", "train.py", "mnist"}),
    ("trainlaunch plan fol", {"folder/"}, {"job.yaml"}),
    ("trainlaunch plan folder/", {"folder/inner.yaml"}, {"job.yaml"}),
    ("trainlaunch init ", {"train.py"}, {"job.yaml", "notes.txt"}),
    ("trainlaunch render job.yaml --write-to ", {"folder/"}, {"job.yaml", "notes.txt"}),
    ("trainlaunch init --write-to n", {"notes.txt"}, {"train.py"}),
    ("trainlaunch completion ", {"bash", "zsh", "fish"}, {"job.yaml"}),
    ("trainlaunch explain TL20", {"TL201", "TL209"}, {"TL101"}),
    ("trainlaunch explain shm-exh", {"shm-exhausted", "shm-exhausted-hang"}, {"TL605"}),
    ("trainlaunch plan --name ", set(), {"job.yaml", "docker"}),
    ("trainlaunch down ", {"job.yaml", "folder/", "mnist", "3f9a2c11"}, {"notes.txt"}),
    ("trainlaunch logs 3f", {"3f9a2c11"}, {"mnist", "job.yaml"}),
]
ZSH_SETUP = """
PS1='' PS2=''
autoload -U compinit && compinit -u -D
source ../script.zsh
compadd() {
    local -a offered
    builtin compadd -O offered "$@"
    print -rl -- 'OFFER:'${^offered} >> ../offers
    builtin compadd "$@"
}
finish() { print END >> ../offers; BUFFER='' }
zle -N finish
bindkey '^X' finish
bindkey '^I' complete-word
"""
RUNS = '#!/bin/sh\n[ "$*" = "ps --output names" ] && printf "mnist\\n3f9a2c11\\n"\n'


def need(shell: str) -> str:
    """Return the shell's path; skip with the reason where this machine has none."""
    path = shutil.which(shell)
    if path is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{shell} is missing, and CI may not skip its tests", pytrace=False)
        pytest.skip(f"this machine has no {shell}; install it to test its completion")
    return path


@cache
def script(shell: str) -> str:
    """Return a shell's completion script."""
    return WRITERS[shell](tuple(verbs()))


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """Return a folder with files of several kinds, and the scripts in scripts/."""
    folder = tmp_path / "work"
    (folder / "folder").mkdir(parents=True)
    for name in ("job.yaml", "other.yml", "notes.txt", "train.py", "folder/inner.yaml", "two words.yaml"):
        (folder / name).write_text("")
    for shell in WRITERS:
        (tmp_path / f"script.{shell}").write_text(script(shell))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "trainlaunch").write_text(RUNS)
    (tmp_path / "bin" / "trainlaunch").chmod(0o755)
    return folder


def bash_offers(typed: Sequence[str], folder: Path) -> list[set[str]]:
    """Return what bash's function puts into COMPREPLY for each text."""
    asked = "".join(
        f"COMP_WORDS=({' '.join(word or chr(39) * 2 for word in each.split(' '))}); "
        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _trainlaunch; "
        'printf "%s\\n" "${COMPREPLY[@]}" END; '
        for each in typed
    )
    done = run([need("bash"), "--norc", "-c", f"source ../script.bash; {asked}"], folder)
    return [
        {f"{each}/" if (folder / each).is_dir() and each else each for each in part.splitlines()}
        for part in done.split("END\n")[:-1]
    ]


def fish_offers(typed: Sequence[str], folder: Path) -> list[set[str]]:
    """Return what fish's own `complete -C` offers for each text."""
    asked = "".join(f"complete -C '{each}'; echo END; " for each in typed)
    done = run([need("fish"), "--no-config", "-c", f"source ../script.fish; {asked}"], folder)
    return [{line.split("\t")[0] for line in part.splitlines()} for part in done.split("END\n")[:-1]]


def zsh_offers(typed: Sequence[str], folder: Path) -> list[set[str]]:
    """Return what a zsh at a terminal adds as matches for each text: compadd is asked where it stores them."""
    (folder.parent / "setup.zsh").write_text(ZSH_SETUP)
    shell = Terminal([need("zsh"), "-f", "-i"], folder)
    shell.type("source ../setup.zsh; print > ../ready\n")
    shell.until(folder.parent / "ready")
    for number, each in enumerate(typed):
        shell.type(f"{each}\t\x18")
        shell.until(folder.parent / "offers", "END\n", number + 1)
    shell.close()
    parts = (folder.parent / "offers").read_text().split("END\n")[:-1]
    return [_zsh_words(each, part, folder) for each, part in zip(typed, parts, strict=True)]


def _zsh_words(typed: str, part: str, folder: Path) -> set[str]:
    prefix = typed.rpartition(" ")[2].rpartition("/")
    start = prefix[0] + prefix[1]
    found = re.findall(r"^OFFER:(.+)$", part, re.M)
    return {f"{start}{each}/" if (folder / start / each).is_dir() else f"{start}{each}" for each in found}


def environment(folder: Path) -> dict[str, str]:
    """Return variables without the user's own settings, and a `trainlaunch` whose `ps` has a run."""
    path = f"{folder.parent / 'bin'}:{os.environ['PATH']}"
    return {**os.environ, "HOME": str(folder.parent), "LC_ALL": "C.UTF-8", "TERM": "dumb", "PATH": path}


def run(argv: list[str], folder: Path) -> str:
    """Run a shell in a folder, without the user's own settings, and return its stdout."""
    done = subprocess.run(
        argv, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


class Terminal:
    """A shell on a pseudo-terminal."""

    def __init__(self, argv: list[str], folder: Path) -> None:
        self._main, inner = pty.openpty()
        self._process = subprocess.Popen(
            argv, cwd=folder, env=environment(folder), stdin=inner, stdout=inner, stderr=inner, start_new_session=True
        )
        os.close(inner)
        self.seen = b""

    def type(self, text: str) -> None:
        """Type text."""
        os.write(self._main, text.encode())

    def until(self, path: Path, text: str = "", times: int = 0) -> None:
        """Wait until a file is there and holds a text so many times; what the shell prints is read meanwhile."""
        deadline = time.monotonic() + 60
        while not (path.exists() and path.read_text().count(text) >= times):
            assert time.monotonic() < deadline, f"{path.name} never came; the shell printed {self.seen!r}"
            if select.select([self._main], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self._main, 65536)

    def close(self) -> None:
        """End the shell."""
        self._process.kill()
        self._process.wait()
        os.close(self._main)


@pytest.mark.parametrize("offers", [bash_offers, zsh_offers, fish_offers], ids=["bash", "zsh", "fish"])
def test_a_shell_offers_what_fits(workplace: Path, offers: Callable[[Sequence[str], Path], list[set[str]]]) -> None:
    """Verbs, options, their choices, and only the files that an argument takes."""
    answers = offers([typed for typed, _, _ in OFFERS], workplace)
    wrong = [
        (typed, found)
        for (typed, offered, absent), found in zip(OFFERS, answers, strict=True)
        if not offered <= found or absent & found
    ]
    assert wrong == []


def test_bash_completes_after_an_equals_sign(workplace: Path) -> None:
    """Bash splits --target=ku into three words."""
    text = (
        "source ../script.bash; COMP_WORDS=(trainlaunch up --target = ku); COMP_CWORD=4; _trainlaunch; "
        'echo "${COMPREPLY[@]}"'
    )
    assert run([need("bash"), "--norc", "-c", text], workplace) == "kubernetes\n"


def test_bash_keeps_a_name_with_a_space_whole(workplace: Path) -> None:
    """One candidate, which readline then quotes."""
    assert "two words.yaml" in bash_offers(["trainlaunch plan tw"], workplace)[0]


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_option_of_the_parser_is_known(verb: str) -> None:
    """An option that someone adds is completed without another change."""
    parser = argparse.ArgumentParser()
    add_arguments(parser, importlib.import_module(f"trainlaunch.cli.verbs.{verb}").USAGE.arguments)
    flags = {flag for action in parser._actions for flag in action.option_strings}
    known = next(each for each in verbs() if each.name == verb)
    assert {flag for option in known.options for flag in option.flags} == flags
    assert [each.summary for each in known.arguments if not each.summary and each.takes_value] == []


@pytest.mark.parametrize("shell", sorted(WRITERS))
def test_the_script_is_well_formed(workplace: Path, shell: str) -> None:
    """The shell itself reads it without a word, and shellcheck finds nothing in bash's."""
    path = f"../script.{shell}"
    run([need(shell), "-n", path], workplace)
    if shell == "bash":
        checked = subprocess.run(
            [need("shellcheck"), "--exclude=SC2207", path], cwd=workplace, capture_output=True, text=True, check=False
        )
        assert checked.stdout == ""


def test_completion_prints_the_script(
    workplace: Path, trainlaunch: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """`trainlaunch completion SHELL` is the script and nothing else."""
    for shell in WRITERS:
        done = trainlaunch("completion", shell)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == script(shell)
