"""Two jobs of trainlaunch are not started on one GPU; which GPUs are held is read from real containers' labels."""

from __future__ import annotations

import os
import re
import shlex
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.errors import TargetUnavailable
from trainlaunch.job.reserved import LABEL_PREFIX
from trainlaunch.run import gpu_holds
from trainlaunch.run.base.host_gpus import gpu_uuids, held_by, held_in
from trainlaunch.run.docker.containers import run_labels
from trainlaunch.run.gpu_holds import reserve_gpus

from tests.conftest import Runs
from tests.jobs import plan_with
from tests.run.conftest import docker

Holder = Callable[..., str]


@pytest.fixture(autouse=True)
def four_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this host have GPUs 0 to 3, as far as their device nodes and the engine's runtime tell."""
    for module in ("docker.checks", "gpu_holds"):
        monkeypatch.setattr(f"trainlaunch.run.{module}.gpu_nodes", lambda: 4)
    monkeypatch.setattr("trainlaunch.run.docker.checks.has_gpu_runtime", lambda _info, *, local: True)


@pytest.fixture
def holder(job_name: str, base_image: str) -> Holder:
    """Start a container that is labelled as a run of another `up` is, and return its name."""

    def hold(gpus: str) -> str:
        name = f"{job_name}-holder-{gpus.replace(',', '-').lower()}"
        labels = [f"--label={LABEL_PREFIX}{key}={value}" for key, value in (("job", job_name), ("gpus", gpus))]
        assert docker("run", "--detach", "--init", "--name", name, *labels, base_image, "sleep", "300")
        return name

    return hold


def pasted(text: str) -> list[str]:
    """Return the words of the command that an error says to type."""
    (line,) = re.findall(r"type `(trainlaunch .*?)`,", text)
    return shlex.split(line)


@pytest.mark.docker
def test_up_refuses_a_gpu_that_a_running_job_has_and_says_what_is_free(
    trainlaunch: Runs, make_job: Callable[..., Path], holder: Holder
) -> None:
    """`gpus: 1` is GPU 0 and no other; the whole command to paste names free ones, and is accepted as it stands."""
    name = holder("0,2")
    job = make_job(resources={"cpus": 1, "memory": "256Mi", "gpus": 2}, command=["true"], name="another")
    done = trainlaunch("up", "--detach", str(job), "--set", "env.A=b c")
    assert done.returncode == 125
    assert f"error[TL531]: GPU 0 of this host is used by {name}" in done.stderr
    words = pasted(done.stderr)
    assert words == ["trainlaunch", "up", "--detach", str(job), "--set", "env.A=b c", "--set", "resources.gpus=[1,3]"]
    free = trainlaunch(*words[1:])
    assert "TL531" not in free.stderr  # this engine itself has no GPU to give
    assert "TL531" not in trainlaunch("up", "--detach", str(job), "--share-gpus").stderr
    trainlaunch("down", "another", "--all")


@pytest.mark.docker
def test_too_few_free_gpus_name_who_to_wait_for(
    trainlaunch: Runs, make_job: Callable[..., Path], holder: Holder
) -> None:
    """A container that has all holds each; one that has ended holds none."""
    name = holder("all")
    job = make_job(resources={"cpus": 1, "memory": "256Mi", "gpus": [3]}, command=["true"], name="another")
    refused = trainlaunch("up", "--detach", str(job))
    assert f"0 of 4 are free; wait for it: `trainlaunch wait {name}`, or add --share-gpus" in refused.stderr
    docker("kill", name)
    assert "TL531" not in trainlaunch("up", "--detach", str(job)).stderr
    trainlaunch("down", "another", "--all")


@pytest.mark.docker
def test_of_two_at_once_one_starts(tmp_path: Path, holder: Holder) -> None:
    """The look and the start are one step under the host's lock."""
    plan = plan_with(tmp_path, resources={"gpus": [1]})
    refused: list[str] = []
    started: list[str] = []

    def up() -> None:
        try:
            with reserve_gpus(plan, "trainlaunch up", lambda _: None):
                started.append(holder("1"))
        except TargetUnavailable as cause:
            refused.append(cause.diagnostics[0].code)

    both = [threading.Thread(target=up) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert (len(started), refused) == (1, ["TL531"])


@pytest.mark.parametrize(
    ("gpus", "vendor", "nodes", "held"),
    [(2, "nvidia", 1, "0,1"), ([3, 1], "nvidia", 1, "3,1"), ("all", "amd", 1, "amd:all"), (2, "amd", 1, "amd:0,amd:1")],
)
def test_a_run_says_which_gpus_it_has(tmp_path: Path, gpus: object, vendor: str, nodes: int, held: str) -> None:
    """In a label of its containers, and nowhere without GPUs; a rendering has no such label."""
    fields = {"resources": {"gpus": gpus, "gpu_vendor": vendor}, "ranks_per_container": 1}
    plan = plan_with(tmp_path, **fields)
    assert held_by(plan) == held
    assert run_labels(plan, run="a", attempt=1)[f"{LABEL_PREFIX}gpus"] == held
    assert f"{LABEL_PREFIX}gpus" not in run_labels(plan_with(tmp_path), run="a", attempt=1)


def test_a_run_of_this_host_has_those_that_its_variables_leave_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell's own choice, or the job's, comes before the first ones of the machine."""

    def held(gpus: object, **env: str) -> str:
        resources = {"gpus": gpus}
        return held_by(plan_with(tmp_path, "local", resources=resources, env=env, ranks_per_container=1))

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert (held(2), held([3]), held("all")) == ("0,1", "3", "all")
    assert held(1, CUDA_VISIBLE_DEVICES="2, 3") == "2,3"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    assert (held(1), held([0]), held("all")) == ("3", "0", "3,1")


def test_containers_of_applied_texts_are_known_by_what_the_engine_gave_them() -> None:
    """A `docker run` line or Compose file that somebody started by hand has no label of a run."""
    gpu = [["gpu"]]
    assert held_in({"DeviceRequests": [{"Count": 2, "DeviceIDs": None, "Capabilities": gpu}]}) == "0,1"
    assert held_in({"DeviceRequests": [{"Count": 0, "DeviceIDs": ["3"], "Capabilities": gpu}]}) == "3"
    assert held_in({"DeviceRequests": [{"Count": -1, "DeviceIDs": None, "Capabilities": gpu}]}) == "all"
    assert held_in({"Devices": [{"PathOnHost": "/dev/kfd"}, {"PathOnHost": "/dev/dri/renderD129"}]}) == "amd:1"
    assert held_in({"DeviceRequests": None, "Devices": []}) == ""


def test_a_lock_that_is_not_ours_to_open_is_said_and_not_followed(tmp_path: Path) -> None:
    """In a folder that all users write to, anybody may have put something else there."""
    said: list[str] = []
    victim = tmp_path / "victim"
    (tmp_path / ".trainlaunch-gpus.lock").symlink_to(victim)
    with gpu_holds._locked(said.append, tmp_path):
        assert not victim.exists()
    (tmp_path / ".trainlaunch-gpus.lock").unlink()
    os.mkfifo(tmp_path / ".trainlaunch-gpus.lock")
    with gpu_holds._locked(said.append, tmp_path):
        assert len(said) == 2


def test_an_id_is_the_number_that_the_bus_gives_it(tmp_path: Path) -> None:
    """The driver tells both without its tools."""
    for bus, uuid in (("0000:3b:00.0", "GPU-b"), ("0000:18:00.0", "GPU-a")):
        (tmp_path / bus).mkdir()
        (tmp_path / bus / "information").write_text(f"Model: H100\nGPU UUID: \t {uuid}\nBus Type: PCIe\n")
    assert gpu_uuids(tmp_path) == {"GPU-a": "0", "GPU-b": "1"}
    assert gpu_uuids(tmp_path / "none") == {}
