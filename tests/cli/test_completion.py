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
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.cli.arguments.grammar import verbs
from trainlaunch.cli.arguments.verb_table import VERBS
from trainlaunch.cli.verbs import completion

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
finish() { print END >> ../offers; exit }
zle -N finish
bindkey '^X' finish
bindkey '^I' complete-word
"""
RUNS = '#!/bin/sh\n[ "$*" = "ps --output names" ] && printf "mnist\\n3f9a2c11\\n"\n'
IDS = [typed.removeprefix("trainlaunch").strip() or "verbs" for typed, _, _ in OFFERS]


def need(shell: str) -> str:
    """Return the shell's path; skip with the reason where this machine has none."""
    path = shutil.which(shell)
    if path is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{shell} is missing, and CI may not skip its tests", pytrace=False)
        pytest.skip(f"this machine has no {shell}; install it to test its completion")
    return path


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """Return a folder with files of several kinds, and the scripts in scripts/."""
    folder = tmp_path / "work"
    (folder / "folder").mkdir(parents=True)
    for name in ("job.yaml", "other.yml", "notes.txt", "train.py", "folder/inner.yaml", "two words.yaml"):
        (folder / name).write_text("")
    for shell, write in WRITERS.items():
        (tmp_path / f"script.{shell}").write_text(write(tuple(verbs())))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "trainlaunch").write_text(RUNS)
    (tmp_path / "bin" / "trainlaunch").chmod(0o755)
    return folder


def bash_offers(typed: str, folder: Path) -> set[str]:
    """Return what bash's function puts into COMPREPLY."""
    words = " ".join(each or "''" for each in typed.split(" "))
    text = (
        f"source ../script.bash; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _trainlaunch; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = run([need("bash"), "--norc", "-c", text], folder)
    return {f"{each}/" if (folder / each).is_dir() and each else each for each in done.splitlines()}


def fish_offers(typed: str, folder: Path) -> set[str]:
    """Return what fish's own `complete -C` offers."""
    done = run([need("fish"), "--no-config", "-c", f"source ../script.fish; complete -C '{typed}'"], folder)
    return {line.split("\t")[0] for line in done.splitlines()}


def zsh_offers(typed: str, folder: Path) -> set[str]:
    """Return what a zsh at a terminal adds as matches: compadd is asked where it stores them."""
    (folder.parent / "setup.zsh").write_text(ZSH_SETUP)
    shell = Terminal([need("zsh"), "-f", "-i"], folder)
    shell.type("source ../setup.zsh; print > ../ready\n")
    shell.until(folder.parent / "ready")
    shell.type(f"{typed}\t\x18")
    shell.until(folder.parent / "offers", "END")
    shell.close()
    found = re.findall(r"^OFFER:(.+)$", (folder.parent / "offers").read_text(), re.M)
    prefix = typed.rpartition(" ")[2].rpartition("/")
    start = prefix[0] + prefix[1]
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

    def until(self, path: Path, text: str = "") -> None:
        """Wait until a file is there and holds a text; what the shell prints is read meanwhile."""
        deadline = time.monotonic() + 60
        while not (path.exists() and text in path.read_text()):
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
@pytest.mark.parametrize(("typed", "offered", "absent"), OFFERS, ids=IDS)
def test_a_shell_offers_what_fits(
    workplace: Path, offers: Callable[[str, Path], set[str]], typed: str, offered: set[str], absent: set[str]
) -> None:
    """Verbs, options, their choices, and only the files that an argument takes."""
    found = offers(typed, workplace)
    assert offered <= found
    assert absent & found == set()


def test_bash_completes_after_an_equals_sign(workplace: Path) -> None:
    """Bash splits --target=ku into three words."""
    text = (
        "source ../script.bash; COMP_WORDS=(trainlaunch up --target = ku); COMP_CWORD=4; _trainlaunch; "
        'echo "${COMPREPLY[@]}"'
    )
    assert run([need("bash"), "--norc", "-c", text], workplace) == "kubernetes\n"


def test_bash_keeps_a_name_with_a_space_whole(workplace: Path) -> None:
    """One candidate, which readline then quotes."""
    assert "two words.yaml" in bash_offers("trainlaunch plan tw", workplace)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_option_of_the_parser_is_known(verb: str) -> None:
    """An option that someone adds is completed without another change."""
    parser = argparse.ArgumentParser()
    importlib.import_module(f"trainlaunch.cli.verbs.{verb}").add_arguments(parser)
    flags = {flag for action in parser._actions for flag in action.option_strings}
    known = next(each for each in verbs() if each.name == verb)
    assert {flag for option in known.options for flag in option.flags} == flags
    assert [each.summary for each in known.arguments if not each.summary and each.takes_value] == []


@pytest.mark.parametrize("shell", sorted(WRITERS))
def test_the_script_is_well_formed(workplace: Path, shell: str) -> None:
    """The shell itself reads it without a word, and shellcheck finds nothing in bash's."""
    script = f"../script.{shell}"
    run([need(shell), "-n", script], workplace)
    if shell == "bash":
        checked = subprocess.run(
            [need("shellcheck"), "--exclude=SC2207", script], cwd=workplace, capture_output=True, text=True, check=False
        )
        assert checked.stdout == ""


def test_completion_prints_the_script(
    workplace: Path, trainlaunch: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """`trainlaunch completion SHELL` is the script and nothing else."""
    for shell in WRITERS:
        done = trainlaunch("completion", shell)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == (workplace.parent / f"script.{shell}").read_text()
