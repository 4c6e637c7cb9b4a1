"""`up` makes exactly the container that the rendered `docker run` text makes, field by field of `docker inspect`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.container.job_variables import ATTEMPT
from trainlaunch.errors import TargetUnavailable
from trainlaunch.formats.docker.table import FOR_UP
from trainlaunch.job.reserved import LABEL_PREFIX
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.run.docker.backend import DockerBackend
from trainlaunch.run.docker.checks import flag_findings, host_findings

from tests.jobs import plan_with
from tests.run.conftest import ROOT, docker, inspected

WIDE_EXAMPLES = {"own_entrypoint", "resume", "two_ranks"}  # an ENTRYPOINT, a volume, torchrun and what tells of health
EXAMPLES = [
    pytest.param(path, marks=[] if path.parent.name in WIDE_EXAMPLES else pytest.mark.long)
    for path in sorted(ROOT.glob("examples/*/*.yaml"))
    if path.parent.name != "two_nodes"  # several nodes are no `docker run`
]
RUN_LABELS = {
    LABEL_PREFIX + each for each in ("run", "attempt", "max-attempts", "owner", "gpus", "secrets", "measures", "shm")
}
FILES = {f"{each}Path" for each in ("ResolvConf", "Hostname", "Hosts", "Log")}
NOT_ASKED_FOR = {"Id", "Created", "State", "GraphDriver", "NetworkSettings"} | FILES
PARITY = "trainlaunch-test.parity"  # a volume
WIDE: dict[str, Any] = {
    "image_entrypoint": ["/usr/bin/env", "FRONT=1"],
    "command": ["python3", "-c", "print('a $HOME \"b\"')", "--x={num_workers}", "", "-lead", "two\nlines\n"],
    "working_dir": "/workspace",
    "user": "1000:1000",
    "group_add": ["44", "video"],
    "read_only": True,
    "stop_signal": "SIGINT",
    "stop_grace_period": "1m30s",
    "env": {"A": "1", "NASTY": " $HOME `x` 'q' \"d\" \\ é\n", "EMPTY": "", "YES": "no"},
    "labels": {"team": "vision $x", "empty": ""},
    "secrets": {
        "TOKEN": {"env": "TOKEN"},
        "RENAMED": {"env": "HOST_TOKEN"},
        "WRITTEN": {"env": "HOST_TOKEN", "as": "file"},
        "READ": {"file": "./s, \"rc\"/token"},
        "BOUND": {"file": "./s, \"rc\"/token", "as": "file"},
    },
    "mounts": [
        {"type": "bind", "source": "./s, \"rc\"", "target": "/workspace"},
        {"type": "bind", "source": "/usr/share", "target": "/data", "read_only": True},
        {"type": "tmpfs", "target": "/cache"},
        {"type": "tmpfs", "target": "/data/below, it $x"},
        {"type": "volume", "source": PARITY, "target": "/cache/deep/er", "read_only": True},
        {"type": "scratch", "target": "/scratch"},
    ],
    "ulimits": {"nofile": {"soft": 1024, "hard": 2048}, "core": 0},
    "healthcheck": {"interval": "45s", "timeout": "7s", "retries": 5, "start_period": "2m"},
}  # fmt: skip
# All forms of both, by each way, are compared in test_gpus.py.
GPUS = [{"gpus": ["0", "GPU-abc"]}, {"gpus": ["0", "3"], "gpu_vendor": "amd"}]


@pytest.fixture
def creating_docker(tmp_path: Path) -> Path:
    """Return a folder for PATH in which `docker run` creates and does not start."""
    real = subprocess.run(["sh", "-c", "command -v docker"], capture_output=True, text=True, check=True).stdout.strip()
    folder = tmp_path / "bin"
    folder.mkdir()
    shim = folder / "docker"
    shim.write_text(f'#!/bin/sh\n[ "$1" = run ] || exec {real} "$@"\nshift\nexec {real} create "$@"\n')
    shim.chmod(0o755)
    return folder


def fields_of(value: Any, path: str = "") -> dict[str, Any]:
    """Return a document as dotted paths and leaves; null and empty mean the same to the engine and are left out."""
    if isinstance(value, dict):
        pairs = [(f"{path}.{key}", each) for key, each in value.items()]
    elif isinstance(value, list):
        pairs = [(f"{path}[{index}]", each) for index, each in enumerate(value)]
    else:
        return {} if value in (None, "") else {path: value}
    return {name: leaf for key, each in pairs for name, leaf in fields_of(each, key).items()}


def created_by_text(plan: LaunchPlan, bin_folder: Path, secrets: dict[str, str]) -> dict[str, Any]:
    """Run the rendered text and describe what it made."""
    environment = {**os.environ, **secrets, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["/bin/sh"],
        input=render(plan),
        env=environment,
        cwd=Path(plan.job.path).parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return described_and_removed(done.stdout.strip())


def created_by_up(plan: LaunchPlan) -> dict[str, Any]:
    """Create by the backend and describe it."""
    backend = DockerBackend()
    try:
        return described_and_removed(backend.create(plan, "0123abcd", 1))
    finally:
        backend.close()


def described_and_removed(container: str) -> dict[str, Any]:
    """Return the inspect document without what no one asked for: ids, times, generated paths and names."""
    found = {key: value for key, value in inspected(container).items() if key not in NOT_ASKED_FOR}
    docker("rm", "--volumes", container)
    if found["Config"]["Hostname"] == container[:12]:
        del found["Config"]["Hostname"]
    found["Config"]["Labels"] = {
        key: value for key, value in found["Config"]["Labels"].items() if key not in RUN_LABELS
    }
    del found["HostConfig"]["AutoRemove"]
    docker("volume", "rm", PARITY)
    for mount in found["Mounts"]:
        if mount["Type"] == "volume":
            del mount["Name"], mount["Source"]
    # Sets: the engine keeps mounts in a map, the CLI sends env and binds in the order of one, and sorts ulimits.
    found["Config"]["Env"] = sorted(each for each in found["Config"]["Env"] or [] if not each.startswith(ATTEMPT))
    found["Mounts"].sort(key=lambda each: each["Destination"])
    (found["HostConfig"]["Binds"] or []).sort()
    found["HostConfig"]["Ulimits"] = sorted(found["HostConfig"]["Ulimits"] or [], key=lambda each: each["Name"])
    return fields_of(found)


@pytest.mark.docker
@pytest.mark.parametrize("gpus", GPUS, ids=["nvidia", "amd"])
def test_a_wide_job_is_the_same_both_ways(
    fields: dict[str, Any], tmp_path: Path, creating_docker: Path, monkeypatch: pytest.MonkeyPatch, gpus: dict[str, Any]
) -> None:
    """Every field that docker can express, with strings that shells and CSV readers stumble over."""
    secrets = {"TOKEN": "s3 $cret", "HOST_TOKEN": "other"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    (tmp_path / 's, "rc"').mkdir()
    (tmp_path / 's, "rc"' / "token").write_text("of a\nfile\n\n")
    resources = {"cpus": "1.5", "memory": "700Mi", **gpus}
    plan = plan_with(tmp_path, **{**fields, **WIDE, "resources": resources, "ranks_per_container": 1})
    assert created_by_up(plan) == created_by_text(plan, creating_docker, secrets)


@pytest.mark.docker
def test_a_small_job_is_the_same_both_ways(fields: dict[str, Any], tmp_path: Path, creating_docker: Path) -> None:
    """What is not stated is left to the image and the engine in both."""
    plan = plan_with(tmp_path, **fields)
    assert created_by_up(plan) == created_by_text(plan, creating_docker, {})


@pytest.mark.docker
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_example_is_the_same_both_ways(path: Path, base_image: str, job_name: str, creating_docker: Path) -> None:
    """Every committed example; by default those with what none of the jobs above has."""
    here = (f"image={base_image}", f"name={job_name}", "resources.cpus=2")  # one example asks for more
    plan = plan_job(read_job(path, target="docker", sets=here))
    if any(each.type == "volume" for each in plan.job.mounts):  # none that a user's run has filled, and taken away
        own = (each._replace(source=PARITY) if each.type == "volume" else each for each in plan.job.mounts)
        plan = plan._replace(job=plan.job._replace(mounts=tuple(own)))
    assert created_by_up(plan) == created_by_text(plan, creating_docker, {})


# Each flag that `up` can give, in the forms that people write: those that stand together in one container.
FLAGS = {
    "most": [
        "--add-host", "db:10.0.0.1", "--add-host=other:10.0.0.2",
        "--cap-add", "SYS_PTRACE", "--cap-add=cap_ipc_lock", "--cap-drop", "NET_RAW",
        "--cgroup-parent", "/trainlaunch-test",
        "--cgroupns=private",
        "-c", "512",
        "--cpuset-cpus", "0", "--cpuset-mems=0",
        "--device", "/dev/null", "--device=/dev/zero:/dev/zz:r", "--device=/dev/full:rw",
        "--device-cgroup-rule", "c 1:3 rwm",
        "--dns", "10.0.0.53", "--dns-option=ndots:2", "--dns-search", "example.com",
        "--hostname=there", "--domainname", "example.com",
        "-e", "X=a $b", "--env=EMPTY=", "--env", "FROM_HERE", "--env=NOT_HERE",
        "--expose", "80", "--expose=53/udp",
        "-p", "127.0.0.1:8080:80", "-p8081:81/udp", "--publish=82", "--publish-all",
        "-l", "note=a $b", "--label=bare",
        "--log-driver", "json-file", "--log-opt=max-size=1m", "--log-opt", "max-file=2",
        "--memory-reservation=64m", "--memory-swap", "-1", "--memory-swappiness=10",
        "--mount", "type=bind,src=/usr/share,dst=/s,ro,bind-propagation=rslave",
        "--mount=type=tmpfs,destination=/t,tmpfs-size=16m,tmpfs-mode=1770",
        "--mount", "source=trainlaunch-test-own,target=/v,volume-nocopy",
        "--oom-kill-disable", "--oom-score-adj", "-100",
        "--pids-limit", "100",
        "--privileged=false",
        "--runtime=runc",
        "--security-opt", "no-new-privileges", "--security-opt=seccomp=unconfined",
        "--security-opt=apparmor=unconfined",
        "--sysctl", "net.core.somaxconn=1024",
        "--tmpfs", "/a", "--tmpfs=/b:size=1m,exec",
        "--ulimit", "nofile=512:1024", "--ulimit=core=0",
        "-v", "/usr/share:/u:ro", "--volume=trainlaunch-test-own:/w", "-v", "/anonymous",
    ],
    "the host's": [
        "--net=host", "--uts=host", "--pid", "host", "--privileged", "--userns=host",
        "--cap-drop=CHOWN", "--cap-drop=ALL", "--cap-add", "chown",
        "--memory-swap=1g",
    ],
    "all but": ["--cap-drop=ALL", "--cap-add=all", "--cap-add", "chown", "-h", "there", "--network", "none"],
    "more dropped": ["--cap-drop=CHOWN", "--cap-drop=KILL", "--cap-add", "chown"],
}  # fmt: skip
# Hosts that can't have these refuse them, in the same way.
MAYBE_REFUSED = {"blkio": ["--blkio-weight=300"], "storage": ["--storage-opt", "size=1G"]}


def outcome(create: Callable[[], dict[str, Any]]) -> dict[str, Any] | str:
    """Return what was made, or that the engine refused it, which it may do on this host: the same both ways."""
    try:
        return create()
    except (AssertionError, TargetUnavailable):
        return "refused"


@pytest.mark.docker
@pytest.mark.parametrize("name", [*FLAGS, *MAYBE_REFUSED])
def test_flags_of_a_patch_are_the_same_both_ways(
    tmp_path: Path,
    base_image: str,
    job_name: str,
    creating_docker: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """The engine is told the same by `up` as by the docker command."""
    arguments = {**FLAGS, **MAYBE_REFUSED}[name]
    monkeypatch.setenv("FROM_HERE", "value of this shell")
    fields = {"image": base_image, "name": job_name, "resources": {"memory": "512Mi"}}
    plan = plan_with(tmp_path, **fields, patches={"docker": {"extra_args": arguments}})
    assert list(flag_findings(plan)) == []
    made = outcome(lambda: created_by_up(plan))
    assert made == outcome(lambda: created_by_text(plan, creating_docker, {}))
    docker("volume", "rm", "--force", "trainlaunch-test-own")
    assert made != "refused" or name in MAYBE_REFUSED


def test_each_flag_that_up_can_give_is_compared() -> None:
    """None is taken on trust."""
    words = " ".join(word for each in (FLAGS | MAYBE_REFUSED).values() for word in each)
    short = {"cpu-shares": "-c", "volume": "-v"}
    assert [each for each in sorted(FOR_UP) if f"--{each}" not in words and short.get(each, "!") not in words] == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--ip", "10.0.0.4"], "no create request says"),
        (["--annotation=a=b"], "no create request says"),
        (["--network", "name=x,alias=y"], "in steps"),
        (["-p", "8000-8010:8000-8010"], "not a single port"),
        (["--security-opt", "seccomp=/etc/profile.json"], "reads a file"),
        (["--mount", "type=volume,target=/x,volume-driver=local"], "has the option volume-driver"),
        (["--device", "vendor.com/class=name"], "not a path of a device"),
        (["--memory-swap", "1.5g"], "not a size in whole units"),
        (["--ulimit", "nofile"], "not a limit"),
        (["--pids-limit", "many"], "invalid literal"),
    ],
)
def test_up_refuses_a_flag_that_only_the_command_line_can_give(tmp_path: Path, arguments: list[str], why: str) -> None:
    """Before anything starts, at the flag's place; the rendered text has it."""
    plan = plan_with(tmp_path, patches={"docker": {"extra_args": arguments}})
    (found,) = flag_findings(plan)
    assert (found.code, found.field) == ("TL147", "patches.docker.extra_args.0")
    assert found.span
    assert why in found.why
    assert found in host_findings(plan, {}, local=False)
    assert arguments[-1].rpartition("=")[2] in render(plan)
