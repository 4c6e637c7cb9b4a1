"""What a local run starts: this host's paths, programs and GPUs in the place of the container's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.host_paths import host_path
from trainlaunch.run.local.process_spec import ProcessSpec, process_spec
from trainlaunch.run.local.record import signal_number

from tests.jobs import job_with, plan_with


def spec(folder: Path, **fields: Any) -> ProcessSpec:
    """Return what a job's local run starts."""
    plan = plan_with(folder, "local", **fields)
    return process_spec(plan, run_id="digits-0-1", attempt=1, folder=Path("/state/digits/0-1"))


def codes(folder: Path, **fields: Any) -> list[tuple[str, str]]:
    """Return code and field of what is wrong with a local job."""
    try:
        job_with(folder, "local", **fields)
    except JobFileRejected as rejected:
        return [(each.code, each.field) for each in rejected.diagnostics]
    return []


def bind(source: str, target: str) -> dict[str, str]:
    """Return a bind mount."""
    return {"type": "bind", "source": source, "target": target}


def test_working_dir_and_arguments_are_mapped_to_the_source(tmp_path: Path) -> None:
    """Whole arguments and option values, at the target or below it; a longer name is another path."""
    command = ["python", "/workspace/train.py", "--data=/data", "/workspace", "/workspaces/x", "--out=out"]
    got = spec(
        tmp_path,
        command=command,
        working_dir="/workspace/sub",
        mounts=[bind("./src", "/workspace"), bind("/mnt/imagenet", "/data")],
    )
    assert got.cwd == f"{tmp_path}/src/sub"
    assert got.argv[-5:] == (
        f"{tmp_path}/src/train.py",
        "--data=/mnt/imagenet",
        f"{tmp_path}/src",
        "/workspaces/x",
        "--out=out",
    )


def test_the_deepest_target_wins() -> None:
    """As among mounts."""
    assert host_path("/a/b/c", {"/a": "/x", "/a/b": "/y"}) == "/y/c"


def test_without_a_working_dir_it_is_the_job_files_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the command is typed."""
    monkeypatch.chdir("/")
    assert spec(tmp_path).cwd == str(tmp_path)


def test_the_wrapper_is_the_preflight_before_the_argv(tmp_path: Path) -> None:
    """As in a container, without an image's ENTRYPOINT."""
    got = spec(tmp_path, image_entrypoint=["tini", "--"], command=["echo", "x"])
    assert got.argv[:2] == ("/bin/sh", "-c")
    assert "trainlaunch preflight" in got.argv[2]
    assert got.argv[3:] == ("trainlaunch", "echo", "x")


@pytest.mark.parametrize("torchrun", [None, {}])
def test_python_is_paths_then_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torchrun: dict[str, int] | None
) -> None:
    """Behind torchrun too; the folder of our own programs is the last on PATH."""
    own = tmp_path / "own" / "python3"
    monkeypatch.setattr(sys, "executable", str(own))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    fields = {"command": ["python", "python"], "torchrun": torchrun}
    got = spec(tmp_path, **fields)
    assert got.argv[-2:] == (str(own), "python")
    assert got.env["PATH"] == f"{tmp_path}/bin:{tmp_path}/own"
    for folder in ("bin", "own"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "python").touch(mode=0o755)
        assert spec(tmp_path, **fields).argv[-2:] == ("python", "python")


def test_variables_have_the_containers_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell's, then ours, then the job's, then secrets; variables of a run that we run in are not the job's."""
    for name, value in {"A": "shell", "B": "shell", "TOKEN": "t", "TRAINLAUNCH_NUM_WORKERS": "9"}.items():
        monkeypatch.setenv(name, value)
    env = spec(tmp_path, env={"B": "job"}, secrets={"S": {"env": "TOKEN"}}).env
    assert [env[name] for name in ("A", "B", "S", "TRAINLAUNCH_RUN_ID")] == ["shell", "job", "t", "digits-0-1"]
    assert "TRAINLAUNCH_NUM_WORKERS" not in env
    assert spec(tmp_path, env={"TRAINLAUNCH_RUN_ID": "mine"}).env["TRAINLAUNCH_RUN_ID"] == "mine"


@pytest.mark.parametrize(
    ("gpus", "inherited", "visible", "numbering"),
    [
        (0, None, "", None),
        (0, "3", "", None),
        (2, None, "0,1", "PCI_BUS_ID"),
        (2, "5,3,1", "5,3", None),
        ([0, 3], None, "0,3", "PCI_BUS_ID"),
        (["GPU-0a", "MIG-1b"], "7", "GPU-0a,MIG-1b", None),
    ],
)
def test_a_job_sees_the_gpus_that_it_asks_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    gpus: object,
    inherited: str | None,
    visible: str,
    numbering: str | None,
) -> None:
    """None, the first of those that the shell has, or its own by the numbers of nvidia-smi."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    if inherited is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", inherited)
    env = spec(tmp_path, resources={"gpus": gpus}).env
    assert (env["CUDA_VISIBLE_DEVICES"], env.get("CUDA_DEVICE_ORDER")) == (visible, numbering)


@pytest.mark.parametrize(
    ("gpus", "there", "inherited", "visible"),
    [
        (0, [0, 1], None, ""),
        (2, [0, 1, 2], None, "0,1"),
        (1, [0, 1], "3,1", "3"),
        ([1], [0, 1], "3", "1"),
        ([1, 2], [1, 2], None, "0,1"),
    ],
)
def test_gpus_of_amd_are_hips_own_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpus: Any, there: list[int], inherited: str | None, visible: str
) -> None:
    """HIP counts AMD's GPUs alone; a job's ids count render nodes, of which another maker may have the first."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("trainlaunch.run.base.host_gpus.amd_gpus", lambda: there)
    if inherited is not None:
        monkeypatch.setenv("HIP_VISIBLE_DEVICES", inherited)
    env = spec(tmp_path, resources={"gpus": gpus, "gpu_vendor": "amd"}).env
    assert env["HIP_VISIBLE_DEVICES"] == visible
    assert not {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"} & set(env)
    all_of_them = {"gpus": "all", "gpu_vendor": "amd"}
    assert "HIP_VISIBLE_DEVICES" not in spec(tmp_path, resources=all_of_them, ranks_per_container=1).env or inherited


def test_all_gpus_and_the_jobs_own_choice_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is set for `all`, and the job's own variable wins."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert "CUDA_VISIBLE_DEVICES" not in spec(tmp_path, resources={"gpus": "all"}, ranks_per_container=1).env
    own = spec(tmp_path, resources={"gpus": 1}, env={"CUDA_VISIBLE_DEVICES": "7"}).env
    assert own["CUDA_VISIBLE_DEVICES"] == "7"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"mounts": [bind("./src", "/w")], "working_dir": "/w"}, []),
        ({"mounts": [bind("/data", "/data")], "env": {"D": "/data"}}, []),
        ({"mounts": [bind("./src", "/w")]}, ["mounts.0"]),
        ({"mounts": [bind("./src", "/w")], "working_dir": "/w", "env": {"D": "/w/data"}}, ["mounts.0"]),
        ({"mounts": [bind("./src", "/w")], "command": ["sh", "-c", "cd /w && ls"], "working_dir": "/w"}, ["mounts.0"]),
        ({"mounts": [bind("./src", "/w")], "command": None, "script": "ls /w", "working_dir": "/w"}, ["mounts.0"]),
        ({"mounts": [{"type": "tmpfs", "target": "/scratch"}]}, ["mounts.0"]),
        ({"mounts": [{"type": "pvc", "source": "code", "target": "/w"}]}, ["mounts.0"]),
        ({"mounts": [{"type": "volume", "source": "code", "target": "/w"}], "working_dir": "/w"}, ["mounts.0"]),
        ({"annotations": {"a": "b"}}, ["annotations"]),
        ({"ulimits": {"nofile": 1024}, "user": "1000", "read_only": True, "labels": {"a=b": "c"}}, []),
    ],
)
def test_a_mount_that_nothing_maps_is_an_error(tmp_path: Path, fields: dict[str, Any], expected: list[str]) -> None:
    """TL401: a path of a container that would not be there; what is the same on the host, or mapped, passes."""
    assert codes(tmp_path, **fields) == [("TL401", field) for field in expected]


def test_target_overrides_local_is_the_way_out(tmp_path: Path) -> None:
    """As every error of a mount says."""
    fields: dict[str, Any] = {
        "mounts": [{"type": "pvc", "source": "code", "target": "/w"}],
        "working_dir": "/w",
        "target_overrides": {"local": {"mounts": [], "working_dir": "/src"}},
    }
    assert spec(tmp_path, **fields).cwd == "/src"


def test_an_unsized_job_takes_the_hosts_shm_as_it_is(tmp_path: Path) -> None:
    """A cap of 8 GiB is no reason to stop where /dev/shm can't be made larger."""
    fields: dict[str, Any] = {"data_loader": {"num_workers": 2}}
    assert plan_with(tmp_path, "docker", **fields).shm.minimum == 8 << 30
    local = plan_with(tmp_path, "local", **fields).shm
    assert local.minimum == local.need


@pytest.mark.parametrize(
    ("name", "number"), [(None, 15), ("TERM", 15), ("SIGUSR1", 10), ("2", 2), ("RTMIN+3", 37), ("SIGRTMIN", 34)]
)
def test_stop_signals_have_docker_s_spellings(name: str | None, number: int) -> None:
    """With and without SIG, by number, and real-time ones."""
    assert signal_number(name) == number
