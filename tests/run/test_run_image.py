"""`trainlaunch run --image I -- COMMAND`: the command in a container, with the caller's folder, user and terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.local.test_run_command import INTERACTIVE
from tests.run.terminal import on_terminal, resize

pytestmark = pytest.mark.docker
SHOWS = """
import json, os, sys
print(json.dumps([sys.argv[1:], os.getcwd(), os.getuid(), sys.stdin.read(), dict(os.environ)]))
print("wrong", file=sys.stderr)
open("made", "w").close()
open(os.path.expanduser("~/cached"), "w").close()
sys.exit(7)
"""


def test_folder_user_words_stdin_and_code_are_the_callers(
    tmp_path: Path, caller: dict[str, str], run_image: list[str]
) -> None:
    """Variables are those that are stated; what it writes is the caller's, and HOME is a folder of ours."""
    folder = tmp_path / "f"
    (folder / "show.py").write_text(SHOWS)
    words = ["--x", "{num_workers}", "a b", ""]
    command = [*run_image, "-e", "GIVEN=1", "-e", "PASSED", "--", "python3", "show.py", *words]
    told = {**os.environ, **caller, "PASSED": "2", "KEPT": "3"}
    ran = subprocess.run(command, cwd=folder, env=told, input=b"typed\n", capture_output=True, check=False)
    assert ran.returncode == 7, ran.stderr
    argv, cwd, uid, typed, inside = json.loads(ran.stdout)
    assert (argv, cwd, uid, typed) == (words, str(folder), os.getuid(), "typed\n")
    assert (inside["GIVEN"], inside["PASSED"], "KEPT" in inside) == ("1", "2", False)
    assert (folder / "made").stat().st_uid == os.getuid()
    assert list((tmp_path / "own/xdg_cache_home").rglob("cached"))
    said = ran.stderr.decode().splitlines()
    assert said.count("wrong") == 1
    assert not [each for each in said if "preflight" in each or "unsized" in each]
    assert "ended with 7" in said[-1]


def test_a_terminal_is_the_commands_own(
    tmp_path: Path, caller: dict[str, str], run_image: list[str], base_image: str
) -> None:
    """As `docker run -it` shows it: size, prompts, a debugger, a bar, Ctrl-C that the script handles; logs have it."""
    folder = tmp_path / "f"
    (folder / "train.py").write_text(INTERACTIVE.replace("END", "sys.exit(5)"))
    bare = ["docker", "run", "-it", "--init", "--rm", f"-v{folder}:{folder}", f"-w{folder}", base_image]
    script = ["python3", "train.py"]
    steps = [(b"name? ", b"bob\n"), (b"(Pdb) ", b"p answer_of(6)\n"), (b"(Pdb) ", b"c\n")]
    steps += [(b"training", resize(20, 77)), (b"50% 77", b"\x03")]
    seen = [on_terminal(each, folder, steps, env=caller) for each in ([*bare, *script], [*run_image, "--", *script])]
    (_, wanted), (code, shown) = seen
    lines = shown.split(b"\r\n")
    ours = [each for each in lines if not each.startswith((b"trainlaunch: ", b"  "))]
    # A signal's key empties the terminal's queue, and its own echo with it where that is still in there.
    assert (code, b"\r\n".join(ours).replace(b"^C", b"")) == (5, wanted.replace(b"^C", b""))
    told = {**os.environ, **caller}
    name = run_image[-1]
    for part in ([], ["--tail", "1"]):
        kept = subprocess.run(
            [sys.executable, "-m", "trainlaunch", "logs", name, *part], env=told, capture_output=True, check=False
        )
        assert kept.stdout.endswith(b"saved\r\n"), kept
        assert (b"got bob" in kept.stdout) == (not part)


def test_ctrl_z_stops_nothing_in_a_container(tmp_path: Path, caller: dict[str, str], run_image: list[str]) -> None:
    """No shell in there would continue it."""
    script = "import time; print('begun', flush=True); time.sleep(1); print('finished')"
    command = [*run_image, "-q", "--", "python3", "-c", script]
    assert on_terminal(command, tmp_path / "f", [(b"begun", b"\x1a")], env=caller) == (0, b"begun\r\n^Zfinished\r\n")


def test_ctrl_c_is_130_and_a_second_one_kills(tmp_path: Path, caller: dict[str, str], run_image: list[str]) -> None:
    """On a terminal, and where stdout is a file and the container has none: SIGINT goes through the engine then."""
    folder = tmp_path / "f"
    (folder / "ends.py").write_text("import sys, time; print('begun', file=sys.stderr, flush=True); time.sleep(60)")
    (folder / "deaf.py").write_text(
        "import os, time, signal; signal.signal(2, lambda *_: os.write(1, b'heard')); print('begun', flush=True)\n"
        "while True: time.sleep(60)"
    )
    ends = [*run_image, "--", "python3", "ends.py"]
    code, shown = on_terminal(ends, folder, [(b"begun", b"\x03")], env=caller)
    assert (code, b"KeyboardInterrupt" in shown, b"cause" in shown) == (130, True, False), shown
    piped = ["sh", "-c", '"$@" >out', "sh", *ends]
    code, shown = on_terminal(piped, folder, [(b"begun", b"\x03")], env=caller)
    assert (code, b"KeyboardInterrupt" in shown) == (130, True), shown

    def again(terminal: int) -> None:
        time.sleep(0.6)  # sooner it would be the same press
        os.write(terminal, b"\x03")

    deaf = [*run_image, "--", "python3", "deaf.py"]
    code, shown = on_terminal(deaf, folder, [(b"begun", b"\x03"), (b"heard", again)], env=caller)
    assert (code, b"Ctrl-C again: killing it" in shown) == (137, True), shown
