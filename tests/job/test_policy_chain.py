"""Several policies in force at once: which they are, whose value wins, and that a nearer one only narrows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trainlaunch.diagnostics import Severity
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.ceilings import Policy
from trainlaunch.job.spec import JobSpec
from trainlaunch.policy import read_job, stated_images
from trainlaunch.policy.policy_file import read_policy
from trainlaunch.policy.policy_precedence import strictest

from tests import plain_yaml
from tests.job.test_policy import write_policy
from tests.jobs import write_job

TAINT = {"key": "nvidia.com/gpu", "operator": "Exists"}
OTHER = {"key": "team", "operator": "Exists"}


def repository(folder: Path) -> Path:
    """Return `folder` as the root of a repository."""
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    return folder


def files_of(job: JobSpec, folder: Path) -> list[str]:
    """Return the policies in force as seen from `folder`, the nearest first."""
    assert job.policy is not None
    return [os.path.relpath(each, folder) for each in job.policy.files]


def errors_of(path: Path, **how: Any) -> list[str]:
    """Return place and message of each error of a job."""
    with pytest.raises(JobFileRejected) as caught:
        read_job(path, **how)
    return [f"{each.code} {each.span} {each.message}" for each in caught.value.diagnostics]


def test_all_up_to_the_repositorys_root_are_in_force(tmp_path: Path) -> None:
    """The nearest first; what lies above the folder with .git is another's."""
    write_policy(tmp_path, defaults={"user": "9"})
    repo = repository(tmp_path / "repo")
    for folder in (repo, repo / "team"):
        write_policy(folder)
    job = read_job(write_job(repo / "team" / "jobs"))
    assert files_of(job, repo) == ["team/trainlaunch-policy.yaml", "trainlaunch-policy.yaml"]
    assert job.user is None
    (repo / ".git").rmdir()
    assert files_of(read_job(repo / "team" / "jobs" / "job.yaml"), repo)[-1] == "../trainlaunch-policy.yaml"


def test_a_file_named_git_is_a_root_too(tmp_path: Path) -> None:
    """A worktree and a submodule have one."""
    write_policy(tmp_path)
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / ".git").write_text("gitdir: ../elsewhere\n")
    assert read_job(write_job(tmp_path / "repo" / "jobs")).policy is None


def test_an_empty_file_switches_nothing_off(tmp_path: Path) -> None:
    """A nearer policy narrows and never loosens."""
    repo = repository(tmp_path)
    write_policy(repo, max={"memory": "8Gi"}, require_digest=True)
    (repo / "team").mkdir()
    (repo / "team" / "trainlaunch-policy.yaml").write_text("# nothing\n")
    policy = read_job(write_job(repo / "team")).policy
    assert policy is not None
    assert policy.max["memory"].value == 8 << 30
    assert policy.digest_span is not None


def test_extends_lies_beneath_its_file_and_above_the_next(tmp_path: Path) -> None:
    """It is relative to the file that says it; a file that is reached twice counts once."""
    repo = repository(tmp_path) / "repo"
    write_policy(tmp_path / "org", "base.yaml", defaults={"user": "1", "working_dir": "/base", "stop_signal": "SIGINT"})
    write_policy(repo, extends="../org/base.yaml", defaults={"user": "2", "working_dir": "/repo"})
    write_policy(repo / "team", extends="../../org/base.yaml", defaults={"user": "3"})
    job = read_job(write_job(repo / "team" / "jobs"))
    assert files_of(job, tmp_path) == [
        "repo/team/trainlaunch-policy.yaml",
        "org/base.yaml",
        "repo/trainlaunch-policy.yaml",
    ]
    assert (job.user, job.working_dir, job.stop_signal) == ("3", "/base", "SIGINT")


def test_a_circle_of_extends_is_an_error_at_its_place(tmp_path: Path) -> None:
    """It would be followed for ever."""
    write_policy(tmp_path, "a.yaml", extends="b.yaml")
    second = write_policy(tmp_path, "b.yaml", extends="a.yaml")
    (only,) = errors_of(write_job(tmp_path), policy=tmp_path / "a.yaml")
    assert only == f"TL107 {second}:1:10 the policy extends a.yaml, which leads back to it"


def test_a_policy_that_extends_nothing_that_is_there_is_an_error_at_its_line(tmp_path: Path) -> None:
    """The place is the extending file's."""
    path = write_policy(tmp_path, extends="gone.yaml")
    (only,) = errors_of(write_job(tmp_path))
    assert only == f"TL101 {path}:1:10 the policy {tmp_path / 'gone.yaml'} does not exist"


def test_the_jobs_own_policy_is_the_nearest(tmp_path: Path) -> None:
    """It adds to those that are found; --policy takes the place of all."""
    repo = repository(tmp_path)
    write_policy(repo, defaults={"user": "1", "working_dir": "/found"}, max={"memory": "8Gi"})
    write_policy(repo / "env", "prod.yaml", extends="base.yaml", defaults={"user": "2"}, max={"memory": "16Gi"})
    write_policy(repo / "env", "base.yaml", defaults={"user": "0", "stop_signal": "SIGINT"})
    path = write_job(repo / "jobs", policy="../env/prod.yaml")
    job = read_job(path)
    assert files_of(job, repo) == ["env/prod.yaml", "env/base.yaml", "trainlaunch-policy.yaml"]
    assert (job.user, job.working_dir, job.stop_signal) == ("2", "/found", "SIGINT")
    assert job.policy is not None
    assert job.policy.max["memory"].value == 8 << 30
    asked = read_job(path, policy=repo / "env" / "base.yaml")
    assert files_of(asked, repo) == ["env/base.yaml"]
    assert asked.policy is not None
    assert asked.policy.option == str(repo / "env" / "base.yaml")


def test_lists_replace_and_extend(tmp_path: Path) -> None:
    """A bare list gives way to a nearer one; what extends is added to whichever is in effect, once."""
    repo = repository(tmp_path)
    write_policy(repo, defaults={"kubernetes": {"tolerations": {"extend": [TAINT]}}, "group_add": ["1"]})
    write_policy(repo / "a", defaults={"kubernetes": {"tolerations": [OTHER]}, "group_add": ["2"]})
    cluster: dict[str, Any] = {"target": "kubernetes", "resources": {"cpus": 1, "memory": "1Gi"}}
    plain = read_job(write_job(repo / "a" / "jobs", **cluster))
    assert [each["key"] for each in plain.kubernetes.tolerations] == ["team", "nvidia.com/gpu"]
    assert plain.group_add == ("2",)
    own = {"key": "own", "operator": "Exists"}
    stated = read_job(
        write_job(repo / "a" / "jobs", **cluster, kubernetes={"tolerations": [own, TAINT]}, group_add=["3"])
    )
    assert [each["key"] for each in stated.kubernetes.tolerations] == ["own", "nvidia.com/gpu"]
    assert stated.group_add == ("3",)
    none = read_job(write_job(repo / "a" / "jobs", **cluster), sets=["kubernetes.tolerations=[]"])
    assert [each["key"] for each in none.kubernetes.tolerations] == ["nvidia.com/gpu"]


def test_what_was_added_to_a_jobs_list_is_said(tmp_path: Path) -> None:
    """The list is the job's, the added items are the policy's."""
    write_policy(repository(tmp_path), defaults={"group_add": {"extend": ["5"]}})
    job = read_job(write_job(tmp_path / "jobs", group_add=["3"]))
    assert job.group_add == ("3", "5")
    assert job.policy is not None
    assert [(each.field, each.value) for each in job.policy.given] == [("group_add", "+ [5]")]


@pytest.mark.parametrize(
    "defaults",
    [
        {"group_add": {"extend": "5"}},
        {"group_add": {"extend": ["5"], "more": 1}},
        {"group_add": {"extends": ["5"]}},
        {"env": {"extend": ["A"]}},
        {"user": {"extend": ["5"]}},
    ],
    ids=str,
)
def test_only_lists_are_extended_and_with_a_list(tmp_path: Path, defaults: dict[str, Any]) -> None:
    """Anything else would be dropped in silence."""
    path = write_policy(repository(tmp_path), defaults=defaults)
    assert str(path) in errors_of(write_job(tmp_path))[0]


def test_a_profile_lies_between_the_defaults_and_the_job(tmp_path: Path) -> None:
    """Policy defaults < profile < job < target_overrides < --set, each field alone, by target too."""
    repo = repository(tmp_path)
    profile = {
        "user": "2",
        "working_dir": "/profile",
        "stop_signal": "SIGINT",
        "env": {"P": "profile"},
        "target_overrides": {"compose": {"stop_signal": "SIGUSR1"}},
    }
    write_policy(repo, defaults={"user": "1", "env": {"D": "default", "P": "default"}}, profiles={"a100": profile})
    path = write_job(repo / "jobs", profile="a100", working_dir="/job")
    job = read_job(path)
    assert (job.profile, job.user, job.working_dir, job.stop_signal) == ("a100", "2", "/job", "SIGINT")
    assert job.env == {"D": "default", "P": "profile"}
    assert (job.origin("user").kind, job.origin("env.D").kind) == ("profile", "policy")
    assert read_job(path, target="compose").stop_signal == "SIGUSR1"
    assert read_job(path, sets=["user=7"]).user == "7"
    assert read_job(path, sets=["profile="]).user == "1"
    assert job.policy is not None
    assert {each.field: each.profile for each in job.policy.given}["user"] == "a100"


def test_a_profile_is_merged_over_the_files_that_have_it(tmp_path: Path) -> None:
    """A team may state more of an organisation's profile, the nearest value wins; defaults may ask for one."""
    repo = repository(tmp_path)
    write_policy(repo, profiles={"gpu": {"user": "1", "stop_signal": "SIGINT"}}, defaults={"profile": "gpu"})
    write_policy(repo / "team", profiles={"gpu": {"user": "2"}, "cpu": {"user": "3"}})
    job = read_job(write_job(repo / "team" / "jobs"))
    assert (job.user, job.stop_signal, job.profile) == ("2", "SIGINT", "gpu")
    cpu = read_job(
        write_job(repo / "team" / "jobs", target_overrides={"compose": {"profile": "cpu"}}), target="compose"
    )
    assert (cpu.user, cpu.stop_signal) == ("3", None)


def test_an_unknown_profile_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    """And without a policy there is none."""
    path = write_job(repository(tmp_path) / "jobs", profile="a10")
    assert "profile a10 is in no policy in force; they have none" in errors_of(path)[0]
    policy = write_policy(tmp_path, profiles={"a100": {}, "h100": {}})
    with pytest.raises(JobFileRejected) as caught:
        read_job(path)
    (only,) = caught.value.diagnostics
    assert only.message.endswith(f"they have a100 ({policy}), h100 ({policy})")
    assert only.fix == "write a100"
    assert str(only.span).startswith(f"{path}:")


@pytest.mark.parametrize(
    "given", [{"name": "x"}, {"policy": "x"}, {"profile": "b"}, {"colour": 1}, {"user": None}], ids=str
)
def test_a_bad_profile_is_an_error_at_its_place(tmp_path: Path, given: dict[str, Any]) -> None:
    """Whether a job asks for it or not."""
    path = write_policy(repository(tmp_path), profiles={"a": given})
    (only,) = errors_of(write_job(tmp_path))
    assert f"{path}:" in only


def test_the_lock_holds_images_of_every_profile(tmp_path: Path) -> None:
    """`lock` asks for each image that the job may have."""
    write_policy(
        repository(tmp_path), profiles={"a": {"image": "a:1"}, "b": {"image": "b:1"}}, defaults={"image": "c:1"}
    )
    assert sorted(stated_images(write_job(tmp_path, image=None))) == ["a:1", "b:1", "c:1"]


def test_an_older_trainlaunch_is_told_so(tmp_path: Path) -> None:
    """It would pass what it doesn't know."""
    write_policy(repository(tmp_path), requires=">=99.1")
    (only,) = errors_of(write_job(tmp_path))
    assert only.startswith("TL151")
    assert "requires trainlaunch >=99.1, and this is 0." in only
    write_policy(tmp_path, requires=">=0.0.1,<0.1")
    (only,) = errors_of(write_job(tmp_path))
    assert "requires trainlaunch >=0.0.1,<0.1, and this is 0." in only
    write_policy(tmp_path, requires=">= 0.0.1, <99")
    assert read_job(write_job(tmp_path)).policy is not None


MEMORY = st.integers(1, 64).map("{}Gi".format)
NAMES = st.lists(st.sampled_from("abcd"), min_size=1, unique=True)
FILES = st.fixed_dictionaries(
    {},
    optional={
        "max": st.fixed_dictionaries({}, optional={"memory": MEMORY, "gpus": st.integers(0, 9)}),
        "allowed_namespaces": NAMES,
        "required": st.lists(st.sampled_from(["user", "env.A", "active_deadline"]), min_size=1, unique=True),
        "require_digest": st.booleans(),
        "severities": st.dictionaries(
            st.sampled_from(["TL206", "TL207"]), st.sampled_from(["error", "warning", "info", "off"])
        ),
    },
)


def policy_of(fields: dict[str, Any], name: str) -> Policy:
    """Return what one file asks."""

    file, wrong = read_policy(plain_yaml.dump(fields), name)
    assert not wrong
    assert file is not None
    return file.asked


@settings(max_examples=60, deadline=None)
@given(st.lists(FILES, min_size=1, max_size=4))
def test_more_policies_only_narrow(files: list[dict[str, Any]]) -> None:
    """Minimum, intersection, union, or, and the stricter severity, whatever the order."""
    asked = [policy_of(fields, f"{index}.yaml") for index, fields in enumerate(files)]
    whole = strictest(asked)
    for name in ("memory", "gpus"):
        stated = [each.max[name].value for each in asked if name in each.max]
        assert (whole.max[name].value if name in whole.max else None) == min(stated, default=None)
    for value in "abcd":
        within = [value in fields["allowed_namespaces"] for fields in files if "allowed_namespaces" in fields]
        assert all(value in each.values for each in whole.allowed.get("allowed_namespaces", ())) == all(within)
    assert {name for name, _ in whole.required} == {name for fields in files for name in fields.get("required", ())}
    assert (whole.digest_span is not None) == any(fields.get("require_digest") for fields in files)
    order = [None, Severity.INFO, Severity.WARNING, Severity.ERROR]
    for code, weight in whole.severities.items():
        assert order.index(weight.severity) == max(
            order.index(each.severities[code].severity) for each in asked if code in each.severities
        )
