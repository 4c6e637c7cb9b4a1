"""What a machine or image may have odd ends in our own words: 75, 78 or a check less, never in a shell's 1, 2 or 127.

These wrappers run on this machine, with a cgroup made of files and a PATH of their own; no engine is needed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from trainlaunch.container.preflight import STOP_MARKER

from tests.preflight.plans import automatic, health_alone, plan, wrapper_alone
from tests.sampling import diagonals

SHELLS = {"dash": ("dash",), "busybox": ("busybox", "sh"), "bash": ("bash", "--posix"), "bash-as-itself": ("bash",)}
PLANS = {"stated": plan(command=["echo", "ok"]), "automatic": automatic(command=["echo", "ok"])}
CGROUP_1 = {
    "cpu/cpu.cfs_quota_us": "6400000\n",
    "cpu/cpu.cfs_period_us": "100000\n",
    "memory/memory.limit_in_bytes": "4294967296\n",
    "memory/memory.usage_in_bytes": "1000\n",
    "memory/memory.stat": "inactive_file 5\nactive_file 6\n",
}
CGROUP_2 = {
    "cpu.max": "6400000 100000\n",
    "memory.max": "4294967296\n",
    "memory.current": "1000\n",
    "memory.stat": "inactive_file 5\nactive_file 6\n",
}
ODD = (
    "", "\n", "max", "08\n", "-1\n", "0\n", "000\n", "abc\n", "18446744073709551615\n", "9223372036854771712\n",
    "99999999999999999999999\n", "1e9\n", "0x10\n", "$(exit 3)\n", "a[$(exit 3)]\n", "* *\n", "inactive_file max\n",
)  # fmt: skip
EVERY_SHELL = pytest.mark.parametrize("shell", SHELLS, indirect=True)  # in the default too
TOOLS = ("stat", "id", "rm", "cat", "du", "cut", "grep", "env", "xargs", "mkdir", "echo", "sh")


@pytest.fixture(params=[each if each == "dash" else pytest.param(each, marks=pytest.mark.long) for each in SHELLS])
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return a shell that this machine has, by its path: dash in the default, each of SHELLS for EVERY_SHELL."""
    name, *words = SHELLS[str(request.param)]
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return (path, *words)


def run(shell: tuple[str, ...], text: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Start a job's wrapper here."""
    whole = {"PATH": os.environ["PATH"], "HOME": "/tmp", **(env or {})}
    argv = [*shell, "-c", text, "trainlaunch", "echo", "ok"]
    return subprocess.run(argv, env=whole, capture_output=True, text=True, timeout=60, check=False)


def passed(done: subprocess.CompletedProcess[str]) -> None:
    """Assert that the job ran, and that all that was said are sentences of ours."""
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    assert all(re.match(r"trainlaunch: (warning: |preflight passed: )", each) for each in done.stderr.splitlines())
    assert "preflight passed" in done.stderr


def stopped(done: subprocess.CompletedProcess[str], code: int, words: str) -> None:
    """Assert that it stopped with one sentence of ours."""
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert re.fullmatch(rf"{STOP_MARKER} \({code}\): .*{re.escape(words)}.*\n", done.stderr), done.stderr


def wrapper(name: str, files: Mapping[str, str], folder: Path) -> str:
    """Return a plan's wrapper that sees these files as its cgroup."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    return wrapper_alone(PLANS[name]).replace("/sys/fs/cgroup", str(folder))


def test_odd_values_of_a_cgroup_are_no_limits(shell: tuple[str, ...], tmp_path: Path) -> None:
    """As in sandboxes, nested containers and kernels to come; each file of both versions alone with half of them."""
    for version in (CGROUP_1, CGROUP_2):
        for odd, file in diagonals(2, ODD, [*version]):
            passed(run(shell, wrapper("stated", {**version, file: odd}, tmp_path)))
        shutil.rmtree(tmp_path)


@EVERY_SHELL
def test_a_cgroup_of_odd_values_alone_is_no_limit(shell: tuple[str, ...], tmp_path: Path) -> None:
    """Arithmetic with them is where shells differ most."""
    for version in (CGROUP_1, CGROUP_2):
        for odd in ODD:
            passed(run(shell, wrapper("automatic", dict.fromkeys(version, odd), tmp_path)))
        shutil.rmtree(tmp_path)


def test_what_the_kernel_can_reclaim_is_not_used(shell: tuple[str, ...], tmp_path: Path) -> None:
    """Files that were read fill a limit within minutes; a job that others leave no memory is refused all the same."""
    full = {"memory.max": "268435456\n", "memory.current": "258435456\n"}
    cached = "anon 1\ninactive_file 150000000\nactive_file 90000000\nunevictable 3\n"
    passed(run(shell, wrapper("stated", {**full, "memory.stat": cached}, tmp_path / "two")))
    resident = "anon 240000000\ninactive_file 5000000\nactive_file 1\n"
    stopped(run(shell, wrapper("stated", {**full, "memory.stat": resident}, tmp_path / "two")), 75, "246 are used")
    first = {"memory/memory.limit_in_bytes": full["memory.max"], "memory/memory.usage_in_bytes": full["memory.current"]}
    stat = "cache 3\ninactive_file 0\nactive_file 0\ntotal_inactive_file 150000000\ntotal_active_file 90000000\n"
    passed(run(shell, wrapper("stated", {**first, "memory/memory.stat": stat}, tmp_path / "one")))


@pytest.fixture
def own_shm() -> Iterator[str]:
    """Return a folder in memory for /dev/shm: without rm, what a wrapper tries there stays."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield folder


@pytest.mark.parametrize("missing", TOOLS[1:-2])
def test_a_missing_tool_is_a_check_less(shell: tuple[str, ...], tmp_path: Path, own_shm: str, missing: str) -> None:
    """Slim images lack many; only stat is needed, since nothing else tells the size of a mount."""
    for tool in {*TOOLS} - {missing}:
        (tmp_path / tool).symlink_to(shutil.which(tool) or "/bin/busybox")
    if "busybox" in shell[0]:
        pytest.skip("busybox has all of them within itself")
    for each in PLANS.values():
        passed(run(shell, wrapper_alone(each).replace("/dev/shm", own_shm), {"PATH": str(tmp_path)}))


@pytest.mark.parametrize(
    "said",
    [
        None,
        "",
        "tmpfs",
        "tmpfs a b c",
        "tmpfs 4096 08 1",
        "tmpfs 0 1 1",
        "tmpfs -1 5 3",
        "tmpfs 4096 9 $(exit 3)",
        "x\ny",
    ],
)
def test_a_stat_that_says_nothing_is_said(tmp_path: Path, own_shm: str, said: str | None) -> None:
    """Missing, another vendor's, or broken: one sentence, and no arithmetic with its words."""
    (tmp_path / "echo").symlink_to("/bin/echo")
    if said is not None:
        (tmp_path / "said").write_text(said)
        (tmp_path / "stat").write_text(f"#!/bin/sh\n/bin/cat {tmp_path}/said\n")
        (tmp_path / "stat").chmod(0o755)
    for words in (("/bin/dash",), ("/bin/bash", "--posix"), ("/bin/bash",)):
        text = wrapper_alone(PLANS["stated"]).replace("/dev/shm", own_shm)
        stopped(run(words, text, {"PATH": str(tmp_path)}), 78, "install coreutils in it")


@pytest.mark.parametrize("options", ["errexit", "nounset", "noglob", "noclobber", "errexit:nounset:noglob:noclobber"])
def test_an_inherited_shellopts_stops_nothing(options: str) -> None:
    """Where an image's sh is bash, it takes options from the environment."""
    for words in (("/bin/bash", "--posix"), ("/bin/bash",)):
        for each in PLANS.values():
            passed(run(words, wrapper_alone(each), {"SHELLOPTS": options}))


def test_a_traced_shell_shows_no_secret(tmp_path: Path) -> None:
    """SHELLOPTS=xtrace would print each variable that the wrapper sets."""
    job = plan(target="compose", command=["echo", "ok"], secrets={"TOKEN": {"file": "./token"}})
    (tmp_path / "TOKEN").write_text("hush-hush")
    text = wrapper_alone(job).replace("/run/secrets", str(tmp_path))
    done = run(("/bin/bash",), text, {"SHELLOPTS": "xtrace"})
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    assert "hush" not in done.stderr


@pytest.mark.parametrize("value", ["x", "9999999999", "", "-1", "$(exit 3)", "*"])
def test_inherited_variables_of_our_names_change_nothing(shell: tuple[str, ...], value: str) -> None:
    """An image may have any; the wrapper sets each before it reads it."""
    for each in PLANS.values():
        text = wrapper_alone(each)
        env = dict.fromkeys(re.findall(r"\btl_[a-z]+", text), value)
        assert run(shell, text, env).stderr == run(shell, text).stderr
        passed(run(shell, text, env))


@EVERY_SHELL
@pytest.mark.parametrize("limit", ["unlimited", "1048576", "524288"])
def test_open_files_without_a_limit_are_enough(shell: tuple[str, ...], tmp_path: Path, limit: str) -> None:
    """`ulimit -H -n` may say `unlimited`, which is no number; the kernel here refuses that, so a function says it."""
    fake = f'ulimit() {{ case $* in "-H -n") echo {limit} ;; esac; }}\n'
    for each in PLANS.values():
        passed(run(shell, fake + wrapper_alone(each)))


@pytest.mark.parametrize("planted", ["nothing", "link", "folder"])
def test_the_health_checks_folder_is_private_and_no_strangers(tmp_path: Path, planted: str) -> None:
    """Mode 700; a folder or link that somebody else put there is neither read nor written."""
    (tmp_path / "stat").write_text("#!/bin/sh\necho 'tmpfs 4096*1000000 4096*999000'\n")
    (tmp_path / "stat").chmod(0o755)
    own, other = tmp_path / "shm" / ".trainlaunch", tmp_path / "other"
    own.parent.mkdir()
    other.mkdir()
    if planted == "link":
        own.symlink_to(other)
    elif planted == "folder":
        own.mkdir()
        try:
            os.chown(own, 1042, 1042)
        except PermissionError:
            pytest.skip("only root can give a folder away")
    text = health_alone(PLANS["stated"]).replace("/dev/shm", str(own.parent))
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["/bin/dash", "-c", text], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"used={4096 * 1000}" in done.stdout
    assert not list(other.iterdir())
    if planted == "nothing":
        assert (own.stat().st_mode & 0o777, [each.name for each in own.iterdir()]) == (0o700, ["peak"])
    else:
        assert not list(own.iterdir())
