"""What a line of a shell starts, as docker's own command line takes it; what only a shell knows stays unknown."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.formats.docker.create_request import request_of
from trainlaunch.formats.docker.line import run_lines
from trainlaunch.formats.docker.read import read_docker_run
from trainlaunch.formats.docker.table import ALIASES, FLAGS, PODMAN_SWITCHES, PODMAN_VALUES, SHORT, SWITCHES
from trainlaunch.formats.workload import GpuRequest, Unknown, Workload, cut, stated

from tests.formats.readings import summary


def only(text: str) -> Workload:
    """Return what the one line of a text starts."""
    (found,) = read_docker_run(text, "run.sh")
    return found


@pytest.mark.parametrize(
    "front",
    [
        "",
        "exec ",
        "sudo -u me ",
        "sudo -E env A=1 B='c d' ",
        "CUDA=0 ",
        "if ! ",
        "time nohup ",
        "$SUDO ",
        "CID=$(",
        "x || ",
        "cd /w && ",
        "(",
        "$ ",
        "timeout 120 /usr/bin/",
        "srun --ntasks=1 ",
    ],
)
def test_what_stands_in_front_changes_nothing(front: str) -> None:
    """The image is the image, not the value of a flag."""
    found = only(f"{front}docker run --gpus all -v a:b IMG python train.py")
    assert (stated(found.image), stated(found.command)) == ("IMG", ("python", "train.py"))
    assert stated(found.gpus) == GpuRequest(all=True)


@pytest.mark.parametrize(
    "text",
    [
        "echo docker run img",
        "# docker run img",
        "'docker run img'",
        "docker build -t a .",
        "docker exec run img",
        "docker compose run img",
        "man docker run",
        "docker ps; run img",
        "cat <<E\ndocker run img\nE",
        "docker-run img",
        "docker $VERB run img",
    ],
)
def test_near_misses_start_nothing(text: str) -> None:
    """Words that only look like a line."""
    assert read_docker_run(text, "run.sh") == ()


@pytest.mark.parametrize(
    "verb", ["run", "create", "container run", "container create", "--context c -D run", "-H x run"]
)
@pytest.mark.parametrize("program", ["docker", "podman", "/usr/bin/podman"])
def test_each_way_to_start_a_container_is_read(program: str, verb: str) -> None:
    """Docker's and Podman's run and create, options of the program in front of them."""
    assert stated(only(f"{program} {verb} --shm-size 1g img").shm.size) == 1 << 30


@pytest.mark.parametrize(
    ("flags", "shm"),
    [
        ("", ["absent"]),
        ("--shm-size 2g", ["size", 2 << 30]),
        ("--shm-size=2GB", ["size", 2 << 30]),
        ("--shm-size=2GiB", ["size", 2 << 30]),
        ("--shm-size '1.5g'", ["size", 3 << 29]),
        ("--shm-size=16", ["size", 16]),
        ("--shm-size=1g --shm-size=2g", ["size", 2 << 30]),
        ("--shm-size=0", ["absent", 0]),
        ("--shm-size=2Gi", ["size", "?2Gi"]),
        ("--shm-size=-1", ["size", "?-1"]),
        ("--shm-size=$S", ["size", "?$S"]),
        ("--shm-size $S", ["size", "?$S"]),
        ('--shm-size "${S}g"', ["size", '?"${S}g"']),
        ("--ipc=host", ["host"]),
        ("--ipc host --shm-size=1g", ["host", 1 << 30]),
        ("--ipc container:x", ["container"]),
        ("--ipc=none", ["none"]),
        ("--ipc=private --shm-size=1g", ["size", 1 << 30]),
        ("--ipc=shareable", ["absent"]),
        ("--ipc=$IPC", ["size", "?$IPC"]),
        ("--tmpfs /dev/shm", ["unsized"]),
        ("--tmpfs /dev/shm:size=200m", ["tmpfs", 200 << 20]),
        ("--tmpfs /dev/shm:rw,size=1g,noexec --shm-size 1m", ["tmpfs", 1 << 30, 1 << 20]),
        ("--tmpfs=/dev/shm/:size=50%", ["tmpfs", "?50%"]),
        ("--tmpfs /dev/shm:size=0", ["unsized"]),
        ("--tmpfs /dev/shm2:size=1g", ["absent"]),
        ("-v /dev/shm:/dev/shm", ["bind"]),
        ("-v/dev/shm:/dev/shm --ipc none", ["bind"]),
        ("-v data:/dev/shm", ["disk"]),
        ("-v /dev/shm", ["disk"]),
        ("-v $D:/dev/shm", ["size", "?$D"]),
        ("-v $D/shm:/dev/shm", ["bind"]),
        ("-v /dev:/dev", ["bind"]),
        ("-v /dev/shm:/shm", ["absent"]),
        ("--mount type=tmpfs,dst=/dev/shm", ["unsized"]),
        ("--mount type=tmpfs,target=/dev/shm,tmpfs-size=1.5g", ["tmpfs", 3 << 29]),
        ("--mount type=bind,src=/dev/shm,dst=/dev/shm", ["bind"]),
        ("--mount source=x,target=/dev/shm --tmpfs /dev/shm:size=1g", ["disk"]),
        ("--mount 'type=tmpfs,\"dst=/dev/shm\",tmpfs-size=1g'", ["tmpfs", 1 << 30]),
        ("$OPTS", ["size", "?$OPTS"]),
        ('"${OPTS[@]}"', ["size", '?"${OPTS[@]}"']),
        ("$OPTS --shm-size=1g", ["size", 1 << 30]),
    ],
)
def test_shm_is_what_docker_makes_of_it(flags: str, shm: list[object]) -> None:
    """Sizes as the command line reads them; a mount wins over the ipc mode, and both over --shm-size."""
    assert summary(only(f"docker run {flags} img:1 x"))["shm"] == shm


@pytest.mark.parametrize(
    ("flags", "shm"),
    [
        ("--shm-size=0", ["unsized", 0]),
        ("--pod p --shm-size 1g", ["container", 1 << 30]),
        ("--ipc ns:/x", ["container"]),
    ],
)
def test_podman_differs(flags: str, shm: list[object]) -> None:
    """A size of 0 is no limit there, and a pod's containers share one /dev/shm."""
    assert summary(only(f"podman run {flags} img:1"))["shm"] == shm


@pytest.mark.parametrize(
    ("line", "image", "argv"),
    [
        ("--rm $IMAGE python x", "?$IMAGE", ["?python x"]),
        ('--rm "$IMAGE" python x', '?"$IMAGE"', ["python", "x"]),
        ("--rm $REPO/train:$TAG python x", "?$REPO/train:$TAG", ["python", "x"]),
        ("--rm $IMAGE", "?$IMAGE", []),
        ("$OPTS a/b:1 python", "a/b:1", ["python"]),
        ("$OPTS --rm -v a:b a/b@sha256:0f python", "a/b@sha256:0f", ["python"]),
        ("$OPTS -v a:b img python", "?$OPTS", ["?img python"]),
        ("--shm_size 2gb postgres:16", "postgres:16", []),
        ("--unknown postgres:16 x", "postgres:16", ["x"]),
        ("-- img --shm-size 1g", "img", ["--shm-size", "1g"]),
        ("img", "img", []),
        ("", None, []),
        ("--name", None, []),
        ("img a 2>&1 >log <in b", "img", ["a", "b"]),
        ("img a # b", "img", ["a"]),
        ("img a#b", "img", ["a#b"]),
        ("img 'it'\\''s' \"a\\$b\" c\\ d ''", "img", ["it's", "a$b", "c d", ""]),
        ("img *.py", "img", ["?*.py"]),
        ("img ~/x", "img", ["?~/x"]),
        ("img --lr={num}", "img", ["--lr={num}"]),
        ("img {a,b}", "img", ["?{a,b}"]),
        ("img $'a\\nb'", "img", ["?$'a\\nb'"]),
        ("img a$ $", "img", ["a$", "$"]),
        ("--entrypoint python img x.py", "img", ["python", "x.py"]),
    ],
)
def test_image_and_argv(line: str, image: str | None, argv: list[str]) -> None:
    """An unquoted variable may be several words, so what follows it is the image only where it is clearly one."""
    found = summary(only(f"docker run {line}"))
    assert (found["image"], found["argv"]) == (image, argv)


@pytest.mark.parametrize(
    ("flag", "gpus"),
    [
        ("--gpus all", GpuRequest(all=True)),
        ("--gpus=2", GpuRequest(2)),
        ("--gpus 0,1,7", GpuRequest(7)),
        ("--gpus device=0,1", GpuRequest(1, ("0",))),
        ("--gpus '\"device=0,1\"'", GpuRequest(ids=("0", "1"))),
        ('--gpus "\\"device=0,1\\""', GpuRequest(ids=("0", "1"))),
        ("--gpus 'all,capabilities=utility'", GpuRequest(all=True)),
        ("--gpus driver=nvidia", GpuRequest(1)),
        ("--gpus -1", GpuRequest(all=True)),
    ],
)
def test_gpus_are_a_csv_record(flag: str, gpus: GpuRequest) -> None:
    """A bare number is a count, and the last one holds."""
    assert stated(only(f"docker run {flag} img").gpus) == gpus


def test_what_docker_would_refuse_is_unknown_and_named() -> None:
    """A linter can tell it from a variable."""
    found = only("docker run --shm-size=2Gi --memory=$M --cpus 1,5 --shm_size=1g --ulimit a img:1")
    refused = {key: value for key, value in found.rest.items() if key.startswith("refused ")}
    assert refused == {
        "refused --shm-size": "2Gi",
        "refused --cpus": "1,5",
        "refused --shm_size": "1g",
        "refused --ulimit": "a",
    }
    assert isinstance(found.memory, Unknown)


def test_every_field_has_its_place() -> None:
    """Values with the text that they were read from."""
    text = (
        'docker run -itd --name=x -m8g --cpus "1.5" -e A="b c" -e TOKEN -e C=$D -l k=v -u 1000:1000 \\\n'
        "  -w /w --read-only \\\n"
        "  --stop-signal SIGINT --stop-timeout 90 --group-add video --ulimit nofile=1:2 --pull never \\\n"
        "  --device /dev/kfd --device=/dev/dri --health-cmd 'true && x' --health-interval 1m30s img"
    )
    found = only(text)
    assert [stated(each) for each in (found.name, found.memory, found.cpus, found.user)] == [
        "x",
        8 << 30,
        1500,
        "1000:1000",
    ]
    assert {key: stated(value) for key, value in found.env.items()} == {"A": "b c", "C": None}
    assert (found.secrets, found.groups, found.ulimits) == ({"TOKEN": "TOKEN"}, ("video",), {"nofile": (1, 2)})
    assert (found.devices, stated(found.read_only)) == ({"nodes": "/dev/kfd /dev/dri"}, True)
    assert (stated(found.stop_timeout), stated(found.health_times["interval"])) == (90, 90)
    values: list[Any] = [found.memory, found.cpus, found.env["A"], found.env["C"], found.labels["k"], found.health]
    assert [each.text for each in values] == ["8g", '"1.5"', '"b c"', "$D", "v", "'true && x'"]
    assert [cut(text, each.span) for each in values] == [each.text for each in values]
    assert {key: found.rest[key] for key in ("--interactive", "--tty", "--detach")} == dict.fromkeys(
        ("--interactive", "--tty", "--detach"), True
    )


def test_several_lines_are_several_workloads() -> None:
    """Each with the commands before it; those in substitutions and in a text that a program runs, not one printed."""
    found = read_docker_run(
        "a=1\ndocker run x:1 && podman run y:1 | tee log\nz=$(docker run -d z:1)\n"
        "sg docker -c 'cd /w && docker run v:1'\necho 'docker run never:1'\n"
        "bash log.sh 'docker run never:2'\nssh node \"docker run $FLAGS w:1\"",
        "f",
    )
    assert [stated(each.image) for each in found] == ["x:1", "y:1", "z:1", "v:1", "w:1"]
    assert found[0].rest["commands before"] == (("a=1",),)
    assert [each.span.line for each in found] == [2, 2, 3, 4, 7]
    assert len({each.place for each in found}) == 5


@pytest.mark.parametrize("flag", ["--cpus 1.5005", "--health-interval 1500ms"])
def test_what_no_field_can_hold_is_no_rounded_number(flag: str) -> None:
    """A part of a thousandth, or of a second."""
    found = only(f"docker run {flag} img")
    assert stated(found.cpus) is None
    assert not any(stated(each) for each in found.health_times.values())


def test_a_quota_is_a_number_of_cpus() -> None:
    """Microseconds of each period, which is 100 ms where nothing says another."""
    assert stated(only("docker run --cpu-quota 150000 img").cpus) == 1500
    assert stated(only("docker run --cpu-quota 100 --cpu-period=50 img").cpus) == 2000
    assert stated(only("docker run --cpu-quota 100 --cpu-period=$P img").cpus) is None


def test_a_request_is_made_only_of_what_the_text_decides() -> None:
    """A variable has no value here, and a missing image none either."""
    for line in ("docker run --name $X img", "docker run $O img:1", "docker run", "docker run img *"):
        with pytest.raises(ValueError, match="not decided"):
            request_of(run_lines(line)[0], folder=Path("/w"), variable=lambda _: None)
    body = request_of(
        run_lines("docker run -e A -e B --mount type=bind,source=./d,target=/d --init=false i a 'b c'")[0],
        folder=Path("/w"),
        variable={"A": "1"}.get,
    )
    assert (body["Image"], body["Cmd"], body["Env"]) == ("i", ["a", "b c"], ["A=1", "B"])
    assert body["HostConfig"]["Mounts"] == [{"Type": "bind", "Target": "/d", "Source": "/w/d"}]
    assert body["HostConfig"]["Init"] is False


def test_names_in_the_table_are_unique() -> None:
    """No letter and no alias stands for two flags, and Podman's own are none of Docker's."""
    assert len(SHORT) == sum(1 for each in FLAGS.values() if each.short)
    assert not ALIASES.keys() & FLAGS.keys()
    assert not (PODMAN_SWITCHES | PODMAN_VALUES) & FLAGS.keys()
    assert not PODMAN_SWITCHES & PODMAN_VALUES


@pytest.mark.docker
def test_the_table_has_each_flag_of_the_real_command_line() -> None:
    """Names, letters and which of them are switches."""
    done = subprocess.run(["docker", "run", "--help"], capture_output=True, text=True, check=True)
    listed = re.findall(r"^  (?:-(\w), |    )--([a-z0-9-]+)( [a-z]\S*)?", done.stdout, re.MULTILINE)
    assert {name for _, name, _ in listed} <= FLAGS.keys()
    assert {name: letter for letter, name, _ in listed if letter} == {each.name: key for key, each in SHORT.items()}
    assert {name for _, name, value in listed if not value} == SWITCHES & {name for _, name, _ in listed}
