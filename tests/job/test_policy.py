"""Which policy a job has, what its defaults give, and in which order everything is laid."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.spec import JobSpec
from trainlaunch.policy import read_job, stated_images
from trainlaunch.policy.find_policies import FILE_NAME
from trainlaunch.units import format_duration

from tests import plain_yaml
from tests.jobs import write_job

PAIRS = {"command": ["python", "x.py"], "script": "python x.py\n"}


def write_policy(folder: Path, name: str = FILE_NAME, **fields: Any) -> Path:
    """Write a policy and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(plain_yaml.dump(fields, sort_keys=False), encoding="utf-8")
    return path


def job_under(folder: Path, defaults: dict[str, Any], target: str = "docker", **fields: Any) -> JobSpec:
    """Return the job of `fields` under a policy with these defaults."""
    write_policy(folder, defaults=defaults)
    return read_job(write_job(folder / "jobs", **fields), target=target)


def refusal(path: Path, **how: Any) -> str:
    """Return code, place and message of the only error of a job."""
    with pytest.raises(JobFileRejected) as caught:
        read_job(path, **how)
    (only,) = caught.value.diagnostics
    return f"{only.code} {only.span or ''} {only.message}"


def test_the_nearest_policy_upward_is_taken(tmp_path: Path) -> None:
    """The job file's own folder comes first; a policy beside or below it is none of its."""
    job = write_job(tmp_path / "a" / "b")
    assert read_job(job).policy is None
    for folder in ("other", "a/b/c"):
        write_policy(tmp_path / folder, defaults={"user": "9"})
    assert read_job(job).user is None
    for user, folder in enumerate(("", "a", "a/b")):
        write_policy(tmp_path / folder, defaults={"user": str(user)})
        assert read_job(job).user == str(user)


@pytest.mark.parametrize("cwd", [".", "a", "a/b", "/"])
def test_a_policy_is_named_as_seen_from_where_the_job_file_is(
    tmp_path: Path, cwd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative job file has a relative policy, in whatever folder it is read; an absolute one an absolute."""
    policy, job = write_policy(tmp_path, defaults={"user": "7"}), write_job(tmp_path / "a" / "b")
    monkeypatch.chdir(tmp_path / cwd)
    relative = read_job(Path(os.path.relpath(job)))
    assert str(relative.origin("user")) == f"{os.path.relpath(policy)}:2 (policy)"
    assert str(read_job(job).origin("user")) == f"{policy}:2 (policy)"


def test_the_jobs_own_policy_and_the_asked_one_come_first(tmp_path: Path) -> None:
    """--policy alone, else `policy:` as seen from the job file, over those that are found."""
    (tmp_path / ".git").mkdir()
    write_policy(tmp_path / "jobs", defaults={"user": "1", "working_dir": "/found"})
    write_policy(tmp_path, "own.yaml", defaults={"user": "2"})
    asked = write_policy(tmp_path, "asked.yaml", defaults={"user": "3"})
    job = write_job(tmp_path / "jobs", policy="../own.yaml")
    assert (read_job(job).user, read_job(job).working_dir) == ("2", "/found")
    found = read_job(job, policy=asked)
    assert (found.user, found.working_dir) == ("3", None)
    assert found.policy
    assert found.policy.option


def test_an_asked_policy_that_would_be_found_is_no_option(tmp_path: Path) -> None:
    """A rendering then says nothing of --policy: without it the same comes out."""
    found = write_policy(tmp_path)
    link = tmp_path / "link.yaml"
    link.symlink_to(found)
    for asked in (found, link, tmp_path / "jobs" / ".." / FILE_NAME):
        policy = read_job(write_job(tmp_path / "jobs"), policy=asked).policy
        assert policy
        assert not policy.option


def test_a_policy_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """At the job file's line where it names it; a folder or a broken link of the looked-for name is not passed by."""
    named = write_job(tmp_path / "named", policy="gone.yaml")
    assert refusal(named).startswith(f"TL101 {named}:6:9 the policy {tmp_path / 'named' / 'gone.yaml'} does not exist")
    job = write_job(tmp_path / "jobs")
    assert refusal(job, policy=tmp_path / "gone.yaml") == f"TL101  the policy {tmp_path / 'gone.yaml'} does not exist"
    (tmp_path / FILE_NAME).symlink_to("nowhere")
    assert "does not exist" in refusal(job)
    (tmp_path / FILE_NAME).unlink()
    (tmp_path / "jobs" / FILE_NAME).mkdir()
    assert "is a folder, not a policy" in refusal(job)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_policy_of_another_user_must_be_named(tmp_path: Path) -> None:
    """What somebody leaves in a shared folder could give a job its command; the job's own owner may."""
    policy, job = write_policy(tmp_path, defaults={"user": "7"}), write_job(tmp_path / "jobs")
    os.chown(policy, 12345, 12345)
    assert refusal(job).startswith("TL144")
    assert "uid 12345" in refusal(job)
    assert read_job(job, policy=policy).user == "7"
    os.chown(job, 12345, 12345)
    assert read_job(job).user == "7"


def test_an_empty_policy_asks_nothing(tmp_path: Path) -> None:
    """All of it commented out is a policy too."""
    write_policy(tmp_path)
    (tmp_path / FILE_NAME).write_text("# max: {memory: 8Gi}\n")
    policy = read_job(write_job(tmp_path)).policy
    assert policy
    assert not policy.max


def test_defaults_lie_beneath_mapping_by_mapping(tmp_path: Path) -> None:
    """Mappings merge, lists and scalars replace, and only what is in effect is the policy's."""
    job = job_under(
        tmp_path,
        {
            "pull_policy": "always",
            "env": {"A": "policy", "B": "policy"},
            "resources": {"cpus": 2, "memory": "4Gi"},
            "mounts": [{"type": "tmpfs", "target": "/policy"}],
            "group_add": ["1"],
        },
        env={"A": "job", "C": "job"},
        resources={"memory": "8Gi"},
        group_add=["2"],
    )
    assert job.env == {"A": "job", "C": "job", "B": "policy"}
    assert (job.resources.cpus, job.resources.memory) == (2000, 8 << 30)
    assert job.group_add == ("2",)
    assert job.policy
    assert {each.field: each.value for each in job.policy.given} == {
        "pull_policy": "always",
        "env.B": "policy",
        "resources.cpus": "2",
        "mounts": "[{type: tmpfs, target: /policy}]",
    }
    assert job.origin("resources").kind == job.origin("env.A").kind == "job"
    assert job.origin("resources.cpus").kind == "policy"


def test_target_overrides_of_defaults_come_before_the_job(tmp_path: Path) -> None:
    """A platform team gives each target its own; a job's own field wins over both."""
    overrides = {"kubernetes": {"user": "2", "working_dir": "/k", "resources": {"cpus": 3, "memory": "4Gi"}}}
    defaults = {"user": "1", "working_dir": "/all", "target_overrides": overrides}
    fields = {"working_dir": "/job"}
    docker = job_under(tmp_path, defaults, **fields)
    assert (docker.user, docker.working_dir, docker.resources.cpus) == ("1", "/job", None)
    cluster = job_under(tmp_path, defaults, "kubernetes", **fields)
    assert (cluster.user, cluster.working_dir, cluster.resources.cpus) == ("2", "/job", 3000)


def test_defaults_can_give_what_a_job_must_state(tmp_path: Path) -> None:
    """Image, command and target: a job of one line is a job."""
    write_policy(tmp_path, defaults={"image": "base:1", "command": ["python", "x.py"], "target": "compose"})
    path = write_job(tmp_path, image=None, command=None)
    job = read_job(path)
    assert (job.image, job.command, job.target) == ("base:1", ("python", "x.py"), "compose")
    assert {image: span.file for image, span in stated_images(path).items()} == {"base:1": str(tmp_path / FILE_NAME)}


@pytest.mark.parametrize("stated", PAIRS)
def test_one_of_two_alternatives_drops_the_other(tmp_path: Path, stated: str) -> None:
    """A default command is none beside a job's script, and so on: the job stated one."""
    other = next(each for each in PAIRS if each != stated)
    loader: dict[str, Any] = {"sample": {"shape": [2], "dtype": "int8"}}
    measured: dict[str, Any] = {"batch_bytes": {"size": "1Mi", "tensors": 1}}
    job = job_under(
        tmp_path,
        {other: PAIRS[other], "data_loader": measured, "env": {"X": "1"}, "secrets": {"Y": {"env": "Y"}}},
        **{"command": None, stated: PAIRS[stated], "data_loader": {"batch_size": 2, **loader}},
        env={"Y": "2"},
        secrets={"X": {"env": "X"}},
    )
    assert bool(job.command) == (stated == "command")
    assert bool(job.script) == (stated == "script")
    (train,) = job.data_loader.loaders
    assert train.sample
    assert train.batch_bytes is None
    assert (dict(job.env), list(job.secrets)) == ({"Y": "2"}, ["X"])


def test_null_is_the_policys_default(tmp_path: Path) -> None:
    """In target_overrides and in --set null means the default, which a policy changes."""
    write_policy(tmp_path, defaults={"user": "1", "env": {"A": "policy"}})
    path = write_job(tmp_path, user="2", env={"A": "job"}, target_overrides={"compose": {"user": None}})
    assert read_job(path).user == "2"
    assert read_job(path, target="compose").user == "1"
    found = read_job(path, sets=["user=", "env.A="])
    assert (found.user, found.env["A"]) == ("1", "policy")
    assert found.origin("user").kind == "policy"


def test_a_bad_default_is_an_error_at_its_place(tmp_path: Path) -> None:
    """What a target can't say is said at the policy's line, where it was written."""
    policy = write_policy(tmp_path, defaults={"annotations": {"a": "b"}})
    assert refusal(write_job(tmp_path)).startswith(f"TL401 {policy}:")


def test_a_policy_is_not_set_by_set(tmp_path: Path) -> None:
    """Its defaults lie beneath what --set is laid on."""
    assert "--set policy comes after the policy's defaults" in refusal(write_job(tmp_path), sets=["policy=x.yaml"])


LAYERS = ("policy", "policy_override", "job", "job_override", "set")
VALUES = {
    "user": st.integers(1, 5000).map(str),
    "working_dir": st.integers(1, 5000).map("/w{}".format),
    "stop_grace_period": st.integers(31, 5000).map(format_duration),
    "env.X": st.integers(1, 5000).map(str),
    "healthcheck.retries": st.integers(4, 5000),
}
STATED = st.fixed_dictionaries(
    {
        field: st.fixed_dictionaries({}, optional=dict.fromkeys(LAYERS, values))  # any of the layers, in any mix
        for field, values in VALUES.items()
    }
)


def nested(stated: dict[str, dict[str, Any]], layer: str) -> dict[str, Any]:
    """Return one layer's fields as a file has them."""
    found: dict[str, Any] = {}
    for field, layers in stated.items():
        if layer in layers:
            outer, _, inner = field.partition(".")
            found[outer] = {inner: layers[layer]} if inner else layers[layer]
    return found


@settings(max_examples=60, deadline=None)
@given(STATED)
def test_the_last_layer_that_states_a_field_wins(stated: dict[str, dict[str, Any]]) -> None:
    """Policy < the policy's override < job < the job's override < --set, for each field alone, with its origin."""
    with TemporaryDirectory() as folder:
        overrides = {"target_overrides": {"docker": nested(stated, "policy_override")}}
        write_policy(Path(folder), defaults={**nested(stated, "policy"), **overrides})
        path = write_job(
            Path(folder), **nested(stated, "job"), target_overrides={"docker": nested(stated, "job_override")}
        )
        sets = [f"{field}={layers['set']}" for field, layers in stated.items() if "set" in layers]
        job = read_job(path, sets=sets)
    kinds = {"policy": "policy", "policy_override": "policy", "job": "job", "job_override": "target_overrides"}
    for field, layers in stated.items():
        last = next((layer for layer in reversed(LAYERS) if layer in layers), None)
        assert job.origin(field).kind == ("default" if last is None else kinds.get(last, "--set"))
        if last is not None:
            assert spelled(job, field) == str(layers[last])
    assert job.policy
    given = {each.field for each in job.policy.given if each.field in VALUES}
    assert given == {field for field in VALUES if job.origin(field).kind == "policy"}


def spelled(job: JobSpec, field: str) -> str:
    """Return a field's value as the test writes it."""
    found = {
        "user": job.user,
        "working_dir": job.working_dir,
        "stop_grace_period": format_duration(job.stop_grace_period),
        "env.X": job.env.get("X"),
        "healthcheck.retries": job.healthcheck.retries,
    }
    return str(found[field])
