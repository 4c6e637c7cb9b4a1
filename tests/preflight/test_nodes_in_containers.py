"""Several nodes find each other: who keeps the rendezvous is told to torch, which would ask DNS and wait in vain."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from trainlaunch.container.container import VARIABLE, container_of
from trainlaunch.job.reserved import PLAN_VARIABLE
from trainlaunch.plan.launch_plan import LaunchPlan

from tests.conftest import Runs
from tests.jobs import plan_with
from tests.preflight.containers import SHM, Case, RunsCases

pytestmark = pytest.mark.docker

# Stands in for torch, which is not asked here.
TORCHRUN = "printf '#!/bin/sh\\necho \"$PET_RDZV_CONF\"\\n' >/usr/local/bin/torchrun; chmod 755 /usr/local/bin/torchrun"
LISTENS = "until grep -q ':733C 0*:0000 0A' /proc/net/tcp6 /proc/net/tcp; do sleep 0.2; done"  # port 29500
TOGETHER = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {total.item()}")
dist.destroy_process_group()
"""


@pytest.fixture
def network(own_label: str) -> Iterator[str]:
    """A network of its own, whose DNS knows containers by their names and not by their host names."""
    name = f"trainlaunch-test-{uuid.uuid4().hex[:12]}"
    subprocess.run(["docker", "network", "create", f"--label={own_label}", name], check=True, capture_output=True)
    yield name
    subprocess.run(["docker", "network", "rm", name], check=True, capture_output=True)


def several(folder: Path, *command: str, nodes: int = 2) -> LaunchPlan:
    """Return the plan of a job on several nodes of a cluster."""
    return plan_with(
        folder,
        "kubernetes",
        command=list(command),
        resources={"cpus": 1, "memory": "1Gi"},
        shm_size="256Mi",
        data_loader={"num_workers": 0},
        torchrun={"nnodes": nodes},
    )


def test_one_node_keeps_the_rendezvous(run_cases: RunsCases, tmp_path: Path) -> None:
    """The index that the controller gives says so, else the name in the endpoint; the job's own settings come last."""
    told: list[tuple[dict[str, str], str]] = [
        ({"JOB_COMPLETION_INDEX": "0"}, "1"),
        ({"JOB_COMPLETION_INDEX": "1"}, "0"),
        ({"JOB_COMPLETION_INDEX": "10", "RANK": "0"}, "0"),
        ({"RANK": "0"}, "1"),
        ({"RANK": "2"}, "0"),
        ({VARIABLE: "node-0.set:29500"}, "1"),
        ({VARIABLE: "node-0:29500"}, "1"),
        ({VARIABLE: "node-1.set:29500"}, "0"),
        ({VARIABLE: "etcd.example.com:2379"}, "0"),
        ({"RANK": "0", "PET_RDZV_CONF": "is_host=0,a=b"}, "1,is_host=0,a=b"),
    ]
    plan = several(tmp_path, "true")
    given = dict(container_of(plan).env)
    cases = [Case(plan, env={**given, **env}, setup=TORCHRUN) for env, _ in told]
    ends = run_cases(cases, SHM, "--network=none", "--hostname=node-0")
    for end, (env, rest) in zip(ends, told, strict=True):
        assert (end.code, end.out) == (0, f"join_timeout=1800,read_timeout=1800,is_host={rest}\n"), (env, end.err)


def test_two_nodes_train_together_though_dns_learns_of_node_0_late(
    docker_run: Runs, torch_image: str, own_label: str, network: str, tmp_path: Path
) -> None:
    """Node 0 keeps the rendezvous before anybody can look its name up, itself included."""
    plan = several(tmp_path, "python3", "-c", TOGETHER)
    container = container_of(plan)
    host = dict(container.env)[VARIABLE].partition(":")[0]
    short = host.partition(".")[0]
    argv = [torch_image, *container.entrypoint[1:], *container.args]
    # No name is looked up beyond these containers: a server that nobody reaches would be waited for.
    flags = [SHM, f"--network={network}", "--dns=127.0.0.1", "--entrypoint=/bin/sh", f"--env={VARIABLE}={host}:29500"]
    flags += [f"--env={PLAN_VARIABLE}={dict(container.env)[PLAN_VARIABLE]}"]
    own = [f"--label={own_label}", f"--hostname={short}", "--env=JOB_COMPLETION_INDEX=0"]
    first = docker("run", "--detach", "--init", *flags, *own, *argv)
    try:
        address = docker("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", first)
        docker("exec", first, "sh", "-c", LISTENS)
        docker("exec", "--user=0", first, "sh", "-c", f"echo {address} {host} >>/etc/hosts")
        known = [f"--add-host={name}:{address}" for name in (host, short)]
        other = [f"--hostname={short.removesuffix('0')}1", "--env=JOB_COMPLETION_INDEX=1"]
        second = docker_run(*flags, *known, *other, *argv, timeout=240)
        code = docker("wait", first)
        log = docker("logs", first)
    finally:
        docker("rm", "--force", first)
    assert (code, second.returncode) == ("0", 0), second.stderr
    assert sorted([log, second.stdout.strip()]) == ["rank 0 of 2: 3.0", "rank 1 of 2: 3.0"]


def docker(*args: str) -> str:
    """Return what a docker command prints on stdout."""
    return subprocess.run(["docker", *args], check=True, capture_output=True, text=True, timeout=240).stdout.strip()
