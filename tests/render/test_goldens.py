"""Whole renderings, reviewed as files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trainlaunch
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.verify import verified

from tests.render.jobs import FILES, FOLDER, GOLDENS, JOBS, NODES, TARGETS, job_plan


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("job", JOBS)
def test_rendering_is_its_golden_file(job: str, target: str, golden: Callable[[Path, str], None]) -> None:
    """Each job on each target gives exactly the committed text, which verify accepts."""
    plan = job_plan(job, target)
    golden(GOLDENS / job / FILES[target], verified(plan, render(plan)))


def test_the_rendering_of_several_nodes_is_its_golden_file(golden: Callable[[Path, str], None]) -> None:
    """A service a node: the first in full, the others only with what differs."""
    plan = job_plan(NODES, "compose")
    golden(GOLDENS / NODES / FILES["compose"], verified(plan, render(plan)))


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_job_gives_the_same_bytes_wherever_it_lies(target: str, tmp_path: Path) -> None:
    """A copy in another folder, read by its relative or absolute path, renders to the same text."""
    copy = tmp_path / "full.yaml"
    copy.write_bytes((FOLDER / "jobs" / "full.yaml").read_bytes())
    elsewhere = plan_job(read_job(copy, target=target))
    assert render(elsewhere) == render(job_plan("full", target))


@pytest.mark.parametrize("target", TARGETS)
def test_a_second_process_gives_the_same_bytes(target: str) -> None:
    """Another process, with another hash seed, time zone, locale and folder, renders to the same text."""
    program = (
        "import sys; from pathlib import Path; from trainlaunch.policy import read_job\n"
        "from trainlaunch.rules import plan_job\n"
        "from trainlaunch.render import render\n"
        "sys.stdout.buffer.write(render(plan_job(read_job(Path(sys.argv[1]), target=sys.argv[2]))).encode())"
    )
    job = str((FOLDER / "jobs" / "full.yaml").resolve())
    environment = {
        "PYTHONPATH": str(FOLDER.parents[1] / "launcher"),
        "PYTHONHASHSEED": "7",
        "TZ": "Asia/Tokyo",
        "LC_ALL": "C",
    }
    argv = [sys.executable, "-c", program, job, target]
    done = subprocess.run(argv, capture_output=True, env=environment, cwd="/", timeout=60, check=True)
    assert done.stdout.decode() == render(job_plan("full", target))


def test_a_name_follows_what_is_asked_for(tmp_path: Path) -> None:
    """Another environment variable changes a Job's name; a comment in the job file changes nothing."""
    source = (FOLDER / "jobs" / "full.yaml").read_text()
    copy = tmp_path / "full.yaml"
    copy.write_text(source + "# a comment\n")
    same = plan_job(read_job(copy, target="kubernetes"))
    assert render(same) == render(job_plan("full", "kubernetes"))
    copy.write_text(source.replace("WANDB_MODE: offline", "WANDB_MODE: online"))
    other = render(plan_job(read_job(copy, target="kubernetes")))
    assert name_of(other) != name_of(render(same))


def test_another_rendering_format_is_no_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster sees the template, and not the number above it."""
    before = render(job_plan("full", "kubernetes"))
    monkeypatch.setattr("trainlaunch.render.header.RENDERING_FORMAT", 999)
    after = render(job_plan("full", "kubernetes"))
    assert name_of(after) == name_of(before)
    assert after != before


def name_of(manifest: str) -> str:
    """Return the line that names a manifest's object."""
    return next(line for line in manifest.splitlines() if line.startswith("  name: "))


@pytest.mark.parametrize("target", TARGETS)
def test_headers_name_no_folder_no_time_and_no_version_of_the_tool(target: str) -> None:
    """The comment says the job file's name and the format; the size of /dev/shm has its derivation beside it."""
    plan = job_plan("full", target)
    header = [line for line in render(plan).splitlines() if line.startswith("# ")]
    text = "\n".join(header)
    assert "from full.yaml" in text
    assert "\n# rendering format 3\n" in render(plan)
    assert f" {plan.shm.size.derivation}\n" in render(plan)
    assert str(FOLDER) not in text
    assert trainlaunch.__version__ not in text


def test_what_only_up_enforces_is_a_comment() -> None:
    """Attempts, deadline and time to live are comments on docker and Compose, and fields of a Job."""
    for target in ("docker", "compose"):
        text = render(job_plan("full", target))
        for field in ("restart.max_attempts 3", "active_deadline 12h"):
            assert f"# {field}: only `trainlaunch up`" in text
        assert "# ttl_after_finished 24h: the next `trainlaunch up`" in text
    job = render(job_plan("full", "kubernetes"))
    assert "only `trainlaunch up`" not in job
    assert "\n  activeDeadlineSeconds: 43200\n  ttlSecondsAfterFinished: 86400\n  backoffLimit: 2\n" in job
    pod = render(job_plan("script", "kubernetes"))
    assert "# restart.max_attempts 2: only `trainlaunch up`" in pod
    assert "# ttl_after_finished 10m: the next `trainlaunch up`" in pod
    assert "\n  activeDeadlineSeconds: 5400\n" in pod


def test_how_a_value_was_set_changes_no_name() -> None:
    """--set with the value that the file has gives the same name of a Job."""
    plan = job_plan("minimal", "kubernetes")
    again = read_job(Path(plan.job.path), target="kubernetes", sets=[f"name={plan.job.name}"])
    assert name_of(render(plan_job(again))) == name_of(render(plan))
