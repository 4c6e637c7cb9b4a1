"""The compose target's file."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from launcher.render import render
from launcher.verify import verified
from launcher.verify.reread_compose import interpolated
from tests.jobs import plan_with
from tests.render.jobs import JOBS, job_plan
from tests.render.readers import compose

SCHEMA = Path(__file__).resolve().parents[3] / "shared" / "schemas" / "compose-spec.json"
HOST = {"WANDB_API_KEY": "a", "MY_HF_TOKEN": "b"}


@pytest.mark.parametrize("job", JOBS)
def test_the_file_fits_the_compose_specification(job: str) -> None:
    """The Compose specification's JSON Schema accepts the file."""
    if not SCHEMA.is_file():
        pytest.skip(f"the Compose specification's schema is not at {SCHEMA}")
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft7Validator(schema).validate(yaml.safe_load(render(job_plan(job, "compose"))))


@pytest.mark.parametrize("job", JOBS)
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


def test_every_scalar_is_quoted_or_a_block(tmp_path: Path) -> None:
    """No bare scalar but integers, booleans and our own keys stands in the file."""
    for job in JOBS:
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
    *("entrypoint", "command"),
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
    """verify's model of Compose's interpolation follows the measured table."""
    assert interpolated(text) == meaning
