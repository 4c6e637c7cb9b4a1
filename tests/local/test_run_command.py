"""`trainlaunch run -- COMMAND` on this host: the bare command, told apart by nothing that the command can see."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from trainlaunch.init.command_text import with_loader_fields
from trainlaunch.init.loader_text import SAMPLE

from tests.conftest import ROOT, Runs
from tests.run.terminal import Act, on_terminal, resize

RUN = [sys.executable, "-m", "trainlaunch", "run"]
SHOWS = "import json, os, sys; print(json.dumps([sys.argv[1:], os.getcwd(), sorted(os.environ), sys.stdin.read()]))"
# A Docker client tells the size after the start, perhaps twice; a signal may come inside its own handler.
INTERACTIVE = """
import os, signal, sys, time
while not os.get_terminal_size().columns: time.sleep(0.01)
shown = os.get_terminal_size().columns
def bar(*_):
    global shown
    last, shown = shown, os.get_terminal_size().columns
    if shown != last: os.write(2, f"\\r 50% {shown}".encode())
print([os.isatty(each) for each in range(3)], tuple(os.get_terminal_size()), flush=True)
print("got", input("name? "), flush=True)
import pdb; pdb.Pdb(nosigint=True).set_trace()
answer = 42
signal.signal(signal.SIGWINCH, bar)
try:
    print("training", flush=True)
    while True: time.sleep(0.05)
except KeyboardInterrupt:
    print("saved", flush=True)
END
"""


@pytest.fixture
def env(state: Path) -> dict[str, str]:
    """Return what a process needs to run this checkout with the test's own state."""
    return {"PYTHONPATH": str(ROOT / "launcher"), "XDG_STATE_HOME": str(state.parents[1])}


def bare_and_run(
    command: list[str], folder: Path, env: dict[str, str], stdin: bytes
) -> list[subprocess.CompletedProcess[bytes]]:
    """Run a command alone, and by `run`."""
    told = {**os.environ, **env}
    return [
        subprocess.run(each, cwd=folder, env=told, input=stdin, capture_output=True, check=False, timeout=60)
        for each in (command, [*RUN, "--", *command])
    ]


def test_words_folder_environment_stdin_and_code_are_the_bare_commands(tmp_path: Path, env: dict[str, str]) -> None:
    """A word that looks like a token is the script's own; what is added to the environment is ours or said."""
    words = [
        "--x",
        "{num_workers}",
        "{{num_workers}}",
        "{num_worker}",
        "a={{{batch_size}}}",
        "a b",
        "",
        "$HOME",
        "--",
        "-d",
    ]
    script = f"{SHOWS}; print('wrong', file=sys.stderr); sys.exit(7)"
    bare, run = bare_and_run(["python3", "-c", script, *words], tmp_path, env, b"typed\n")
    (argv, folder, names, typed), before = json.loads(run.stdout), json.loads(bare.stdout)
    assert (run.returncode, [argv, folder, typed]) == (7, [before[0], before[1], before[3]])
    added = {each for each in names if each not in before[2]}
    said = run.stderr.decode()
    unsaid = {each for each in added if f"{each}=" not in said and not each.startswith("TRAINLAUNCH")}
    assert unsaid <= {"TORCHINDUCTOR_COMPILE_THREADS", "PWD", "OLDPWD"}
    assert set(before[2]) <= set(names)
    lines = [each for each in said.splitlines() if each != "wrong"]
    assert lines[0].startswith("trainlaunch: run ")
    assert "/dev/shm" in lines[0]
    assert lines[-1].startswith("trainlaunch: run ")
    assert "ended with 7" in lines[-1]
    assert not [each for each in ("unsized", "need unknown", "preflight") if each in said]


def test_a_command_that_is_not_there_ends_as_in_a_shell(tmp_path: Path, env: dict[str, str]) -> None:
    """trainlaunch's own environment is no place to look for it."""
    told = {**os.environ, **env, "PATH": "/usr/sbin:/bin"}
    ran = subprocess.run(
        [*RUN, "-q", "--", "no-such-program"], cwd=tmp_path, env=told, capture_output=True, check=False
    )
    assert ran.returncode == 127


def test_a_terminal_is_the_commands_own(tmp_path: Path, env: dict[str, str]) -> None:
    """Size, prompts, a debugger, a bar on stderr, Ctrl-C as SIGINT that the script may handle; the log has it all."""
    (tmp_path / "train.py").write_text(INTERACTIVE.replace("END", "sys.exit(5)"))
    steps = [
        (b"name? ", b"bob\n"),
        (b"(Pdb) ", b"p answer_of(6)\n"),
        (b"(Pdb) ", b"c\n"),
        (b"training", resize(20, 77)),
    ]
    steps += [(b"50% 77", b"\x03")]
    seen = [
        on_terminal(each, tmp_path, steps, env=env)
        for each in (["python3", "train.py"], [*RUN, "--", "python3", "train.py"])
    ]
    (bare_code, bare), (code, shown) = seen
    ours = [
        each for each in shown.split(b"\r\n") if not each.startswith(b"trainlaunch: ") and not each.startswith(b"  ")
    ]
    assert (code, b"\r\n".join(ours)) == (bare_code, bare)
    (log,) = (tmp_path / "state").rglob("log")
    assert b"50% 77" in log.read_bytes()


def test_a_redirected_stderr_has_the_commands_own_alone(tmp_path: Path, env: dict[str, str]) -> None:
    """Nor is the beginning of what its terminal shows held back, as a prompt's, because it may be ours."""
    script = "import sys; print('wrong', file=sys.stderr); print('t', end='', flush=True); input(); print('tr', end='')"
    words = [*RUN, "-q", "--", "python3", "-c", script]
    code, shown = on_terminal(["sh", "-c", f"{shlex.join(words)} 2>errors"], tmp_path, [(b"t", b"\n")], env=env)
    assert (code, shown, (tmp_path / "errors").read_text()) == (0, b"t\r\ntr", "wrong\n")


def test_the_code_is_the_commands_also_where_its_folder_is_gone(tmp_path: Path, env: dict[str, str]) -> None:
    """What is said at the end may need it."""
    folder = tmp_path / "gone"
    folder.mkdir()
    (folder / "train.py").write_text("import os, shutil; shutil.rmtree(os.getcwd())")
    told = {**os.environ, **env}
    done = subprocess.run([*RUN, "--", "python3", "train.py"], cwd=folder, env=told, capture_output=True, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr


def test_ctrl_c_is_130_and_a_second_one_kills(tmp_path: Path, env: dict[str, str]) -> None:
    """A script that doesn't handle it ends by it; one that never ends is killed."""
    (tmp_path / "ends.py").write_text("import time; print('begun', flush=True); time.sleep(60)")
    (tmp_path / "deaf.py").write_text(
        "import os, time, signal; signal.signal(2, lambda *_: os.write(1, b'heard')); print('begun', flush=True)\n"
        "while True: time.sleep(60)"
    )
    code, shown = on_terminal([*RUN, "--", "python3", "ends.py"], tmp_path, [(b"begun", b"\x03")], env=env)
    assert (code, b"KeyboardInterrupt" in shown, b"cause" in shown) == (130, True, False)

    def again(terminal: int) -> None:
        time.sleep(0.6)  # sooner it would be the same press
        os.write(terminal, b"\x03")

    steps = [(b"begun", b"\x03"), (b"heard", again)]
    code, shown = on_terminal([*RUN, "--", "python3", "deaf.py"], tmp_path, steps, env=env)
    assert code == 137
    assert b"Ctrl-C again: killing it" in shown


def test_ctrl_z_stops_it_and_fg_lets_it_go_on(tmp_path: Path, env: dict[str, str]) -> None:
    """As a shell's job: the script stands still until then."""
    (tmp_path / "ticks.py").write_text(
        "import os, time; print('begun', flush=True)\n"
        "for _ in range(20): os.write(1, b'.'); open('ticks', 'a').write('.'); time.sleep(0.1)\n"
        "print('fin' 'ished')"
    )
    sizes = []

    def look(terminal: int) -> None:
        for _ in range(2):
            sizes.append((tmp_path / "ticks").stat().st_size)
            time.sleep(0.5)
        os.write(terminal, b"fg\n")

    line = shlex.join([*RUN, "-q", "--", "python3", "ticks.py"]).encode() + b"\n"
    steps: list[tuple[bytes, Act]] = [(b"bash-", line), (b"begun\r", b"\x1a"), (b"Stopped", look)]
    steps += [(b"finished", b""), (b"bash-", b"exit\n")]
    on_terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path, steps, env=env)
    assert sizes[0] == sizes[1] < 20


def test_two_runs_of_one_script_stand_beside_each_other(tmp_path: Path, trainlaunch: Runs, env: dict[str, str]) -> None:
    """As two shells may start it twice; each can be asked about later."""
    (tmp_path / "train.py").write_text("import time; time.sleep(30)")
    command = [*RUN, "-d", "--name", "twice", "--", "python3", "train.py"]
    for _ in range(2):
        ran = subprocess.run(command, cwd=tmp_path, env={**os.environ, **env}, capture_output=True, check=False)
        assert ran.returncode == 0, ran.stderr
    assert trainlaunch("ps", "--target", "local").stdout.count("twice") == 2
    assert trainlaunch("down", "--all", "twice", "--target", "local").returncode == 0


LOADER = "import os, argparse\nfrom torch.utils.data import DataLoader\n"
PARSED = "p = argparse.ArgumentParser()\np.add_argument('--workers', type=int, default=4)\na = p.parse_args()\n"
GIVEN = {
    "option": (PARSED + "DataLoader([], 8, num_workers=a.workers)", "print(sys.argv[1:])", "['--workers=3']"),
    "variable": ("DataLoader([], 8, num_workers=int(os.getenv('W', '4')))", "print(os.environ['W'])", "3"),
    "ours": ("DataLoader([], 8, num_workers=int(os.environ['TRAINLAUNCH_NUM_WORKERS']))",
             "print(os.environ['TRAINLAUNCH_NUM_WORKERS'])", "3"),
    "constant": ("DataLoader([], 8, num_workers=8)", "print(os.environ['TRAINLAUNCH_FORCE_WORKERS'])", "1"),
}  # fmt: skip


@pytest.mark.parametrize(("script", "shows", "shown"), GIVEN.values(), ids=GIVEN)
def test_workers_go_where_the_script_takes_them(
    tmp_path: Path, env: dict[str, str], script: str, shows: str, shown: str
) -> None:
    """Option, variable, ours, and by force over a constant; the script's text is read and not run for it."""
    (tmp_path / "train.py").write_text(f"import sys, os\n{shows}\nsys.exit()\n{LOADER}{script}\n")
    ran = subprocess.run(
        [*RUN, "--workers", "3", "--", "python3", "train.py"],
        cwd=tmp_path,
        env={**os.environ, **env},
        capture_output=True,
        check=False,
        text=True,
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, shown), ran.stderr


def test_workers_that_reach_nothing_are_an_error_before_the_start(
    tmp_path: Path, trainlaunch: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command's words are never edited, so a number that stands there is the one that holds."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(f"{LOADER}{PARSED}DataLoader([], 8, num_workers=a.workers)")
    ran = trainlaunch("run", "--workers", "2", "--", "python3", "train.py", "--workers", "8")
    assert ran.returncode == 2
    assert "the command itself sets --workers 8, and --workers 2" in ran.stderr
    (tmp_path / "train.py").write_text(f"{LOADER}import c\nDataLoader([], 8, num_workers=c.read()['x'])")
    ran = trainlaunch("run", "--workers", "2", "--", "python3", "train.py")
    assert "--workers 2 reaches no DataLoader" in ran.stderr
    (tmp_path / "train.py").write_text(f"{LOADER}import os\nDataLoader([], 8, num_workers=int(os.environ['NW']))")
    ran = trainlaunch("run", "--workers", "2", "-e", "NW=8", "--", "python3", "train.py")
    assert "NW is 8 by -e or --env-file, and --workers is 2" in ran.stderr


def test_a_run_leaves_its_job_file_and_says_so_once(tmp_path: Path, trainlaunch: Runs, env: dict[str, str]) -> None:
    """It plans as the run was planned: the same words, folder and workers; a run that was none has none."""
    script = f"import sys\nprint(sys.argv[1:])\nsys.exit()\n{LOADER}{PARSED}DataLoader([], 8, num_workers=a.workers)"
    (tmp_path / "train.py").write_text(script)
    command, told = [*RUN, "--", "python3", "train.py", "a b"], {**os.environ, **env}
    first, second = (
        subprocess.run(command, cwd=tmp_path, env=told, capture_output=True, check=False) for _ in range(2)
    )
    assert b"init --from" in first.stderr
    assert b"init --from" not in second.stderr
    run = second.stderr.split()[2].decode()
    job = tmp_path / "job.yaml"
    job.write_text(trainlaunch("init", "--from", run).stdout)
    planned = json.loads(trainlaunch("plan", str(job), "-o", "json").stdout)
    assert (planned["argv"], planned["num_workers"], planned["target"]) == (["python3", "train.py", "a b"], 4, "local")
    assert "run 0123abcd has no job file" in trainlaunch("init", "--from", "0123abcd").stderr
    assert "unsized" not in trainlaunch("status", run).stdout  # it has no job file to size


def test_what_a_run_measured_stands_in_its_job_file() -> None:
    """Fields that the script's own text gives stay as they are."""
    text = "name: a\ndata_loader:\n  num_workers: 2 # train.py:3\n  # batch_bytes: …\n"
    made = with_loader_fields(text, {"num_workers": "4", "batch_bytes": "{size: 1Mi, tensors: 1}"}, "measured")
    assert made.splitlines()[2:4] == [
        "  batch_bytes: {size: 1Mi, tensors: 1} # measured",
        "  num_workers: 2 # train.py:3",
    ]
    sample = f"{text}  {SAMPLE[0]}\n"
    assert SAMPLE[0] not in with_loader_fields(sample, {"batch_bytes": "{size: 1Mi, tensors: 1}"}, "measured")
    assert with_loader_fields("name: a\n", {"num_workers": "4"}, "x") == "name: a\ndata_loader:\n  num_workers: 4 # x\n"


def test_what_is_no_command_names_what_is_meant(
    tmp_path: Path, trainlaunch: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job file is `up`'s; options of a script stand behind --, also those that `run` has itself."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    assert "write `python train.py -j 2` behind --" in trainlaunch("run", "--", "train.py", "-j", "2").stderr
    for option in ("--epochs", "-e", "--out", "-o"):
        words = ("run", "--image", "a:1", "python", "train.py", option, "2")
        fix = f"write `trainlaunch run --image a:1 -- python train.py {option} 2`"
        assert fix in " ".join(trainlaunch(*words).stderr.split())
    for line in (
        "run --name sh -- sh -x",
        "run -- run -d",
        "run -- echo --name echo",
        "shell sh -- sh -x",
        "run --na a -d -- sh -x",
    ):
        assert f"write `trainlaunch {line}`" in trainlaunch(*line.replace("-- ", "", 1).split()).stderr, line
    assert "write `trainlaunch run -- python train.py -j 2`" in trainlaunch("run", "train.py", "-j", "2").stderr
    assert "write `trainlaunch up job.yaml`" in trainlaunch("run", "job.yaml").stderr
    assert "run has no command" in trainlaunch("run").stderr
    assert "which needs --image" in trainlaunch("run", "--mount", "/tmp", "--", "true").stderr
    assert "--image is a container's" in trainlaunch("run", "--target", "local", "--image", "a", "--", "true").stderr


def test_a_full_shm_is_told_while_it_runs(tmp_path: Path, env: dict[str, str]) -> None:
    """Where no need is known it can't be refused before; the machine is not filled for it: a mount of 1 MiB is."""
    script = (
        "import contextlib, os, time\nfile = os.open('/dev/shm/x', os.O_WRONLY | os.O_CREAT)\n"
        "with contextlib.suppress(OSError):\n    while os.write(file, bytes(4096)): pass\ntime.sleep(4)"
    )
    words = shlex.join([*RUN, "--", "python3", "-c", script])
    alone = f"mount -t tmpfs -o size=1m tmpfs /dev/shm && {words}"
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", alone],
        cwd=tmp_path,
        env={**os.environ, **env},
        capture_output=True,
        check=False,
    )
    if b"unshare" in ran.stderr:
        pytest.skip(f"this host makes no mount namespace: {ran.stderr!r}")
    assert (ran.returncode, b"/dev/shm was seen full at" in ran.stderr) == (0, True), ran.stderr
    assert b"1.0 MiB of 1.0 MiB used" in ran.stderr


def test_json_is_one_document_and_the_jobs_output_is_on_stderr(tmp_path: Path, env: dict[str, str]) -> None:
    """Of a command and of a job file alike; the code stays the job's own, and a command reads its caller's stdin."""
    script = "import sys; print('spoken'); print(sys.stdin.read()); sys.exit(3)"
    (tmp_path / "job.yaml").write_text(f"name: spoken\ntarget: local\ncommand: [python3, -c, {json.dumps(script)}]\n")
    told = {**os.environ, **env}
    for words in ([*RUN, "-o", "json", "--", "python3", "-c", script], [*RUN[:-1], "up", "-o", "json"]):
        done = subprocess.run(
            words, cwd=tmp_path, env=told, input="typed", capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 3, done.stderr
        document = json.loads(done.stdout)
        assert [document[each] for each in ("state", "exit_code", "target")] == ["ended", 3, "local"]
        assert "spoken\n" in done.stderr
        assert ("typed\n" in done.stderr) == ("up" not in words)
