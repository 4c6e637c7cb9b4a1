"""`run --image` on Podman is what it is on Docker."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.run.podman.conftest import Podman
from tests.run.test_run_image import (  # noqa: F401 - collected here, where the fixtures give Podman
    test_a_terminal_is_the_commands_own,
    test_ctrl_c_is_130_and_a_second_one_kills,
    test_folder_user_words_stdin_and_code_are_the_callers,
)

pytestmark = pytest.mark.docker


def test_podman_is_chosen_beside_docker(
    tmp_path: Path,
    caller: dict[str, str],
    run_image: list[str],
    podman: Podman,
) -> None:
    """Its own service answers then; a DOCKER_HOST that is Docker's is an error, never Docker in silence."""
    told = {**os.environ, **caller, "PATH": f"{podman.command.parent}:{os.environ['PATH']}"}
    told["XDG_RUNTIME_DIR"] = str(podman.folder)
    words = [*run_image, "--target", "podman", "--", "cat", "/run/.containerenv"]
    ran = subprocess.run(
        words, env={**told, "DOCKER_HOST": "unix:///var/run/docker.sock"}, capture_output=True, check=False
    )
    assert (ran.returncode, b"DOCKER_HOST names" in ran.stderr) == (125, True), ran.stderr
    del told["DOCKER_HOST"]
    ran = subprocess.run(words, env=told, cwd=tmp_path, capture_output=True, check=False)
    assert (ran.returncode, b"on Podman" in ran.stderr) == (0, True), ran.stderr
