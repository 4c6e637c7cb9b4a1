"""The compose target's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from trainlaunch.formats.compose.values import readable
from trainlaunch.render import render
from trainlaunch.verify import verified

from tests import plain_yaml
from tests.jobs import plan_with
from tests.render.jobs import JOBS, NODES, job_plan
from tests.render.readers import compose

SCHEMA = Path(__file__).resolve().parents[1] / "schemas" / "compose-spec.json"
HOST = {"WANDB_API_KEY": "a", "MY_HF_TOKEN": "b"}


@pytest.mark.parametrize("job", [*JOBS, NODES])
def test_the_file_fits_the_compose_specification(job: str) -> None:
    """The Compose specification's JSON Schema accepts the file."""
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft7Validator(schema).validate(plain_yaml.load(render(job_plan(job, "compose"))))


@pytest.mark.parametrize("job", [*JOBS, NODES])
def test_the_real_compose_accepts_the_file(job: str, tmp_path: Path) -> None:
    """`docker compose config -q` accepts the file and prints no warning."""
    done = compose("config", "-q", text=render(job_plan(job, "compose")), cwd=tmp_path, env=HOST)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_compose_itself_reads_what_the_plan_says(tmp_path: Path) -> None:
    """Compose's own resolved model has the plan's bytes, CPUs, GPUs, mounts, health check and stop settings."""
    plan = job_plan("full", "compose")
    done = compose("config", "--format", "json", text=render(plan), cwd=tmp_path, env=HOST)
    model = json.loads(done.stdout)
    service = model["services"]["resnet50"]
    assert model["name"] == "resnet50"
    assert int(service["shm_size"]) == plan.shm.size.value
    assert int(service["mem_limit"]) == plan.memory.limit
    assert float(service["cpus"]) == 7.5
    assert service["deploy"]["resources"]["reservations"]["devices"] == [
        {"capabilities": ["gpu"], "driver": "nvidia", "count": 2}
    ]
    assert [each["type"] for each in service["volumes"]] == ["bind", "bind", "volume", "volume"]
    assert service["tmpfs"] == ["/tmp:exec", "/fast:exec,size=32768m"]
    assert service["volumes"][0]["source"] == str(tmp_path / "src")
    assert model["volumes"] == {"checkpoints": {"name": "checkpoints"}}
    assert service["healthcheck"]["interval"] == "1m30s"
    assert (service["stop_grace_period"], service["stop_signal"], service["init"]) == ("2m0s", "SIGINT", True)
    assert service["environment"]["PRICE"] == "5$$ or $${EUR}"  # `config` escapes on output
    assert service["environment"]["HF_TOKEN"] == "b"


def test_compose_itself_reads_every_node_as_planned(tmp_path: Path) -> None:
    """What services take from the first one by a merge key is theirs; names, GPUs and their number are their own."""
    plan = job_plan(NODES, "compose")
    done = compose("config", "--format", "json", text=render(plan), cwd=tmp_path, env=HOST)
    services = json.loads(done.stdout)["services"]
    assert list(services) == ["several-0", "several-1", "several-2"]
    own = ("hostname", "container_name", "depends_on", "labels", "deploy")
    first, *others = ({key: value for key, value in each.items() if key not in own} for each in services.values())
    assert others == [first, first]
    assert first["environment"]["PET_RDZV_ENDPOINT"] == "several-0:29500"
    for number, (name, each) in enumerate(services.items()):
        assert (each["hostname"], each["container_name"]) == (name, name)
        assert each["labels"]["dev.trainlaunch.node"] == str(number)
        assert each["labels"]["dev.trainlaunch.job"] == "several"
        (gpus,) = each["deploy"]["resources"]["reservations"]["devices"]
        assert gpus["device_ids"] == [str(2 * number), str(2 * number + 1)]


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"env": {"PET_RDZV_ENDPOINT": "other:1"}}, '"PET_RDZV_ENDPOINT": "other:1"'),
        ({"secrets": {"PET_RDZV_ENDPOINT": {"env": "WHERE"}}}, '"PET_RDZV_ENDPOINT": "${WHERE:?'),
    ],
)
def test_a_job_that_names_its_own_rendezvous_keeps_it(tmp_path: Path, own: dict[str, Any], said: str) -> None:
    """The user's own variable wins, as a value and as a secret."""
    plan = plan_with(tmp_path, "compose", torchrun={"nnodes": 2}, **own)
    text = verified(plan, render(plan))
    assert text.count('"PET_RDZV_ENDPOINT": ') == 1
    assert said in text


def test_the_names_of_nodes_are_host_names(tmp_path: Path) -> None:
    """A long name is shortened, and stays one of a host: 63 characters."""
    plan = plan_with(tmp_path, "compose", name="n" * 63, torchrun={"nnodes": 12})
    names = list(plain_yaml.load(verified(plan, render(plan)))["services"])
    assert len(set(names)) == 12
    assert max(map(len, names)) == 63
    assert f'"PET_RDZV_ENDPOINT": "{names[0]}:29500"' in render(plan)


def test_every_scalar_is_quoted_or_a_block(tmp_path: Path) -> None:
    """No bare scalar but integers, booleans and our own keys stands in the file."""
    for job in (*JOBS, NODES):
        for event in yaml.parse(render(job_plan(job, "compose"))):
            if isinstance(event, yaml.ScalarEvent) and event.style is None:
                assert event.value.isdecimal() or event.value == "-1" or event.value in {"true", "false"} | KEYS


KEYS = {
    *("name", "services", "image", "pull_policy", "init", "restart", "labels", "shm_size", "mem_limit"),
    *("cpus", "deploy", "resources", "reservations", "devices", "driver", "count", "device_ids"),
    *("capabilities", "ulimits", "soft", "hard", "user", "group_add", "read_only", "tmpfs", "volumes"),
    *(
        "type",
        "source",
        "target",
        "bind",
        "create_host_path",
        "environment",
        "secrets",
        "file",
        "working_dir",
        "stop_signal",
    ),
    *("stop_grace_period", "healthcheck", "interval", "timeout", "retries", "start_period", "test"),
    *("entrypoint", "command", "container_name", "hostname", "depends_on", "<<", "networks", "default"),
}


def test_relative_binds_follow_the_file(tmp_path: Path) -> None:
    """A file for another folder reaches the job's folder from there."""
    plan = plan_with(tmp_path / "jobs", "compose", mounts=[{"type": "bind", "source": "src", "target": "/w"}])
    assert 'source: "./src"' in verified(plan, render(plan))
    base = tmp_path / "compose"
    assert 'source: "../jobs/src"' in verified(plan, render(plan, base=base), base=base)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("$$A", "$A"),
        ("$A", "<variable A>"),
        ("${A:-b}", "<variable {A:-b}>"),
        ("$_", "<variable _>"),
        ("$$$$", "$$"),
        ("$(df) $((1)) $1 $? $", "$(df) $((1)) $1 $? $"),
    ],
)
def test_the_model_of_interpolation_is_composes_own(text: str, meaning: str) -> None:
    """the reader's model of Compose's interpolation follows the measured table."""
    assert readable(text) == meaning
