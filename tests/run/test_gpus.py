"""What the engine receives for GPUs, by each way there is: the script, `up`, Compose. No GPU is needed to create."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.errors import TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render
from trainlaunch.run.base.host_gpus import amd_findings
from trainlaunch.run.docker.backend import DockerBackend

from tests.conftest import Runs
from tests.jobs import plan_with
from tests.render.readers import compose, created
from tests.run.conftest import docker, inspected

MIG = "MIG-1b2c3d4e-0000-1111-2222-333344445555"
KFD = "/dev/kfd"


def request(count: int, ids: list[str] | None) -> dict[str, Any]:
    """Return the engine's words for NVIDIA GPUs."""
    return {"Count": count, "DeviceIDs": ids, "Capabilities": [["gpu"]]}


Case = tuple[dict[str, Any], list[dict[str, Any]], list[str]]
CASES: list[Case] = [
    ({}, [], []),
    ({"gpus": 2, "gpu_vendor": "nvidia"}, [request(2, None)], []),
    ({"gpus": "all"}, [request(-1, None)], []),
    ({"gpus": ["GPU-abc", MIG]}, [request(0, ["GPU-abc", MIG])], []),
    ({"gpus": [3, 0], "gpu_vendor": "amd"}, [], [KFD, "/dev/dri/renderD131", "/dev/dri/renderD128"]),
    ({"gpus": "all", "gpu_vendor": "amd"}, [], [KFD, "/dev/dri"]),
]
# Of forms that are there already.
MORE_CASES: list[Case] = [
    ({"gpus": 0, "gpu_vendor": "amd"}, [], []),
    ({"gpus": 1}, [request(1, None)], []),
    ({"gpus": [1]}, [request(0, ["1"])], []),
    ({"gpus": [0, 3]}, [request(0, ["0", "3"])], []),
    ({"gpus": 1, "gpu_vendor": "amd"}, [], [KFD, "/dev/dri/renderD128"]),
    ({"gpus": 2, "gpu_vendor": "amd"}, [], [KFD, "/dev/dri/renderD128", "/dev/dri/renderD129"]),
]


def by_script(plan: LaunchPlan, folder: Path) -> dict[str, Any]:
    """Create by the rendered docker text."""
    return created(render(plan), cwd=folder)


def by_up(plan: LaunchPlan, _folder: Path) -> dict[str, Any]:
    """Create by the backend."""
    backend = DockerBackend()
    try:
        return inspected(backend.create(plan, "0123abcd", 1))
    finally:
        backend.close()


def by_compose(plan: LaunchPlan, folder: Path) -> dict[str, Any]:
    """Create by the real Compose."""
    text = render(plan)
    try:
        done = compose("create", text=text, cwd=folder)
        assert done.returncode == 0, done.stderr
        project = f"--filter=label=com.docker.compose.project={plan.name}"
        return inspected(docker("ps", "--all", "--quiet", project))
    finally:
        compose("down", "--volumes", text=text, cwd=folder)


WAYS = {"script": (by_script, "docker"), "up": (by_up, "docker"), "compose": (by_compose, "compose")}


@pytest.mark.docker
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("gpus", "requests", "devices"),
    [
        *(pytest.param(*each, id=str(each[0])) for each in CASES),
        *(pytest.param(*each, id=str(each[0]), marks=pytest.mark.long) for each in MORE_CASES),
    ],
)
def test_the_engine_receives_these_gpus(
    fields: dict[str, Any], tmp_path: Path, way: str, gpus: dict[str, Any], requests: Any, devices: list[str]
) -> None:
    """NVIDIA's as device requests, AMD's as device nodes; no variable hides devices that the container has anyway."""
    create, target = WAYS[way]
    resources = {**fields["resources"], **gpus}
    over = {"resources": resources, "ranks_per_container": 1, "group_add": ["109"]}
    found = create(plan_with(tmp_path, target, **{**fields, **over}), tmp_path)
    host = found["HostConfig"]
    received = [
        {key: each[key] for key in ("Count", "DeviceIDs", "Capabilities")} for each in host["DeviceRequests"] or ()
    ]
    assert received == requests
    assert [each["Driver"] for each in host["DeviceRequests"] or ()] == ["nvidia" if way == "compose" else ""] * len(
        requests
    )
    nodes = [(each["PathOnHost"], each["PathInContainer"], each["CgroupPermissions"]) for each in host["Devices"] or ()]
    assert nodes == [(each, each, "rwm") for each in devices]
    assert host["GroupAdd"] == ["109"]
    assert not [each for each in found["Config"]["Env"] or () if "VISIBLE_DEVICES" in each]


@pytest.mark.docker
@pytest.mark.skipif(Path(KFD).exists(), reason="this host has AMD GPUs")
def test_up_says_before_the_start_that_there_is_no_amd_gpu(trainlaunch: Runs, make_job: Callable[..., Path]) -> None:
    """The engine would name a device file and nothing to do about it."""
    done = trainlaunch("up", str(make_job(resources={"cpus": 1, "memory": "256Mi", "gpus": 1, "gpu_vendor": "amd"})))
    assert done.returncode == 125
    assert "error[TL505]: resources.gpus is 1 and this host has 0 AMD GPUs (/dev/kfd is missing)" in done.stderr


@pytest.mark.docker
@pytest.mark.skipif(Path(KFD).exists(), reason="this host has AMD GPUs")
def test_an_engine_elsewhere_without_amd_gpus_gets_the_same_code(fields: dict[str, Any], tmp_path: Path) -> None:
    """Its own refusal at the start is the first that anybody can know; the engine's words stay in it."""
    resources = {**fields["resources"], "gpus": 1, "gpu_vendor": "amd"}
    plan = plan_with(tmp_path, **{**fields, "resources": resources})
    backend = DockerBackend()
    try:
        with pytest.raises(TargetUnavailable, match="TL505") as caught:
            backend.begin(backend.create(plan, "0123abcd", 1))
    finally:
        backend.close()
    assert "/dev/kfd" in caught.value.diagnostics[0].why


def host_of(folder: Path, *, kfd: bool, vendors: dict[int, str | None]) -> dict[str, Path]:
    """Make the device nodes and what the system tells of them; a vendor of None is not told."""
    dev, sys = folder / "dev", folder / "sys"
    (dev / "dri").mkdir(parents=True)
    if kfd:
        (dev / "kfd").touch()
    for number, vendor in vendors.items():
        (dev / "dri" / f"renderD{number}").touch()
        (dev / "dri" / f"card{number - 128}").touch()
        device = sys / "class" / "drm" / f"renderD{number}" / "device"
        device.mkdir(parents=True)
        if vendor is not None:
            (device / "vendor").write_text(f"{vendor}\n")
    return {"dev": dev, "sys": sys}


AMD, INTEL = "0x1002", "0x8086"
HOSTS: list[tuple[Any, bool, dict[int, str | None], str]] = [
    (1, True, {128: AMD}, ""),
    (2, True, {128: AMD, 129: None}, ""),
    ([1], True, {128: INTEL, 129: AMD}, ""),
    ("all", True, {128: INTEL, 129: AMD}, ""),
    (1, False, {}, "this host has 0 AMD GPUs (/dev/kfd is missing)"),
    (1, True, {}, "this host has 0 AMD GPUs (/dev/dri/renderD128 is missing)"),
    ("all", True, {128: INTEL}, "this host has 0 AMD GPUs"),
    (2, True, {128: AMD}, "/dev/dri/renderD129 of this host is no AMD GPU or not there"),
    (1, True, {128: INTEL, 129: AMD, 1000: AMD}, "write gpus: [1, 872]"),
]


@pytest.mark.parametrize(
    ("gpus", "kfd", "vendors", "said"), HOSTS, ids=[f"{h[0]} of {h[2]}, kfd {h[1]}" for h in HOSTS]
)
def test_device_nodes_of_the_host_are_compared_with_what_is_asked(
    tmp_path: Path, gpus: Any, kfd: bool, vendors: dict[int, str | None], said: str
) -> None:
    """A count takes the first render nodes, so another maker's GPU in front is said, with the numbers to write."""
    plan = plan_with(tmp_path, resources={"cpus": 8, "gpus": gpus, "gpu_vendor": "amd"}, ranks_per_container=1)
    found = list(amd_findings(plan, **host_of(tmp_path, kfd=kfd, vendors=vendors)))
    assert [each.code for each in found] == ["TL505"] * bool(said)
    assert all(said in f"{each.message}; {each.fix}" for each in found)


def test_a_job_for_nvidia_asks_nothing_of_amd(tmp_path: Path) -> None:
    """The same host, the other maker."""
    plan = plan_with(tmp_path, resources={"cpus": 8, "gpus": 1})
    assert list(amd_findings(plan, **host_of(tmp_path, kfd=False, vendors={}))) == []
