"""What the text of `docker run` says by itself, run by hand."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Runs

pytestmark = pytest.mark.docker


def test_a_text_whose_name_an_up_has_taken_says_what_to_do(
    trainlaunch: Runs, make_job: Callable[..., Path], job_name: str
) -> None:
    """docker itself only says that the name is in use; once the run is removed the same text runs."""
    job = make_job(command=["echo", "trained"], image_entrypoint=[])
    text = trainlaunch("render", str(job), "--target", "docker").stdout

    def piped() -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh"], input=text, capture_output=True, text=True, cwd=job.parent, check=False)

    assert trainlaunch("up", str(job)).returncode == 0
    done = piped()
    assert (done.returncode, done.stdout) == (125, "")
    assert (
        f"the name {job_name} is taken: trainlaunch down {job_name} ends and removes a run that up left" in done.stderr
    )
    assert trainlaunch("down", job_name).returncode == 0
    done = piped()
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
