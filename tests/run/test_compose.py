"""Target compose on real containers: what runs, what is left, and several nodes as services of one project."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.errors import TargetUnavailable
from trainlaunch.policy import read_job
from trainlaunch.rules import plan_job
from trainlaunch.run.backends import compose_backend
from trainlaunch.run.base.backend import Session
from trainlaunch.run.base.console import SAME_PRESS_SECONDS
from trainlaunch.run.compose.backend import ComposeBackend
from trainlaunch.run.docker.backend import DockerBackend

import compose as packaged
from tests.conftest import Runs
from tests.run.conftest import ROOT, containers_of, docker, inspected, networks_of
from tests.run.gate import Gate
from tests.run.test_inspect_parity import NOT_ASKED_FOR, RUN_LABELS, WIDE, fields_of
from tests.run.test_up import assert_one_wins, ended, read_until

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("compose")]
MakeJob = Callable[..., Path]
Start = Callable[..., subprocess.Popen[bytes]]
# Stands in for torchrun: ends in the command behind --no-python, once.
TORCHRUN = """#!/bin/sh
while [ "$1" != --no-python ]; do shift; done
shift
exec "$@"
"""
BY_NODE = "case $(hostname) in *-0) node=0 ;; *) node=1 ;; esac; "
SAVES = "trap 'echo saved; exit 5' TERM; echo ready; while :; do sleep 0.1; done"


@pytest.fixture
def make_nodes(make_job: MakeJob, tmp_path: Path) -> MakeJob:
    """Write a job of two nodes that run a shell text, in which $node is 0 or 1."""

    def make(text: str, **over: Any) -> Path:
        (tmp_path / "torchrun").write_text(TORCHRUN)
        (tmp_path / "torchrun").chmod(0o755)
        own = {"type": "bind", "source": "./torchrun", "target": "/usr/local/bin/torchrun", "read_only": True}
        mounts = [own, *over.pop("mounts", [])]
        command = ["/bin/sh", "-c", BY_NODE + text]
        return make_job(target="compose", torchrun={"nnodes": 2}, command=command, mounts=mounts, **over)

    return make


def read_until_all_are_ready(process: subprocess.Popen[bytes]) -> None:
    """Read stdout until both nodes have said that their traps are set, in one piece or two."""
    if read_until(process, b"] ready\n").count(b"] ready\n") < 2:
        read_until(process, b"] ready\n")


def described(container: str) -> dict[str, Any]:
    """Return the inspect document without names, ids, times, the run's labels and Compose's own."""
    found = {key: value for key, value in inspected(container).items() if key not in {*NOT_ASKED_FOR, "Name"}}
    labels = found["Config"]["Labels"].items()
    others = {key: value for key, value in labels if key not in RUN_LABELS and not key.startswith("com.docker.")}
    stated = [each for each in found["Config"]["Env"] if not each.startswith("TRAINLAUNCH_ATTEMPT=")]  # of `up` alone
    found["Config"] |= {"Labels": others, "Env": sorted(stated)}
    del found["Config"]["Hostname"], found["HostConfig"]["NetworkMode"]
    for mount in found["Mounts"]:
        if mount["Type"] == "volume":
            del mount["Name"], mount["Source"]
    # Compose keeps these in maps.
    found["Mounts"].sort(key=lambda each: str(each["Destination"]))
    (found["HostConfig"]["Mounts"] or []).sort(key=lambda each: str(each["Target"]))
    found["HostConfig"]["Ulimits"].sort(key=lambda each: str(each["Name"]))
    return fields_of(found)


def test_what_runs_is_the_rendered_file(
    trainlaunch: Runs, make_job: MakeJob, job_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container of `up` is the one that Compose makes of `render`'s text, field by field of `docker inspect`.

    Its relative mounts too, though `up` runs in another folder than Compose.
    """
    secrets = {"TOKEN": "s3 $cret", "HOST_TOKEN": "other"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    (tmp_path / 's, "rc"').mkdir()
    wide = {
        **WIDE,
        "command": ["python3", "-c", "print('a $HOME')"],
        "image_entrypoint": [],
        "observe": False,  # else `up` delivers what notes waits
        "group_add": ["44"],
        "secrets": {"TOKEN": {"env": "TOKEN"}, "RENAMED": {"env": "HOST_TOKEN"}},
        "mounts": [
            {"type": "bind", "source": './s, "rc"', "target": "/workspace"},
            {"type": "bind", "source": "/usr/share", "target": "/data", "read_only": True},
            {"type": "tmpfs", "target": "/cache"},
            {"type": "scratch", "target": "/scratch"},
        ],
    }
    job = str(make_job(target="compose", **wide))
    assert trainlaunch("up", job).returncode == 0, trainlaunch("up", job).stderr
    by_up = described(job_name)
    assert trainlaunch("down", job).returncode == 0
    text = trainlaunch("render", job).stdout
    made = subprocess.run(
        ["docker-compose", "-f", "-", "create"], input=text, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert containers_of(job_name), made.stderr
    assert described(job_name) == by_up


def test_down_leaves_nothing_of_the_job_and_all_else(
    trainlaunch: Runs, make_nodes: MakeJob, job_name: str, base_image: str
) -> None:
    """Containers, networks and anonymous volumes of all runs go; a named volume and a neighbour stay."""
    mounts = [
        {"type": "scratch", "target": "/scratch"},
        {"type": "volume", "source": f"{job_name}-data", "target": "/data"},
    ]
    job = str(make_nodes("exit 0", mounts=mounts))
    neighbour = docker("create", "--name", f"{job_name}-x", base_image, "true")
    try:
        assert trainlaunch("up", job).returncode == 0
        assert trainlaunch("up", job).returncode == 0
        assert len(containers_of(job_name)) == 4
        assert len(networks_of(job_name)) == 1
        volumes = [mount["Name"] for each in containers_of(job_name) for mount in volumes_of(each)]
        done = trainlaunch("down", job, "--all")
        assert done.returncode == 0, done.stderr
        assert (containers_of(job_name), networks_of(job_name)) == ([], [])
        left = docker("volume", "ls", "--quiet").split()
        assert [each for each in set(volumes) if each in left] == [f"{job_name}-data"]
        assert docker("inspect", "--format", "{{.Name}}", neighbour) == f"/{job_name}-x"
    finally:
        docker("rm", neighbour)
        docker("volume", "rm", f"{job_name}-data")


def volumes_of(container: str) -> list[dict[str, Any]]:
    """Return the volumes that a container mounts."""
    return [each for each in inspected(container)["Mounts"] if each["Type"] == "volume"]


def test_nodes_meet_by_name_and_print_with_their_number(
    trainlaunch: Runs, make_nodes: MakeJob, job_name: str, gate: Gate
) -> None:
    """Each node knows where node 0 is, resolves it, and its lines have its number; the plan's /dev/shm is of each."""
    text = (
        "set -- $(getent hosts ${PET_RDZV_ENDPOINT%:*}); echo $2; echo $PET_RDZV_ENDPOINT; "
        f"df -k /dev/shm | tail -1; printf 'no end'; echo bad >&2; touch {gate.folder}/$node; "
        f"{gate.waits_for('$((1 - node))')}"
    )
    done = trainlaunch("up", str(make_nodes(text, mounts=gate.mounts)))
    assert done.returncode == 0, done.stderr
    for node in range(2):
        lines = [line[4:] for line in done.stdout.splitlines() if line.startswith(f"[{node}] ")]
        assert lines[0].startswith(f"{job_name}-0")
        assert lines[1] == f"{job_name}-0:29500"
        assert lines[2].split()[1] == "65536"
        assert lines[3] == "no end"
        assert f"[{node}] bad" in done.stderr
    assert f"`trainlaunch down {job_name}` removes them" in done.stderr


def test_the_first_node_to_fail_ends_the_job(trainlaunch: Runs, make_nodes: MakeJob, job_name: str) -> None:
    """Its code is up's, the other one is stopped within its grace period, and the cause is of the one that failed."""
    text = f'if [ $node = 0 ]; then {SAVES}; fi; sleep 1; echo "ValueError: lost it" >&2; exit 3'
    done = trainlaunch("up", str(make_nodes(text)))
    assert done.returncode == 3
    assert "[0] saved" in done.stdout
    assert "the job ended with exit code 3 on node 1" in done.stderr
    assert inspected(f"{job_name}-0")["State"]["ExitCode"] == 5
    assert "ValueError: lost it" in done.stderr.split("exit code 3 on node 1")[1]
    assert trainlaunch("wait", job_name).returncode == 3
    assert trainlaunch("status", job_name).returncode == 1


def test_ctrl_c_stops_every_node_once(start: Start, make_nodes: MakeJob, job_name: str) -> None:
    """Each handler runs, and no node gets a second signal while it saves."""
    slow = SAVES.replace("echo saved", "sleep 1; echo saved")
    process = start("up", str(make_nodes(f"if [ $node = 0 ]; then {SAVES}; else {slow}; fi")))
    read_until_all_are_ready(process)
    process.send_signal(signal.SIGINT)
    code, out, err = ended(process)
    assert code == 5, err
    assert sorted(out.splitlines()) == ["[0] saved", "[1] saved"]
    backend = compose_backend(print)
    try:
        assert [backend.signals(each) for each in backend.runs(job_name)] == [(15,), (15,)]
    finally:
        backend.close()


def test_a_second_ctrl_c_kills_every_node(start: Start, make_nodes: MakeJob) -> None:
    """Deaf nodes end with 137 at once."""
    deaf = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    process = start("up", str(make_nodes(deaf, stop_grace_period="10m")))
    read_until_all_are_ready(process)
    process.send_signal(signal.SIGINT)
    read_until(process, b"stopping the job", stderr=True)
    time.sleep(SAME_PRESS_SECONDS)
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    assert code == 137
    assert "killing it" in err


def test_attempts_are_projects_of_their_own_on_one_network(
    trainlaunch: Runs, make_nodes: MakeJob, job_name: str
) -> None:
    """The failed attempt's containers are kept under other names; the newest run is the last attempt."""
    job = str(make_nodes("[ $node = 0 ] || exit 9", restart={"max_attempts": 2}))
    done = trainlaunch("up", job)
    assert done.returncode == 9
    assert "attempt 1 of 2 ended with exit code 9; starting attempt 2" in done.stderr
    document = json.loads(trainlaunch("ps", "--output", "json").stdout)
    (mine,) = [each for each in document["runs"] if each["job"] == job_name]
    run = mine["run"]
    assert mine["target"] == "compose"
    names = {(each["name"], each["node"], each["attempt"]) for each in mine["containers"]}
    kept = {(f"{job_name}-{node}-{run}", node, 1) for node in range(2)}
    assert names == kept | {(f"{job_name}-{node}", node, 2) for node in range(2)}
    assert networks_of(job_name) == [f"{job_name}-{run}-2_default"]


def test_a_detached_run_is_followed_by_its_verbs(trainlaunch: Runs, make_nodes: MakeJob, job_name: str) -> None:
    """status and logs tell the nodes apart; wait and logs -f have the code of the first to fail."""
    job = str(make_nodes("echo one $node; sleep 1; echo two $node; [ $node = 0 ] || exit 4"))
    assert trainlaunch("up", "-d", job).stdout == f"{job_name}\n"
    status = trainlaunch("status", job)
    assert re.findall(r"^\[(\d)\] job .*container (\S+)\)", status.stdout, re.M) == [
        ("0", f"{job_name}-0"),
        ("1", f"{job_name}-1"),
    ]
    followed = trainlaunch("logs", "-f", job_name)
    assert followed.returncode == 4
    assert sorted(followed.stdout.splitlines()) == ["[0] one 0", "[0] two 0", "[1] one 1", "[1] two 1"]
    assert trainlaunch("wait", job).returncode == 4
    assert trainlaunch("logs", job).stdout == "[0] one 0\n[0] two 0\n[1] one 1\n[1] two 1\n"
    nodes = json.loads(trainlaunch("status", job_name, "--output", "json").stdout)["containers"]
    assert [(each["node"], each["exit_code"]) for each in nodes] == [(0, 0), (1, 4)]


def test_wait_ends_with_the_first_failure(trainlaunch: Runs, make_nodes: MakeJob) -> None:
    """A node that waits for a dead one for ever doesn't hold up who asks for the code; status tells that it runs."""
    job = str(make_nodes("[ $node = 1 ] && exit 6; sleep 600"))
    assert trainlaunch("up", "-d", job).returncode == 0
    assert trainlaunch("wait", job).returncode == 6
    assert "[0] state      running for" in trainlaunch("status", job).stdout
    down = trainlaunch("down", job)
    assert down.returncode == 0


@pytest.mark.long  # test_up.py has the race for a name, the next test what is left where another has one
def test_of_two_ups_exactly_one_wins(start: Start, make_nodes: MakeJob, job_name: str, gate: Gate) -> None:
    """The others have TL506 and 125 and leave nothing, whichever node's name they came to want."""
    job = str(make_nodes(gate.waits, mounts=gate.mounts))
    assert_one_wins([start("up", job) for _ in range(3)], gate)
    assert (len(containers_of(job_name)), len(networks_of(job_name))) == (2, 1)


def test_a_foreign_container_of_a_nodes_name_is_left_alone(
    trainlaunch: Runs, make_nodes: MakeJob, job_name: str, base_image: str
) -> None:
    """Nothing of the job is made."""
    foreign = docker("create", "--name", f"{job_name}-1", base_image, "true")
    try:
        done = trainlaunch("up", str(make_nodes("exit 0")))
        assert done.returncode == 125
        assert f"error[TL506]: the container name {job_name}-1 is taken by something" in done.stderr
        assert inspected(foreign)["Name"] == f"/{job_name}-1"
        assert (containers_of(job_name), networks_of(job_name)) == ([], [])
    finally:
        docker("rm", foreign)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"working_dir": "/bin/sh"}, "compose: create project "),
        ({"user": "nobody-here"}, "docker: start container "),
    ],
)
def test_what_can_not_be_made_or_started_leaves_nothing(
    trainlaunch: Runs, make_nodes: MakeJob, job_name: str, changed: dict[str, Any], words: str
) -> None:
    """Whether Compose refuses it or its first node can't start: the words of who refused, and no network."""
    done = trainlaunch("up", str(make_nodes("exit 0", **changed)))
    assert done.returncode == 125
    assert "error[TL508]" in done.stderr
    assert words in done.stderr
    assert (containers_of(job_name), networks_of(job_name)) == ([], [])


def test_a_service_that_a_patch_adds_is_not_left_out_in_silence(
    trainlaunch: Runs, make_nodes: MakeJob, job_name: str
) -> None:
    """`up` starts and removes the job's own services; the file by hand starts all."""
    patch = {"compose": {"services": {"tensorboard": {"image": "tensorboard:1"}}}}
    done = trainlaunch("up", str(make_nodes("exit 0", patches=patch)))
    assert done.returncode == 125
    assert "error[TL147]: `up` starts the job's own services, and the patch adds tensorboard" in done.stderr
    assert (containers_of(job_name), networks_of(job_name)) == ([], [])


def test_where_one_node_can_not_start_no_other_goes_on(
    make_nodes: MakeJob, job_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one runs already when the second is refused: it is killed and removed with its network."""
    plan = plan_job(read_job(make_nodes("sleep 600")))
    begin = DockerBackend.begin

    def begin_and_spoil(self: DockerBackend, container: str) -> Session:
        session = begin(self, container)
        (tmp_path / "torchrun").unlink()  # which the next one mounts
        return session

    monkeypatch.setattr(DockerBackend, "begin", begin_and_spoil)
    backend = ComposeBackend()
    try:
        project = backend.create(plan, "aaaaaaaa", 1)
        with pytest.raises(TargetUnavailable, match="start container"):
            backend.begin(project)
    finally:
        backend.close()
    assert (containers_of(job_name), networks_of(job_name)) == ([], [])


def test_what_was_removed_before_its_start_is_no_success(make_nodes: MakeJob, job_name: str) -> None:
    """`down` between the two steps of `up`: an error, not an end with 0."""
    plan = plan_job(read_job(make_nodes("exit 0")))
    backend = ComposeBackend()
    try:
        project = backend.create(plan, "aaaaaaaa", 1)
        for each in backend.runs(job_name):
            backend.remove(each.id)
        with pytest.raises(TargetUnavailable):
            backend.begin(project)
    finally:
        backend.close()


def test_a_secret_is_in_no_output_label_file_or_process_list(
    start: Start, make_nodes: MakeJob, job_name: str, tmp_path: Path, gate: Gate
) -> None:
    """It reaches each node; a `.env` beside the job is no source of it, and our temporary files are gone."""
    (tmp_path / ".env").write_text("HOST_TOKEN=of-the-file\nCOMPOSE_PROFILES=other\n")
    text = f"case $TOKEN in s3*cr3t) echo arrived ;; esac; {gate.waits}"
    job = make_nodes(text, secrets={"TOKEN": {"env": "HOST_TOKEN"}}, mounts=gate.mounts)
    process = start("up", str(job), HOST_TOKEN="s3 cr3t", TMPDIR=str(tmp_path), COMPOSE_FILE="/none")
    read_until(process, b"] arrived\n")
    listed = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=False).stdout
    labels = [json.dumps(inspected(each)["Config"]["Labels"]) for each in containers_of(job_name)]
    gate.open()
    code, out, err = ended(process)
    assert code == 0, err
    assert len(labels) == 2
    assert "s3 cr3t" not in out + err + listed + "".join(labels)
    assert sorted(each.name for each in tmp_path.iterdir()) == [".env", "gate", "job.yaml", "torchrun"]


def test_the_plugin_of_the_docker_command_comes_first(
    trainlaunch: Runs, make_job: MakeJob, tmp_path: Path, compose: str
) -> None:
    """`docker compose` is taken where the CLI has the plugin, and `up` says which is used."""
    plugins = tmp_path / "docker" / "cli-plugins"
    plugins.mkdir(parents=True)
    (plugins / "docker-compose").symlink_to(Path(packaged.__file__).parent / "docker-compose")
    job = str(make_job(target="compose", command=["true"]))
    done = trainlaunch("up", job, env={"DOCKER_CONFIG": str(plugins.parent)})
    assert done.returncode == 0, done.stderr
    assert "Compose is `docker compose` 2." in done.stderr


def test_podman_compose_is_taken_where_nothing_else_is(
    trainlaunch: Runs, make_job: MakeJob, tmp_path: Path, compose: str
) -> None:
    """It hands its words to a Compose of its own choice; the Python podman-compose, version 1, would be refused."""
    folder = tmp_path / "bin"
    folder.mkdir()
    binary = Path(packaged.__file__).parent / "docker-compose"
    (folder / "podman").write_text(f'#!/bin/sh\nshift\necho "Executing external provider" >&2\nexec {binary} "$@"\n')
    (folder / "podman").chmod(0o755)
    done = trainlaunch("up", str(make_job(target="compose", command=["true"])), env={"PATH": str(folder)})
    assert done.returncode == 0, done.stderr
    assert "Compose is `podman compose` 2." in done.stderr


def test_the_file_by_hand_is_found_and_removed_by_our_verbs(
    trainlaunch: Runs, make_nodes: MakeJob, job_name: str, tmp_path: Path
) -> None:
    """`render | compose up`: both nodes run and end together; ps, logs and down know them."""
    job = str(make_nodes("echo here; [ $node = 0 ] && sleep 600; sleep 1; exit 3"))
    text = trainlaunch("render", job).stdout
    words = [str(Path(packaged.__file__).parent / "docker-compose"), "-f", "-", "up", "--abort-on-container-failure"]
    done = subprocess.run(words, input=text, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 3, done.stdout + done.stderr
    listed = [line.split() for line in trainlaunch("ps").stdout.splitlines() if line.startswith(job_name)]
    assert [(each[2], each[3], each[4], each[-1]) for each in listed] == [("-", "exited", "3", "compose")]
    assert trainlaunch("logs", job_name).stdout == "[0] here\n[1] here\n"
    assert trainlaunch("down", job_name).returncode == 0
    assert (containers_of(job_name), networks_of(job_name)) == ([], [])


@pytest.mark.parametrize(("version", "said"), [(None, "is installed\n"), ("1.29.2", "`docker-compose` is 1.29.2")])
def test_without_a_compose_it_is_said_what_to_install(
    trainlaunch: Runs, make_job: MakeJob, tmp_path: Path, version: str | None, said: str
) -> None:
    """TL520 and 125 before anything is made; version 1 doesn't know what the file says."""
    folder = tmp_path / "bin"
    folder.mkdir()
    if version:
        (folder / "docker-compose").write_text(f"#!/bin/sh\necho {version}\n")
        (folder / "docker-compose").chmod(0o755)
    done = trainlaunch("up", str(make_job(target="compose")), env={"PATH": str(folder)})
    assert done.returncode == 125
    assert "error[TL520]: no Compose of version 2 or later is installed" in done.stderr
    assert said in done.stderr
    assert "install docker-compose-plugin" in done.stderr


def test_without_a_temporary_file_nothing_is_made(make_job: MakeJob, job_name: str) -> None:
    """A full disk, or a TMPDIR that is none, is said before Compose is called."""
    program = (
        "import sys, tempfile; tempfile.tempdir = '/no/such'\nfrom trainlaunch.cli.main import main; sys.exit(main())"
    )
    job = str(make_job(target="compose"))
    done = subprocess.run(
        [sys.executable, "-c", program, "up", job], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 125, done.stderr
    assert "error[TL116]: the file of a run's own values can't be written" in done.stderr
    assert (containers_of(job_name), networks_of(job_name)) == ([], [])


def test_each_node_gets_gpus_of_its_own(make_nodes: MakeJob, job_name: str) -> None:
    """The engine receives the numbers of different devices; a count would mean the first ones to every container."""
    plan = plan_job(read_job(make_nodes("exit 0", resources={"memory": "256Mi", "gpus": 2})))
    backend = ComposeBackend()
    try:
        backend.create(plan, "aaaaaaaa", 1)
    finally:
        backend.close()
    asked = [inspected(f"{job_name}-{node}")["HostConfig"]["DeviceRequests"] for node in range(2)]
    assert [[each["DeviceIDs"] for each in requests] for requests in asked] == [[["0", "1"]], [["2", "3"]]]
    assert [requests[0]["Capabilities"] for requests in asked] == [[["gpu"]]] * 2
