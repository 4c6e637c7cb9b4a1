"""The docker target's script."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from trainlaunch.container.container import container_of
from trainlaunch.render import render
from trainlaunch.verify import verified

from tests.jobs import plan_with
from tests.render.jobs import JOBS, job_plan


@pytest.mark.parametrize("job", JOBS)
def test_the_script_is_clean_under_shellcheck(job: str) -> None:
    """shellcheck has nothing to say, at its strictest level."""
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not on PATH")
    script = render(job_plan(job, "docker"), base=Path("/somewhere"))
    argv = ["shellcheck", "--shell=sh", "--severity=style", "-"]
    done = subprocess.run(argv, input=script, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_line_is_the_first_function_and_its_scripts_are_the_last() -> None:
    """A reviewer reads one flag of the job's a line, /dev/shm among them in whole MiB, and no script in between."""
    lines = render(job_plan("full", "docker")).splitlines()
    code = [line for line in lines if not line.startswith("#")]
    assert code[0] == "docker_run() {"
    flags = [line for line in code[: code.index("}")] if line.startswith("    --")]
    assert "    --shm-size 5559m \\" in flags
    assert all(line.endswith(" \\") or " '" in line for line in flags)
    divided = next(index for index, line in enumerate(lines) if line.startswith("# From here on"))
    assert lines[divided + 1] == "health() {"
    assert lines[-1] == "docker_run"


def test_a_small_jobs_line_is_short(tmp_path: Path) -> None:
    """Thirty lines at most, and nothing quoted twice."""
    text = render(plan_with(tmp_path, resources={"cpus": 2, "memory": "2Gi"}))
    assert text.splitlines().index("}") - text.splitlines().index("docker_run() {") < 30
    assert "'\\''" not in text


ODD = "f() {\n  a 'b' \"$(health)\"\n}\ndocker_run\n"  # what would end our function, or ask for another


def test_a_script_starts_the_words_of_the_plan(tmp_path: Path) -> None:
    """Each byte of them, whatever a here-document and a function make of the text."""
    engine = tmp_path / "docker"
    engine.write_text('#!/bin/sh\n[ "$1" = run ] && printf "%s\\0" "$@"\n')
    engine.chmod(0o755)
    plan = plan_with(tmp_path, command=["printf", ODD, "'", "$HOME", "{num_workers}"], env={"A": ODD})
    assert verified(plan, render(plan))
    for shell in (["dash"], ["bash", "--posix"], ["busybox", "sh"]):
        if shutil.which(shell[0]) is None:
            continue
        env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        done = subprocess.run([*shell, "-c", render(plan)], env=env, capture_output=True, text=True, check=True)
        words, container = done.stdout.split("\0")[:-1], container_of(plan)
        assert tuple(words[-len(container.args) - 3 :]) == (*container.entrypoint[1:], *container.args)
        assert {f"{name}={value}" for name, value in container.env} <= {*words}
        assert words[words.index("--health-cmd") + 1] == container.health


@pytest.mark.parametrize(
    ("asked", "written"), [(2, "2"), ("all", "all"), ([0], '"device=0"'), ([0, 1], '"device=0,1"')]
)
def test_gpus_are_written_as_docker_reads_them(tmp_path: Path, asked: object, written: str) -> None:
    """A list is one quoted CSV field: bare ids would be counts, of which docker takes the last."""
    plan = plan_with(tmp_path, resources={"cpus": 8, "gpus": asked}, ranks_per_container=1)
    quoted = f"'{written}'" if '"' in written else written
    assert f"  --gpus {quoted} \\\n" in verified(plan, render(plan))


def test_no_gpu_gives_no_flag(tmp_path: Path) -> None:
    """A job without GPUs says nothing about them."""
    assert "--gpus" not in render(plan_with(tmp_path))


@pytest.mark.parametrize(("entrypoint", "words"), [(None, "/bin/sh"), ([], "/bin/sh"), (["/e", "-x"], "/e")])
def test_the_preflight_stands_behind_the_images_entrypoint(
    tmp_path: Path, entrypoint: list[str] | None, words: str
) -> None:
    """--entrypoint takes one word; the rest of the ENTRYPOINT, the preflight and the command follow the image."""
    text = render(plan_with(tmp_path, image_entrypoint=entrypoint))
    front = "-x /bin/sh -c" if entrypoint else "-c"
    after = f'    {front} "$(preflight)" trainlaunch \\\n    python train.py\n}}\n'
    assert f"    --entrypoint {words} \\\n    trainer:1 \\\n{after}" in text
    assert ("ENTRYPOINT that the image has is not run" in text) == (entrypoint is None)


def test_relative_binds_follow_the_file(tmp_path: Path) -> None:
    """A text for a folder reads binds from there, wherever it is started; one for a pipe leaves them as they are."""
    mounts = [{"type": "bind", "source": "./src", "target": "/w"}, {"type": "bind", "source": "/data", "target": "/d"}]
    plan = plan_with(tmp_path / "jobs", mounts=mounts)
    piped = verified(plan, render(plan))
    assert "source=./src" in piped
    assert "Relative mounts are relative to the folder of job.yaml" in piped
    assert "cd --" not in piped
    base = tmp_path / "out" / "docker"
    placed = verified(plan, render(plan, base=base), base=base)
    assert "source=../../jobs/src" in placed
    assert "source=/data" in placed
    assert 'cd -- "$(dirname -- "$0")" || exit 125\n' in placed
    absolute = plan_with(tmp_path, mounts=mounts[1:])
    assert "cd --" not in render(absolute, base=base)


def test_a_read_only_root_brings_its_own_tmp(tmp_path: Path) -> None:
    """Without a writable /tmp a DataLoader hangs; a job that mounts its own keeps it."""
    assert "  --read-only \\\n    --tmpfs /tmp:exec \\\n" in render(plan_with(tmp_path, read_only=True))
    own = plan_with(tmp_path, read_only=True, mounts=[{"type": "tmpfs", "target": "/tmp/"}])
    assert "--tmpfs /tmp/:exec \\\n" in render(own)
    assert "--tmpfs /tmp:" not in render(own)
    assert "--tmpfs" not in render(plan_with(tmp_path))
