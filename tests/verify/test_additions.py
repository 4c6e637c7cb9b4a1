"""Additions to a text are refused, also where PyYAML or docker would take the last of two and say nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from trainlaunch.errors import RenderingDisagrees
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render
from trainlaunch.verify import verify

from tests.jobs import plan_with
from tests.render.jobs import JOBS, job_plan


def accepted(plan: LaunchPlan, text: str) -> bool:
    """Return whether verify takes the text for the plan's."""
    try:
        verify(plan, text)
    except RenderingDisagrees:
        return False
    return True


def with_line(text: str, before: str, line: str) -> str:
    """Return `text` with `line` put in front of the first line that starts with `before`, blanks aside."""
    place = re.search(rf"^ *{re.escape(before)}", text, re.MULTILINE)
    assert place, f"no line starts with {before}"
    return f"{text[: place.start()]}{line}\n{text[place.start() :]}"


@pytest.mark.parametrize("target", ["compose", "kubernetes"])
@pytest.mark.parametrize("job", JOBS)
def test_a_key_that_stands_twice_is_refused(job: str, target: str) -> None:
    """Compose refuses such a file, and other readers keep the first or the last."""
    plan = job_plan(job, target)
    text = render(plan)
    keys = re.findall(r'^ *(?:"[^"]+"|[a-zA-Z_]+): (?:"[^"\n]*"|\d+|true|false)$', text, re.MULTILINE)
    assert keys
    for line in dict.fromkeys(keys):
        assert not accepted(plan, text.replace(f"{line}\n", f"{line}\n{line}\n", 1)), f"accepted twice: {line}"


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "docker() { true; }",
        "PATH=/elsewhere",
        "export DOCKER_HOST=tcp://elsewhere:2375",
        "if [ -z x ]; then true; fi",
        ". ./profile",
        'echo "$(touch /elsewhere)" >&2',
    ],
)
@pytest.mark.parametrize("job", ["minimal", "full"])
def test_a_command_before_dockers_own_is_refused(job: str, command: str) -> None:
    """The script is one docker run; only the plan's own guards of secrets and its change of folder stand before it."""
    plan = job_plan(job, "docker")
    assert not accepted(plan, with_line(render(plan), "exec docker run", command))


def test_a_guard_that_lost_a_part_is_refused() -> None:
    """Without its end or its message the shell would stop elsewhere, or stop without a word."""
    plan = job_plan("full", "docker")
    script = render(plan)
    for part in ("fi\n", '  echo "secret HF_TOKEN: variable MY_HF_TOKEN of this shell is not set" >&2\n'):
        assert part in script
        assert not accepted(plan, script.replace(part, "", 1))


@pytest.mark.parametrize("flag", ["--env", "--label", "--ulimit"])
def test_a_variable_label_or_limit_stated_twice_is_refused(flag: str) -> None:
    """Docker takes the last of two and says nothing; a review would see the first."""
    plan = job_plan("full", "docker")
    script = render(plan)
    first = re.search(rf"^    {flag} .*\\\n", script, re.MULTILINE)
    assert first
    assert not accepted(plan, script.replace(first[0], first[0] * 2, 1))


MOUNTS = [
    {"type": "bind", "source": "/data", "target": "/data"},
    {"type": "volume", "source": "cache", "target": "/cache"},
    {"type": "tmpfs", "target": "/memory"},
]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("target=/data", "target=/data,bind-propagation=rshared"),
        ("target=/cache", "target=/cache,volume-opt=device=/elsewhere"),
        ("--tmpfs /memory:exec", "--tmpfs /memory:exec,size=1m"),
        ("--tmpfs /memory:exec", "--tmpfs /memory:exec,nr_inodes=10"),
        ("--tmpfs /memory:exec", "--tmpfs /memory"),
        ("source=/data", "source=/data,src=/elsewhere"),
    ],
)
def test_an_option_of_a_docker_mount_is_refused(tmp_path: Path, before: str, after: str) -> None:
    """The plan knows type, source, target and readonly; docker would act on the rest."""
    plan = plan_with(tmp_path, mounts=MOUNTS)
    script = render(plan)
    assert before in script
    assert not accepted(plan, script.replace(before, after))


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ('target: "/cache"', "        volume: {nocopy: true}"),
        ("create_host_path: false", "          propagation: rshared"),
    ],
)
def test_an_option_of_a_compose_mount_is_refused(tmp_path: Path, before: str, line: str) -> None:
    """What stands beside type, source, target and read_only changes the mount."""
    plan = plan_with(tmp_path, "compose", mounts=MOUNTS)
    assert not accepted(plan, with_line(render(plan), before, line))


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ('- name: "mount-0"', '        - {name: "host", hostPath: {path: "/"}}'),
        ('claimName: "data"', "            extra: true"),
        ('name: "settings"', "            defaultMode: 0"),
        ('- name: "TRAINLAUNCH_PLAN"', '            - {name: "TRAINLAUNCH_PLAN", value: "/elsewhere"}'),
        (
            '- name: "TRAINLAUNCH_PLAN"',
            '            - {name: "X", valueFrom: {fieldRef: {fieldPath: "metadata.name"}}}',
        ),
        ('key: "key"', "                  optional: true"),
        ('secretName: "file"', "            optional: true"),
        ('- key: "key"', '              - {key: "other", path: "other"}'),
    ],
)
def test_an_addition_to_volumes_and_variables_is_refused(tmp_path: Path, before: str, line: str) -> None:
    """Also a volume that no container mounts: the node's files would be one edit away."""
    plan = plan_with(
        tmp_path,
        "kubernetes",
        resources={"cpus": 4, "memory": "8Gi"},
        secrets={"TOKEN": {"kubernetes": "name/key"}, "FILE": {"kubernetes": "file/key", "as": "file"}},
        mounts=[
            {"type": "pvc", "source": "data", "target": "/data"},
            {"type": "config", "source": "settings", "target": "/settings"},
        ],
    )
    assert accepted(plan, render(plan))
    assert not accepted(plan, with_line(render(plan), before, line))


FILES = {"BOUND": {"file": "./bound", "as": "file"}, "READ": {"file": "./read"}, "WRITTEN": {"env": "W", "as": "file"}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("source=./bound,target=/run/secrets/BOUND,readonly", "source=./bound,target=/run/secrets/BOUND"),
        ("source=./bound,target", "source=./other,target"),
        ("=$(cat ./read)", "=$(cat ./other)"),
        ("=$(cat ./read)", "=$(cat ./read; id)"),
        ("=$(cat ./read)", "=hunter2"),
        ("[ ! -s ./bound ]", "[ ! -s ./other ]"),
        ("--tmpfs /run/secrets:mode=1777", "--tmpfs /run/secrets:mode=1777,exec"),
        ("--tmpfs /run/secrets:mode=1777", "--mount type=bind,source=/tmp,target=/run/secrets"),
        ("--env WRITTEN_FILE=/run/secrets/WRITTEN", "--env WRITTEN_FILE=/tmp/WRITTEN"),
        (" written=WRITTEN", " written=OTHER"),
    ],
)
def test_a_change_to_a_secret_of_the_script_is_refused(tmp_path: Path, before: str, after: str) -> None:
    """Another source, another place, a guard that looks elsewhere."""
    plan = plan_with(tmp_path, secrets=FILES)
    script = render(plan)
    assert accepted(plan, script)
    assert before in script
    assert not accepted(plan, script.replace(before, after, 1))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('file: "./bound"', 'environment: "BOUND"'),
        ('file: "./bound"', 'file: "./other"'),
        ('target: "/run/secrets/BOUND"', 'target: "/run/secrets/READ"'),
        ('target: "/run/secrets/BOUND"', 'target: "/run/secrets/BOUND"\n        mode: 0777'),
        ('file: "./bound"', 'file: "./bound"\n  "THIRD":\n    file: "./third"'),
        ("/run/secrets:mode=1777", "/run/secrets:mode=1777,size=1"),
        ('"${W:?the source of secret WRITTEN is not set}"', '"hunter2"'),
    ],
)
def test_a_change_to_a_secret_of_a_compose_file_is_refused(tmp_path: Path, before: str, after: str) -> None:
    """As for the script; a secret that no service takes is refused too."""
    plan = plan_with(tmp_path, "compose", secrets=FILES)
    text = render(plan)
    assert accepted(plan, text)
    assert before in text
    assert not accepted(plan, text.replace(before, after, 1))


@pytest.mark.parametrize(
    ("target", "before", "after"),
    [
        ("docker", "--device /dev/dri/renderD128", "--device /dev/dri/renderD129"),
        ("docker", "--device /dev/kfd", "--device /dev/kfd \\\n  --device /dev/sda"),
        ("docker", "--device /dev/kfd", "--device /dev/kfd:/dev/kfd:r"),
        ("docker", "--device /dev/kfd", "--device /dev/kfd \\\n  --gpus all"),
        ("compose", '- "/dev/dri/renderD128"', '- "/dev/dri"'),
        ("compose", '- "/dev/kfd"', '- "/dev/kfd"\n      - "/dev/sda"'),
        ("kubernetes", '"amd.com/gpu": "1"', '"amd.com/gpu": "2"'),
    ],
)
def test_other_device_nodes_are_refused(tmp_path: Path, target: str, before: str, after: str) -> None:
    """A node more is a disk of the host, one edit away."""
    resources = {"cpus": 4, "memory": "8Gi", "gpus": 1, "gpu_vendor": "amd"}
    plan = plan_with(tmp_path, target, resources=resources)
    text = render(plan)
    assert accepted(plan, text)
    assert before in text
    assert not accepted(plan, text.replace(before, after, 1))
