"""`render` of many jobs, and what `check` says of a repository of them beside differing bytes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.committed.job_files import find_jobs

from tests import plain_yaml
from tests.conftest import ROOT, Runs
from tests.jobs import MINIMAL

POD: dict[str, Any] = {"resources": {"cpus": 1, "memory": "1Gi"}}


def write(path: Path, **fields: Any) -> Path:
    """Write a job file of that name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(plain_yaml.dump({**MINIMAL, "name": path.stem, **fields}, sort_keys=False))
    return path


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Return a repository with a policy that says where renderings belong, and three jobs."""
    (tmp_path / ".git").mkdir()
    layout = {"path": "deploy/{target}/{name}.yaml", "targets": ["compose", "kubernetes"]}
    (tmp_path / "trainlaunch-policy.yaml").write_text(plain_yaml.dump({"render": layout}))
    for name in ("aa", "bb"):
        write(tmp_path / "jobs" / f"{name}.yaml", **POD)
    write(tmp_path / "jobs" / "deep" / "cc.yml", **POD)
    return tmp_path


def files(folder: Path) -> list[str]:
    """Return the files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_folder_is_rendered_where_the_policy_says(trainlaunch: Runs, repo: Path) -> None:
    """For its targets; a second run writes nothing, and check finds all of them current."""
    done = trainlaunch("render", "jobs", cwd=repo)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "3 jobs, 6 rendered files: 6 written\n" in done.stderr
    names = [f"{name}.yaml" for name in ("aa", "bb", "cc")]
    assert files(repo / "deploy") == [f"{target}/{name}" for target in ("compose", "kubernetes") for name in names]
    again = trainlaunch("render", "jobs", cwd=repo)
    assert "3 jobs, 6 rendered files: 6 as they were\n" in again.stderr
    assert trainlaunch("check", "--all-rendered", "--strict", cwd=repo).returncode == 0


def test_files_and_folders_go_where_write_to_says(trainlaunch: Runs, repo: Path) -> None:
    """Under the targets' usual names, each job once; --target takes the place of the policy's."""
    done = trainlaunch("render", "jobs/aa.yaml", "jobs/deep", "--target", "docker", "--write-to", "out", cwd=repo)
    assert done.returncode == 0, done.stderr
    assert files(repo / "out") == ["aa.docker-run.sh", "cc.docker-run.sh"]


def test_what_one_job_can_not_have_stops_no_other(trainlaunch: Runs, repo: Path) -> None:
    """All errors are said with their places, and the exit code is 1."""
    write(repo / "jobs" / "bb.yaml", resources={"cpus": 1})
    write(repo / "jobs" / "dd.yaml", shm_size=0)
    done = trainlaunch("render", "jobs", cwd=repo)
    assert done.returncode == 1
    assert "jobs/dd.yaml:" in done.stderr
    assert "4 jobs, 8 rendered files: 5 written, 3 not rendered" in done.stderr
    assert files(repo / "deploy" / "kubernetes") == ["aa.yaml", "cc.yaml"]


def test_a_changed_file_is_kept_without_overwrite(trainlaunch: Runs, repo: Path) -> None:
    """It may hold somebody's change."""
    trainlaunch("render", "jobs", cwd=repo)
    changed = repo / "deploy" / "compose" / "aa.yaml"
    changed.write_text("mine\n")
    done = trainlaunch("render", "jobs", cwd=repo)
    assert done.returncode == 1
    assert "error[TL115]: deploy/compose/aa.yaml exists and differs" in done.stderr
    assert changed.read_text() == "mine\n"
    assert trainlaunch("render", "jobs", "--overwrite", cwd=repo).returncode == 0


def test_two_jobs_never_share_a_file(trainlaunch: Runs, repo: Path) -> None:
    """The second is refused and the first stays."""
    write(repo / "jobs" / "zz.yaml", name="aa", **POD)
    done = trainlaunch("render", "jobs", cwd=repo)
    assert done.returncode == 1
    assert "jobs/zz.yaml and jobs/aa.yaml would both be rendered to deploy/compose/aa.yaml" in done.stderr


def test_nowhere_to_write_is_said(trainlaunch: Runs, tmp_path: Path) -> None:
    """With both ways; so is a folder without a job, and an option for one."""
    (tmp_path / ".git").mkdir()
    write(tmp_path / "aa.yaml")
    write(tmp_path / "bb.yaml")
    done = trainlaunch("render", ".", cwd=tmp_path)
    assert done.returncode == 1
    assert 'add --write-to DIR, or to a policy: render: {path: "{target}/{file}"}' in done.stderr
    (tmp_path / "empty").mkdir()
    assert "no job file is in empty" in trainlaunch("render", "empty", cwd=tmp_path).stderr
    named = trainlaunch("render", "aa.yaml", "bb.yaml", "--name", "x1", cwd=tmp_path)
    assert named.returncode == 2
    assert "--name is for one job" in named.stderr


def test_job_files_are_told_from_others(tmp_path: Path) -> None:
    """A repository holds many YAML files; a job with a mistake in it is one all the same."""
    write(tmp_path / "job.yaml")
    write(tmp_path / "misspelt.yaml", comand=["x"], command=None)
    (tmp_path / "of_policy.yaml").write_text("name: x\nprofile: a100\n")
    others = {
        "compose.yaml": "name: x\nservices: {a: {image: b}}\n",
        "workflow.yaml": "name: CI\non: push\njobs: {}\n",
        "action.yaml": "name: x\ndescription: y\nruns: {using: composite}\n",
        "conda.yml": "name: env\nchannels: [x]\ndependencies: [y]\n",
        "manifest.yaml": "apiVersion: v1\nkind: Pod\n",
        "trainlaunch-policy.yaml": "defaults: {}\n",
        "broken.yaml": "{",
        "chart.yaml": "name: x\nversion: 1\ndescription: y\n",
    }
    for name, text in others.items():
        (tmp_path / name).write_text(text)
    shutil.copytree(ROOT / "k8s", tmp_path / "k8s")
    shutil.copytree(ROOT / "compose", tmp_path / "compose")
    found = {path.name for path in find_jobs([tmp_path])}
    assert found == {"job.yaml", "misspelt.yaml", "of_policy.yaml"}
    examples = {path.parent.name for path in find_jobs([ROOT / "examples"])}
    assert examples >= {path.parent.name for path in (ROOT / "examples").glob("*/job.yaml")}


def test_a_link_to_a_job_file_is_no_second_job(tmp_path: Path) -> None:
    """It was rendered twice, and the link took the file's place."""
    write(tmp_path / "job.yaml")
    (tmp_path / "current.yaml").symlink_to("job.yaml")
    write(tmp_path / "elsewhere" / "other.yaml")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "linked.yaml").symlink_to("../elsewhere/other.yaml")
    assert find_jobs([tmp_path / "a", tmp_path / "job.yaml", tmp_path / "a" / ".." / "job.yaml"]) == [
        tmp_path / "a" / "linked.yaml",
        tmp_path / "job.yaml",
    ]
    assert find_jobs([tmp_path]) == [tmp_path / "job.yaml", tmp_path / "elsewhere" / "other.yaml"]


def test_a_closed_file_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can tell whether it is a job; reading it as one says that it is closed."""
    write(tmp_path / "job.yaml")
    write(tmp_path / "closed.yaml")
    opened = Path.open

    def closed(path: Path, *args: Any, **how: Any) -> Any:
        if path.name == "closed.yaml":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *args, **how)

    monkeypatch.setattr(Path, "open", closed)
    assert [path.name for path in find_jobs([tmp_path])] == ["closed.yaml", "job.yaml"]


@pytest.mark.parametrize("change", ["deleted", "pushed down"])
def test_a_header_that_is_gone_is_found(trainlaunch: Runs, repo: Path, change: str) -> None:
    """The file would be compared with nothing for ever."""
    trainlaunch("render", "jobs", cwd=repo)
    path = repo / "deploy" / "kubernetes" / "aa.yaml"
    text = path.read_text()
    path.write_text(text.split("\n", 2)[2] if change == "deleted" else "#\n" * 5000 + text)
    done = trainlaunch("check", cwd=repo)
    assert done.returncode == 1
    assert "error[TL155]: deploy/kubernetes/aa.yaml looks like a rendered file and has" in done.stderr
    (repo / "deploy" / "kubernetes" / "notes.yaml").write_text("kind: ConfigMap\n")
    assert "notes.yaml" not in trainlaunch("check", cwd=repo).stderr


def test_warnings_are_shown_and_strict_fails_on_them(trainlaunch: Runs, repo: Path) -> None:
    """Those of jobs, of options that change a size, and of job files elsewhere."""
    write(repo / "jobs" / "aa.yaml", image="trainer:latest", **POD)
    trainlaunch("render", "jobs", cwd=repo)
    done = trainlaunch("check", cwd=repo)
    assert (done.returncode, done.stderr.count("warning[")) == (0, 1), done.stderr
    assert trainlaunch("check", "--strict", cwd=repo).returncode == 1
    document = json.loads(trainlaunch("check", "-o", "json", cwd=repo).stdout)
    assert [each["severity"] for each in document["findings"]] == ["warning"]


def test_a_rendering_by_option_and_from_elsewhere_is_named(trainlaunch: Runs, repo: Path) -> None:
    """Who reviews the job file sees other values; what lies elsewhere is not even read."""
    trainlaunch(
        "render", "jobs/aa.yaml", "--set", "shm_size=128Mi", "--set", "env.A=b", "--write-to", "deploy", cwd=repo
    )
    outside = write(repo.parent / f"{repo.name}-outside" / "ee.yaml")
    trainlaunch("render", str(outside), "--write-to", "deploy", cwd=repo)
    done = trainlaunch("check", cwd=repo)
    assert "was rendered with --set shm_size, which" in done.stderr
    assert f"ee.yaml leads out of {repo}" in done.stderr
    assert (done.returncode, trainlaunch("check", "--allow-outside", str(outside.parent), cwd=repo).returncode) == (
        1,
        0,
    )


def test_two_jobs_of_one_name_are_named(trainlaunch: Runs, repo: Path) -> None:
    """And only where they are two."""
    trainlaunch("render", "jobs", cwd=repo)
    write(repo / "other" / "aa.yaml", env={"A": "b"}, **POD)
    trainlaunch("render", "other/aa.yaml", "--target", "compose", "--write-to", "more", cwd=repo)
    done = trainlaunch("check", cwd=repo)
    assert "have the name aa, and both are rendered for compose" in done.stderr
    assert done.stderr.count("TL157") == 2  # the finding, and how to explain it
    assert trainlaunch("check", "--strict", cwd=repo).returncode == 1


def test_a_job_without_a_rendering_is_found_where_asked(trainlaunch: Runs, repo: Path) -> None:
    """By --all-rendered alone: a job may be nobody's to commit."""
    trainlaunch("render", "jobs", cwd=repo)
    write(repo / "jobs" / "new.yaml", **POD)
    assert trainlaunch("check", cwd=repo).returncode == 0
    done = trainlaunch("check", "--all-rendered", cwd=repo)
    assert done.returncode == 1
    assert "error[TL157]: jobs/new.yaml is a job file, and no rendered file here was made from it" in done.stderr
