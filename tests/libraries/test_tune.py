"""Loops of real libraries, which keep a state of their own, are tuned by a process for each setting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Runs
from tests.jobs import write_job
from tests.libraries.test_probe import OFFLINE, SCRIPTS, SECONDS

pytestmark = [pytest.mark.docker, pytest.mark.libraries]
REASONS = {
    "lightning_fit": "lightning runs the loop",
    "hugging_face": "transformers runs the loop",
    "torchdata": "StatefulDataLoader builds iterators of its own",
}


@pytest.mark.parametrize("library", REASONS)
def test_the_fastest_of_a_librarys_loop_is_found(
    library: str, examples_image: str, own_label: str, trainlaunch: Runs, tmp_path: Path
) -> None:
    """The loader that trains, not the one that is evaluated between its steps; each setting reaches the script."""
    key, _, value = own_label.partition("=")
    job = write_job(
        tmp_path,
        name=f"{library.replace('_', '-')}-{value}",
        image=examples_image,
        command=["python", "tuned.py", library, "{num_workers}"],
        working_dir="/scripts",
        env=OFFLINE,
        labels={key: value},
        mounts=[{"type": "bind", "source": str(SCRIPTS), "target": "/scripts", "read_only": True}],
        resources={"cpus": 2, "memory": "4Gi"},
        data_loader={"batch_size": 4, "sample": [{"shape": [16384], "dtype": "float32"}], "max_workers": 2},
    )
    done = trainlaunch("tune", str(job), "--budget", "6m", "-o", "json", timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rates = {each["num_workers"]: each["rate"] for each in found["timings"]}
    print(library, rates, found["loader"])
    assert found["loader"]["reason"] == REASONS[library]
    assert found["loader"]["optimizer_stepped"] is True
    assert found["script_takes_num_workers"] is True
    assert found["as_it_is"]["num_workers"] == 0
    assert found["chosen"]["num_workers"] == 2
    assert rates[0] == pytest.approx(1 / 0.26, rel=0.25)  # four samples of 50 ms, and a step of 60
    assert rates[2] > 1.5 * rates[0]
