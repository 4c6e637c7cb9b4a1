"""Additions to a text are refused, also where PyYAML or docker would take the last of two and say nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from launcher.errors import RenderingDisagrees
from launcher.plan.launch_plan import LaunchPlan
from launcher.render import render
from launcher.verify import verify
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
    first = re.search(rf"^  {flag} .*\\\n", script, re.MULTILINE)
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
        ('- name: "home"', '        - {name: "host", hostPath: {path: "/"}}'),
        ('claimName: "data"', "            extra: true"),
        ('name: "settings"', "            defaultMode: 0"),
        ('- name: "HOME"', '            - {name: "HOME", value: "/elsewhere"}'),
        ('- name: "HOME"', '            - {name: "X", valueFrom: {fieldRef: {fieldPath: "metadata.name"}}}'),
        ('key: "key"', "                  optional: true"),
    ],
)
def test_an_addition_to_volumes_and_variables_is_refused(tmp_path: Path, before: str, line: str) -> None:
    """Also a volume that no container mounts: the node's files would be one edit away."""
    plan = plan_with(
        tmp_path,
        "kubernetes",
        resources={"cpus": 4, "memory": "8Gi"},
        secrets={"TOKEN": {"kubernetes": "name/key"}},
        mounts=[
            {"type": "pvc", "source": "data", "target": "/data"},
            {"type": "config", "source": "settings", "target": "/settings"},
        ],
    )
    assert accepted(plan, render(plan))
    assert not accepted(plan, with_line(render(plan), before, line))
