"""What the host lacks is said before anything starts, all at once, each with the way out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.host_gpus import gpu_nodes
from trainlaunch.run.docker.attachment import keep_caller
from trainlaunch.run.docker.checks import host_findings, shares_this_host

from tests.jobs import plan_with

ROOMY: dict[str, Any] = {"NCPU": 64, "MemTotal": 512 << 30, "Runtimes": {"runc": {}}}
NVIDIA: dict[str, Any] = {**ROOMY, "Runtimes": {"runc": {}, "nvidia": {}}}


def codes(plan: LaunchPlan, info: dict[str, Any], *, local: bool = False) -> list[str]:
    """Return the codes of what stops the plan."""
    return [each.code for each in host_findings(plan, info, local=local)]


@pytest.mark.parametrize(("cpus", "there", "expected"), [(2, 2, []), ("2.5", 2, ["TL504"]), (64, 2, ["TL504"])])
def test_cpus_above_the_engines_are_refused(tmp_path: Path, cpus: object, there: int, expected: list[str]) -> None:
    """The engine would refuse the limit; exactly as many is fine."""
    plan = plan_with(tmp_path, resources={"cpus": cpus, "memory": "8Gi"})
    assert codes(plan, {**ROOMY, "NCPU": there}) == expected


def test_memory_above_the_hosts_is_refused(tmp_path: Path) -> None:
    """Both numbers are in the message."""
    plan = plan_with(tmp_path, resources={"cpus": 2, "memory": "32Gi"})
    (finding,) = host_findings(plan, {**ROOMY, "MemTotal": 16 << 30}, local=False)
    assert finding.message == "resources.memory 32Gi is more than the engine's 16384Mi"
    assert codes(plan, {**ROOMY, "MemTotal": 32 << 30}) == []


@pytest.mark.parametrize("lacking", ["CpuCfsQuota", "MemoryLimit"])
def test_a_limit_that_the_engine_would_ignore_is_refused(tmp_path: Path, lacking: str) -> None:
    """A rootless engine without delegation runs the job without its limits and only warns.

    Podman on cgroup v1 even says that it enforces them.
    """
    plan = plan_with(tmp_path, resources={"cpus": 2, "memory": "8Gi"})
    rootless = {**ROOMY, "CgroupVersion": "1", "Rootless": True, "MemoryLimit": True, "CpuCfsQuota": True}
    assert codes(plan, rootless) == ["TL504", "TL504"]
    assert codes(plan, {**rootless, "CgroupVersion": "2"}) == codes(plan, {**rootless, "Rootless": False}) == []
    (finding,) = host_findings(plan, {**ROOMY, lacking: False}, local=False)
    assert "can't enforce it" in finding.message
    assert codes(plan_with(tmp_path), {**ROOMY, lacking: False}) == []


def test_all_nodes_must_find_room_on_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory and GPUs are of each node, and all nodes are on one engine."""
    monkeypatch.setattr("trainlaunch.run.docker.checks.gpu_nodes", lambda: 3)
    resources = {"cpus": 8, "memory": "9Gi", "gpus": 2}
    plan = plan_with(tmp_path, "compose", resources=resources, torchrun={"nnodes": 2})
    found = {each.code: each for each in host_findings(plan, {**NVIDIA, "MemTotal": 16 << 30}, local=True)}
    assert found["TL504"].message == "resources.memory 9Gi for each of 2 nodes is more than the engine's 16384Mi"
    assert "below 8192Mi" in found["TL504"].fix
    assert found["TL505"].message == "resources.gpus is 2 for each of 2 nodes and this host has 3"
    assert found["TL505"].fix.startswith("set resources.gpus to 1,")


def test_everything_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPUs, memory, a secret, GPUs and a bind in one go."""
    monkeypatch.delenv("TOKEN", raising=False)
    plan = plan_with(
        tmp_path,
        resources={"cpus": 8, "memory": "32Gi", "gpus": 1},
        secrets={"TOKEN": {"env": "TOKEN"}},
        mounts=[{"type": "bind", "source": "./nowhere", "target": "/data"}],
    )
    found = codes(plan, {"NCPU": 2, "MemTotal": 1 << 30, "Runtimes": {}}, local=True)
    assert found == ["TL504", "TL504", "TL507", "TL505", "TL511"]


@pytest.mark.parametrize("value", [None, ""])
def test_a_secret_without_a_value_is_named_by_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    """Unset and empty alike; the fix is the export."""
    monkeypatch.delenv("HOST_TOKEN", raising=False)
    if value is not None:
        monkeypatch.setenv("HOST_TOKEN", value)
    plan = plan_with(tmp_path, secrets={"TOKEN": {"env": "HOST_TOKEN"}})
    (finding,) = host_findings(plan, ROOMY, local=False)
    assert finding.code == "TL507"
    assert "export HOST_TOKEN" in finding.fix


def test_a_secrets_value_is_in_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else is wrong."""
    monkeypatch.setenv("TOKEN", "s3cr3t")
    plan = plan_with(tmp_path, secrets={"TOKEN": {"env": "TOKEN"}}, resources={"cpus": 99, "memory": "8Gi", "gpus": 1})
    found = host_findings(plan, ROOMY, local=False)
    assert [each.code for each in found] == ["TL504", "TL505"]
    assert "s3cr3t" not in repr(found)


def test_gpus_need_a_runtime_or_a_cdi_device(tmp_path: Path) -> None:
    """A remote engine tells its runtimes and CDI devices, and nothing more."""
    plan = plan_with(tmp_path, resources={"cpus": 2, "memory": "8Gi", "gpus": 1})
    assert codes(plan, ROOMY) == ["TL505"]
    assert codes(plan, NVIDIA) == []
    assert codes(plan, {**ROOMY, "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]}) == []


@pytest.mark.skipif(gpu_nodes() != 0, reason="this host has GPUs")
def test_a_local_engine_without_a_gpu_is_told_from_one_without_a_runtime(tmp_path: Path) -> None:
    """No device node: no toolkit would help."""
    plan = plan_with(tmp_path, resources={"cpus": 2, "memory": "8Gi", "gpus": 1})
    (finding,) = host_findings(plan, NVIDIA, local=True)
    assert "0 GPU devices" in finding.message
    assert "resources.gpus=0" in finding.fix


def test_gpu_nodes_are_counted_by_their_numbers(tmp_path: Path) -> None:
    """/dev/nvidiactl and /dev/nvidia-uvm are no GPUs; WSL has one node for all."""
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps", "null"):
        (tmp_path / name).touch()
    assert gpu_nodes(tmp_path) == 2
    (tmp_path / "dxg").touch()
    assert gpu_nodes(tmp_path) is None


def test_a_bind_is_looked_for_only_where_the_engine_sees_our_files(tmp_path: Path) -> None:
    """Relative to the job file, whatever the current folder is."""
    plan = plan_with(tmp_path, mounts=[{"type": "bind", "source": "./src", "target": "/data"}])
    assert codes(plan, ROOMY, local=False) == []
    assert codes(plan, ROOMY, local=True) == ["TL511"]
    (tmp_path / "src").mkdir()
    assert codes(plan, ROOMY, local=True) == []


def test_the_same_host_is_a_socket_with_our_kernel_and_name() -> None:
    """A virtual machine, a container and a remote engine are other hosts."""
    here = {"KernelVersion": os.uname().release, "Name": os.uname().nodename}
    assert shares_this_host(here, "/var/run/docker.sock")
    assert not shares_this_host(here, None)
    assert not shares_this_host({**here, "KernelVersion": "6.6.12-linuxkit"}, "/var/run/docker.sock")
    assert not shares_this_host({**here, "Name": "docker-desktop"}, "/var/run/docker.sock")


@pytest.mark.parametrize(
    ("info", "podman", "user", "mapping"),
    [
        ({"SecurityOptions": ["name=seccomp,profile=default"]}, False, "7:7", None),
        ({"SecurityOptions": ["name=seccomp", "name=rootless"]}, False, "0:0", None),
        ({"SecurityOptions": ["name=userns", "name=selinux"]}, False, "7:7", "host"),
        ({"Rootless": True, "SecurityOptions": ["name=seccomp"]}, True, "7:7", "keep-id"),
        ({"Rootless": False}, True, "7:7", None),
    ],
)
def test_what_a_callers_container_writes_is_the_callers(
    info: dict[str, Any], podman: bool, user: str, mapping: str | None
) -> None:
    """Engines map a container's users to this host's in ways of their own; Podman's info has no option `rootless`."""
    body: dict[str, Any] = {"User": "7:7", "HostConfig": {}}
    keep_caller(body, info, [8], podman=podman)
    host = body["HostConfig"]
    assert (body["User"], host.get("UsernsMode")) == (user, mapping)
    assert ("GroupAdd" in host) == (user == "7:7" and mapping != "keep-id")
    assert ("SecurityOpt" in host) == ("name=selinux" in info.get("SecurityOptions", ()))
