"""The field reports that are lines of a shell, and ten thousand texts that chance made of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.formats.docker.read import read_docker_run
from trainlaunch.render import render

from tests.formats.readings import assert_spans_cut, mutated, reports, summary
from tests.render.jobs import job_plan

EXPECTED = Path(__file__).parent / "golden" / "docker_run.json"
RICH = """\
#!/bin/bash
set -eu  # docker run in a comment
IMG=${REGISTRY:-docker.io}/trainer:1
docker build --shm-size=2g -t "$IMG" . && sudo -E docker run -itd --rm \\
  --gpus '"device=0,1"' --shm-size="8g" -m 16g --cpus=1.5 --ipc=private \\
  -v "$PWD":/work -v /data:/data:ro --mount type=tmpfs,dst=/t,tmpfs-size=1g --tmpfs /dev/shm:size=200m \\
  -e A='two words' -e B=$B -e HF_TOKEN --ulimit memlock=-1 -p80:80 --name x-$USER \\
  "$IMG" bash -c 'python train.py "$@" | tee log' -- ${ARGS[@]} 2>&1 | tee "log $(date)" || exit 1
CID=$(podman run -d --pod train `echo --init` a/b:1 sleep 1)
cat <<EOF > run.sh
docker run nothing
EOF
"""


def lines() -> dict[str, str]:
    """Return the text of each report that is a line of a shell with a container in it, by the report's name."""
    return {
        each["id"]: each["input"]
        for each in reports()
        if each["kind"] == "docker_run" or (each["input_format"] == "shell" and "docker run" in each["input"])
    }


def test_each_report_is_read_as_expected(golden: Callable[[Path, str], None]) -> None:
    """/dev/shm, memory, CPUs, GPUs, image and argv of every line of every report."""
    found = {name: [summary(each) for each in read_docker_run(text, name)] for name, text in lines().items()}
    assert all(found.values()), "a report without a line"
    golden(EXPECTED, json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def test_each_span_cuts_its_text() -> None:
    """What a value was read from is where its span says, in renderings too."""
    for text in (*lines().values(), RICH, RICH.replace("\n", "\r\n"), render(job_plan("full", "docker"))):
        read = read_docker_run(text, "run.sh")
        assert read
        for each in read:
            assert_spans_cut(text, each)


@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_changed_texts_are_read(count: int) -> None:
    """Nothing is raised, spans still cut, and it takes seconds."""
    texts = [*lines().values(), RICH]
    containers = 0
    start = time.process_time()
    for text in mutated(texts, count, seed=8):
        for each in (read := read_docker_run(text, "run.sh")):
            assert_spans_cut(text, each)
        containers += len(read)
    assert time.process_time() - start < 20
    assert containers > count * 4 // 5


def test_long_texts_take_no_longer_than_their_length() -> None:
    """What opens and never closes is read once."""
    start = time.process_time()
    for opened in ('"', "'", "$(", "`", "${", '"$(', "(", "{a,", "<<E\n", "docker run $(", "-", "~"):
        read_docker_run("docker run img " + opened * 20_000, "run.sh")
    assert time.process_time() - start < 20
