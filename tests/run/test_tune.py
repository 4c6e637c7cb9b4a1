"""`tune` on real engines and on this host's processes: what it prints, keeps and leaves."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT, Runs
from tests.run.conftest import docker
from tests.runners import run_started

pytestmark = pytest.mark.docker
SCRIPT = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self):
        return 4000
    def __getitem__(self, index):
        time.sleep(0.03)
        return torch.zeros(256), torch.tensor(0)
if __name__ == "__main__":
    model = torch.nn.Linear(256, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    print("the script's own words", flush=True)
    loader = DataLoader(Slow(), 8, num_workers=int(sys.argv[1]))
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    print("trained", flush=True)
"""
LOADER = {"batch_size": 8, "sample": [{"shape": [256], "dtype": "float32"}, {"shape": [], "dtype": "int64"}]}


@pytest.fixture
def slow_job(make_job: Callable[..., Path], torch_image: str) -> Callable[..., Path]:
    """Write a job whose data waits, so that more workers are faster, and return its path."""

    def make(script: str = SCRIPT, **over: Any) -> Path:
        resources = {"cpus": 2, "memory": "2Gi"}
        command = ["python", "-c", script, "{num_workers}"]
        loader = {**LOADER, "max_workers": 4}
        return make_job(
            **{"image": torch_image, "command": command, "resources": resources, "data_loader": loader, **over}
        )

    return make


def left_of(name: str) -> str:
    """Return the containers of a job's tune that are still there."""
    return docker("ps", "--all", "--quiet", "--filter", f"name={name}-tune")


def test_the_fastest_is_found_kept_and_planned(
    trainlaunch: Runs, slow_job: Callable[..., Path], job_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Docker: the document, the lock that plan uses, the page, and nothing left of the runs.

    Each setting is timed for a moment, within a budget in which torch starts on the busiest machine.
    """
    monkeypatch.setattr("trainlaunch.measure.tune.tuning.EACH", 0.003)
    job = slow_job(data_loader={**LOADER, "max_workers": 2})
    page = job.with_name("tune.html")
    done = trainlaunch("tune", str(job), "--budget", "10m", "--write", "--html", str(page), "-o", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    workers = found["chosen"]["num_workers"]
    assert (found["as_it_is"]["num_workers"], found["loader"]["changes_in_place"]) == (0, True)
    assert workers == 2  # 240 ms a batch: each worker that waits adds to the rate
    assert found["gain"] > 1.5
    assert found["confirmed"]["fresh"]
    assert found["script_takes_num_workers"] is True
    assert all(each["cpus_used"] is not None for each in found["timings"] if each["rate"])
    lock = yaml.safe_load(job.with_name("job.lock.yaml").read_text(encoding="utf-8"))
    kept = {**lock["tune"]["docker"], "input": ""}
    kept.pop("threads", None)  # which are there where they made a difference
    assert kept == {
        **{"input": "", "cpus": 2, "num_workers": workers},
        "prefetch_factor": found["chosen"]["prefetch_factor"],
    }
    plan = json.loads(trainlaunch("plan", str(job), "-o", "json").stdout)
    assert plan["num_workers"] == workers
    assert "job.lock.yaml" in plan["derivations"]["num_workers"]["origin"]
    assert page.read_text(encoding="utf-8").count("<svg") >= 4
    assert "the script's own words" not in done.stderr + done.stdout
    assert left_of(job_name) == ""


def test_a_script_that_fails_is_shown_with_its_last_words(trainlaunch: Runs, slow_job: Callable[..., Path]) -> None:
    """1, and the exit code of the script."""
    done = trainlaunch("tune", str(slow_job("import nothing_of_this_name")), "--budget", "30s")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error[TL740]: the script ended with exit code 1 before a loader was timed" in done.stderr
    assert "ModuleNotFoundError: No module named 'nothing_of_this_name'" in done.stderr


@pytest.mark.long  # tests/inside has the reason, test_tune_ends.py the runs
def test_ranks_that_step_together_have_a_run_for_each_setting(
    trainlaunch: Runs, slow_job: Callable[..., Path], job_name: str
) -> None:
    """torchrun with two of them: all get the setting, the first one times it, and the launcher ends both."""
    step = "        for each in model.parameters():\n            torch.distributed.all_reduce(each.grad)\n"
    script = SCRIPT.replace("    model =", "    torch.distributed.init_process_group('gloo')\n    model =")
    script = script.replace("        optimizer.step()", f"{step}        time.sleep(0.25)\n        optimizer.step()")
    job = slow_job(
        script,
        data_loader={**LOADER, "max_workers": 1},
        torchrun={"nproc_per_node": 2},
        resources={"cpus": 2, "memory": "6Gi"},
    )
    done = trainlaunch("tune", str(job), "--budget", "10m", "-o", "json")  # an end as soon as all is timed
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["ranks"], found["loader"]["reason"]) == (2, "several ranks step together")
    assert (found["chosen"]["num_workers"], found["script_takes_num_workers"]) == (1, True)
    assert found["gain"] > 1.2
    assert left_of(job_name) == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", "5s"], "--budget 5s is below 20s"),
        (["--budget", "soon"], "--budget: 'soon' is not a duration"),
        (["--html", "job.yaml"], "exists, and is no page that `trainlaunch tune` wrote"),
        (["--html", "nowhere/tune.html"], "is in a folder that does not exist"),
    ],
    ids=["short", "no-duration", "alien", "no-folder"],
)
def test_a_wrong_option_is_said_before_anything_runs(
    trainlaunch: Runs, make_job: Callable[..., Path], words: list[str], said: str
) -> None:
    """2; no engine is asked."""
    job = make_job(data_loader=LOADER)
    done = trainlaunch("tune", job.name, *words, cwd=job.parent, env={"DOCKER_HOST": "unix:///nonexistent/docker.sock"})
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"data_loader": "none"}, "data_loader is none, so there are no workers to time"),
        ({"torchrun": {"nnodes": 2}, "target": "compose"}, "the job runs on torchrun.nnodes 2, and one node is timed"),
    ],
    ids=["no-loader", "nodes"],
)
def test_a_job_that_can_not_be_tuned_is_refused(
    trainlaunch: Runs, slow_job: Callable[..., Path], fields: dict[str, Any], said: str
) -> None:
    """1, with the code."""
    done = trainlaunch("tune", str(slow_job(command=["python", "-c", SCRIPT, "0"], **fields)))
    assert done.returncode == 1
    assert f"error[TL741]: {said}" in done.stderr


@pytest.mark.long  # the first test has their options
def test_the_commands_of_its_page_run(slow_job: Callable[..., Path], tmp_path: Path) -> None:
    """docs/tune.md: the second line, with the first one's budget cut to a test's."""
    page = (ROOT / "docs" / "tune.md").read_text(encoding="utf-8")
    lines = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)[0].splitlines()
    assert lines[0] == "trainlaunch tune job.yaml"
    slow_job()
    for line in (f"{lines[0]} --budget 20s", lines[1]):
        done = run_started(*shlex.split(line)[1:], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "tune.html").is_file()
    assert json.loads(done.stdout)["written"] == "job.lock.yaml"
