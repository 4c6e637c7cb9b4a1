"""Law 7 on the real readers: sh, docker's command line, the engine, Compose and kubectl pass on each string."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.container.container import container_of
from trainlaunch.formats.docker.functions import inlined
from trainlaunch.formats.docker.shell_lexer import statements
from trainlaunch.formats.kubernetes.environment import expanded
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.verify import verified

from tests import plain_yaml
from tests.jobs import plan_with
from tests.render.nasty import nasty_strings
from tests.render.readers import compose, created, kubectl_json

STRINGS = nasty_strings()
CHUNK = 1100  # a job file stands for at most 10,000 values
CHUNKS = [STRINGS[start : start + CHUNK] for start in range(0, len(STRINGS), CHUNK)]
# Hexadecimal, so that nothing on the way back can change what arrived.
TELL = (
    "import os, sys\n"
    "for word in sys.argv[1:]: print('arg', os.fsencode(word).hex())\n"
    "for name, value in os.environb.items(): print(name.decode(), value.hex())\n"
)


def chunk_plan(folder: Path, target: str, strings: list[str], image: str) -> LaunchPlan:
    """Return a plan whose process gets each string as an argument and in its environment, and tells what it got."""
    fields: dict[str, Any] = {
        "name": f"nasty-{uuid.uuid4().hex[:8]}",
        "image": image,
        "pull_policy": "never",
        "command": ["python3", "-c", TELL, *strings],
        "env": {f"NASTY_{index}": value for index, value in enumerate(strings)},
        "shm_size": "64Mi",
        "data_loader": {"num_workers": 0},
    }
    if target == "kubernetes":
        fields["resources"] = {"cpus": 1, "memory": "1Gi"}
    else:
        fields["labels"] = {f"nasty.{index}": value for index, value in enumerate(strings)}
    path = folder / "job.yaml"
    path.write_text(plain_yaml.dump(fields), encoding="utf-8")  # escapes what YAML doesn't allow as it stands
    return plan_job(read_job(path, target=target))


def told(output: str) -> tuple[list[str], list[str]]:
    """Return the arguments and the variables that a process told of."""
    found: dict[str, list[str]] = {}
    for line in output.splitlines():
        name, _, value = line.partition(" ")
        found.setdefault(name, []).append(bytes.fromhex(value).decode())
    return found.get("arg", []), [
        found[f"NASTY_{index}"][0] for index in range(sum("NASTY_" in each for each in found))
    ]


@pytest.mark.docker
@pytest.mark.parametrize("strings", CHUNKS, ids=range(len(CHUNKS)))
def test_arguments_and_variables_arrive_through_docker_run(tmp_path: Path, base_image: str, strings: list[str]) -> None:
    """sh, docker's command line and the engine pass on each of the strings."""
    plan = chunk_plan(tmp_path, "docker", strings, base_image)
    script = verified(plan, render(plan))
    done = subprocess.run(["sh"], input=script.encode(), capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert told(done.stdout.decode()) == (strings, strings)


@pytest.mark.docker
@pytest.mark.parametrize("strings", CHUNKS, ids=range(len(CHUNKS)))
def test_labels_and_the_health_check_arrive_through_docker_run(
    tmp_path: Path, base_image: str, strings: list[str]
) -> None:
    """The engine holds each label, the health check and the whole process as the plan has them."""
    plan = chunk_plan(tmp_path, "docker", strings, base_image)
    found = created(render(plan), cwd=tmp_path)
    config = found["Config"]
    assert [config["Labels"][f"nasty.{index}"] for index in range(len(strings))] == strings
    assert_process(plan, config)
    assert found["HostConfig"]["ShmSize"] == 64 * 1024**2


def assert_process(plan: LaunchPlan, config: dict[str, Any]) -> None:
    """Assert that the engine's own record of entrypoint, arguments and health check is the plan's."""
    container = container_of(plan)
    assert (*config["Entrypoint"], *config["Cmd"]) == (*container.entrypoint, *container.args)
    assert config["Healthcheck"]["Test"] == ["CMD-SHELL", container.health]


VALUES = {"API_KEY": "s3cret $HOME 'x'", "API_KEY_2": "two $$ words", "OTHER": "th\\ree"}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[list[str]]:
    """Take texts of Compose files; each project is removed at the end."""
    texts: list[str] = []
    yield texts
    for text in texts:
        done = compose("down", "--volumes", "--timeout", "0", text=text, cwd=tmp_path, env=VALUES)
        assert done.returncode == 0, done.stderr


@pytest.mark.docker
@pytest.mark.parametrize("strings", CHUNKS, ids=range(len(CHUNKS)))
def test_arguments_variables_and_labels_arrive_through_compose(
    tmp_path: Path, base_image: str, strings: list[str], project: list[str]
) -> None:
    """The real Compose v2 and the engine pass on each of the strings."""
    plan = chunk_plan(tmp_path, "compose", strings, base_image)
    text = verified(plan, render(plan))
    project.append(text)
    done = compose("up", "--no-log-prefix", "--exit-code-from", plan.name, text=text, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    arguments, variables = told("\n".join(line for line in done.stdout.splitlines() if is_told(line)))
    assert arguments == strings
    assert variables == strings
    label = f"label=com.docker.compose.project={plan.name}"
    container = ["docker", "ps", "--all", "--quiet", "--filter", label]
    found = subprocess.run(container, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    config = inspect(found)["Config"]
    assert [config["Labels"][f"nasty.{index}"] for index in range(len(strings))] == strings
    assert_process(plan, config)


def is_told(line: str) -> bool:
    """Return whether a line is one that TELL prints, and no message of Compose."""
    name, _, value = line.partition(" ")
    return name.isidentifier() and all(digit in "0123456789abcdef" for digit in value)


def inspect(container: str) -> dict[str, Any]:
    """Return the engine's record of a container."""
    done = subprocess.run(["docker", "inspect", container], capture_output=True, timeout=60, check=True)
    found: dict[str, Any] = json.loads(done.stdout)[0]
    return found


def test_kubectl_reads_each_string_as_it_was_written(tmp_path: Path) -> None:
    """Kubernetes' own YAML reader sees the same manifest as ours, with every string a string."""
    plan = chunk_plan(tmp_path, "kubernetes", STRINGS, "trainer:1")
    manifest = kubectl_json(verified(plan, render(plan)))
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    values = {each["name"]: expanded(each["value"], {}) for each in container["env"]}
    assert [values[f"NASTY_{index}"] for index in range(len(STRINGS))] == STRINGS
    # The variables exist, so a `$(NASTY_1)` that is not escaped would be replaced.
    assert [expanded(word, values) for word in container["args"]] == ["python3", "-c", TELL, *STRINGS]


@pytest.mark.docker
@pytest.mark.parametrize("kind", ["docker", "compose"])
def test_mounts_arrive_whatever_their_path_is_called(
    tmp_path: Path, base_image: str, kind: str, project: list[str]
) -> None:
    """A relative and an absolute path with blanks, commas, quotes, dollars and accents are mounted as they are."""
    names = ["plain", "a b ", ' lead,comma "quoted"', "dollar $HOME ${X} $$", "é中🙂", "#hash", "~tilde", "-dash", "'s"]
    mounts = []
    for index, name in enumerate(names):
        folder = tmp_path / "jobs" / name
        folder.mkdir(parents=True)
        (folder / "mark").write_text(name)
        source = f"./{name}" if index % 2 else str(folder)
        mounts.append({"type": "bind", "source": source, "target": f"/in/{index}", "read_only": index % 3 == 0})
    plan = plan_with(
        tmp_path / "jobs",
        kind,
        name=f"mounts-{uuid.uuid4().hex[:8]}",
        image=base_image,
        pull_policy="never",
        command=["sh", "-c", f"for each in $(seq 0 {len(names) - 1}); do cat /in/$each/mark; echo; done"],
        mounts=mounts,
        shm_size="64Mi",
        data_loader={"num_workers": 0},
    )
    elsewhere = tmp_path / "out" / "deep"
    elsewhere.mkdir(parents=True)
    text = verified(plan, render(plan, base=elsewhere), base=elsewhere)
    if kind == "docker":
        (elsewhere / "run.sh").write_text(text)
        done = subprocess.run(
            ["sh", str(elsewhere / "run.sh")], capture_output=True, text=True, cwd="/", timeout=60, check=False
        )
    else:
        project.append(text)
        done = compose("up", "--no-log-prefix", "--exit-code-from", plan.name, text=text, cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line in names] == names


@pytest.mark.docker
def test_a_missing_bind_source_is_no_empty_folder(tmp_path: Path, base_image: str, project: list[str]) -> None:
    """Neither docker nor Compose makes an empty folder where a data set should be."""
    for kind in ("docker", "compose"):
        plan = plan_with(
            tmp_path,
            kind,
            name=f"gone-{uuid.uuid4().hex[:8]}",
            image=base_image,
            mounts=[{"type": "bind", "source": "./gone", "target": "/data"}],
            shm_size="64Mi",
        )
        text = render(plan)
        if kind == "docker":
            done = subprocess.run(
                ["sh"], input=text, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
            )
        else:
            project.append(text)
            done = compose("up", text=text, cwd=tmp_path)
        assert done.returncode != 0
        assert not (tmp_path / "gone").exists()


@pytest.mark.docker
@pytest.mark.parametrize("kind", ["docker", "compose"])
def test_the_tmp_of_a_read_only_root_can_be_written_and_run_from(
    tmp_path: Path, base_image: str, kind: str, project: list[str]
) -> None:
    """Any user can write there, and compiled kernels, which Inductor puts there, can be loaded."""
    probe = "cp /bin/true /tmp/mine && /tmp/mine && ! touch /usr/mine 2>/dev/null && echo proved"
    plan = plan_with(
        tmp_path,
        kind,
        name=f"locked-{uuid.uuid4().hex[:8]}",
        image=base_image,
        pull_policy="never",
        command=["sh", "-c", probe],
        user="1000:1000",
        read_only=True,
        shm_size="64Mi",
        data_loader={"num_workers": 0},
    )
    text = verified(plan, render(plan))
    if kind == "docker":
        done = subprocess.run(["sh"], input=text, capture_output=True, text=True, timeout=60, check=False)
    else:
        project.append(text)
        done = compose("up", "--no-log-prefix", "--exit-code-from", plan.name, text=text, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "proved" in done.stdout.splitlines()


SECRETS = {"API_KEY": {"env": "API_KEY"}, "OTHER": {"env": "API_KEY_2"}, "API_KEY_2": {"env": "OTHER"}}


def secret_plan(folder: Path, kind: str, image: str) -> LaunchPlan:
    """Return a plan of a job that says what its secrets are; two of them swap names with host variables."""
    return plan_with(
        folder,
        kind,
        name=f"secret-{uuid.uuid4().hex[:8]}",
        image=image,
        pull_policy="never",
        command=["sh", "-c", 'printf "%s\\n" "$API_KEY" "$OTHER" "$API_KEY_2"'],
        secrets=SECRETS,
        shm_size="64Mi",
        data_loader={"num_workers": 0},
    )


@pytest.mark.docker
@pytest.mark.parametrize("kind", ["docker", "compose"])
def test_secrets_arrive_and_stay_out_of_the_text(
    tmp_path: Path, base_image: str, kind: str, project: list[str]
) -> None:
    """The job sees the host's values, byte for byte, which stand in no rendering."""
    plan = secret_plan(tmp_path, kind, base_image)
    text = verified(plan, render(plan))
    assert not [value for value in VALUES.values() if value in text]
    if kind == "docker":
        done = subprocess.run(
            ["sh"], input=text, capture_output=True, text=True, env={"PATH": path(), **VALUES}, timeout=60, check=False
        )
    else:
        project.append(text)
        done = compose("up", "--no-log-prefix", "--exit-code-from", plan.name, text=text, cwd=tmp_path, env=VALUES)
    assert done.returncode == 0, done.stderr
    expected = [VALUES["API_KEY"], VALUES["API_KEY_2"], VALUES["OTHER"]]
    assert [line for line in done.stdout.splitlines() if line in expected] == expected


def path() -> str:
    """Return this process's PATH."""
    return os.environ["PATH"]


@pytest.mark.docker
@pytest.mark.parametrize("missing", [*VALUES])
def test_a_missing_secret_stops_before_the_start(tmp_path: Path, base_image: str, missing: str) -> None:
    """Without its source docker's text ends with 125 and says which variable, and Compose refuses; nothing has run."""
    values = {name: value for name, value in VALUES.items() if name != missing}
    script = render(secret_plan(tmp_path, "docker", base_image))
    done = subprocess.run(
        ["sh"], input=script, capture_output=True, text=True, env={"PATH": path(), **values}, timeout=60, check=False
    )
    assert done.returncode == 125
    assert missing in done.stderr
    assert done.stdout == ""
    refused = compose(
        "config", "-q", text=render(secret_plan(tmp_path, "compose", base_image)), cwd=tmp_path, env=values
    )
    assert refused.returncode != 0
    assert missing in refused.stderr


@pytest.mark.docker
def test_no_secret_is_in_the_process_list(tmp_path: Path, base_image: str) -> None:
    """docker gets the variable's name as an argument, never its value."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "docker").write_text('#!/bin/sh\n[ "$1" = run ] && printf "%s\\n" "$@"\n')  # nobody has the name
    (tools / "docker").chmod(0o755)
    script = render(secret_plan(tmp_path, "docker", base_image))
    environment = {"PATH": f"{tools}:{path()}", **VALUES}
    done = subprocess.run(["sh"], input=script, capture_output=True, text=True, env=environment, timeout=60, check=True)
    assert not [value for value in VALUES.values() if value in done.stdout]
    assert "--env\nAPI_KEY\n" in done.stdout


@pytest.mark.docker
def test_the_script_is_one_command_that_any_shell_reads_the_same(tmp_path: Path, base_image: str) -> None:
    """dash, bash and verify's own reader see the same words."""
    plan = chunk_plan(tmp_path, "docker", STRINGS[:CHUNK], base_image)
    script = render(plan).replace("exec docker run", "printf '%s\\0'")
    seen = {
        shell: subprocess.run([shell], input=script.encode(), capture_output=True, timeout=60, check=True).stdout
        for shell in ("dash", "bash")
    }
    assert seen["dash"] == seen["bash"]
    *_, read = statements(inlined(script))
    assert seen["dash"].decode().split("\0")[:-1] == read[2:]
