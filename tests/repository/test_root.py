"""How far a file may lead: which repository it lies in, and what of a repository's links and names is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from trainlaunch.repository.root import ITS_OWN, Reach, link_outside, repository_of

from tests.repository.git import git, repository


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder of nobody's, and live in another."""
    for each in ("here", "home"):
        (tmp_path / each).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def root_of(file: Path) -> Path | None:
    """Return the root of a file's repository."""
    found = repository_of(file)
    return found.root if found else None


def test_the_root_is_the_outermost_repository_that_tracks_what_lies_in_it(tmp_path: Path) -> None:
    """As files, whatever `.git` is put among them, or as submodules of submodules."""
    deep = repository(tmp_path / "deep", jobs__job_yaml="")
    middle = repository(tmp_path / "middle", a="")
    git(middle, "submodule", "add", "-q", str(deep), "deep")
    git(middle, "commit", "-qm", "b")
    outer = repository(tmp_path / "outer", own__job_yaml="")
    git(outer, "submodule", "add", "-q", str(middle), "middle")
    git(outer, "submodule", "update", "-q", "--init", "--recursive")
    git(outer, "init", "-q", "own")
    for job in ("middle/deep/jobs/job.yaml", "own/job.yaml"):
        assert repository_of(outer / job) == (outer, ())


def test_a_repository_that_nothing_tracks_is_one_of_its_own(tmp_path: Path) -> None:
    """What lies around it is told: a policy there must not be passed over."""
    outer = repository(tmp_path / "outer", a="")
    inner = repository(outer / "vendor" / "inner", job_yaml="")
    assert repository_of(inner / "job.yaml") == (inner, (outer,))


def test_a_worktree_within_its_repository_has_nothing_around_it(tmp_path: Path) -> None:
    """It is a checkout of the same, with the policies of its own commit."""
    outer = repository(tmp_path / "outer", job_yaml="")
    git(outer, "worktree", "add", "-q", "-b", "other", "trees/other")
    assert repository_of(outer / "trees" / "other" / "job.yaml") == (outer / "trees" / "other", ())


@pytest.mark.parametrize("tracked", [True, False])
def test_a_repository_in_a_home_folder_counts_for_what_it_tracks(tmp_path: Path, tracked: bool) -> None:
    """One of dotfiles has nothing to do with the projects beside them; one that is the project has."""
    home = repository(tmp_path / "home", _bashrc="")
    (home / "project").mkdir()
    (home / "project" / "job.yaml").touch()
    if tracked:
        git(home, "add", "project")
    assert root_of(home / "project" / "job.yaml") == (home if tracked else None)
    inner = repository(home / "clone", job_yaml="")
    assert repository_of(inner / "job.yaml") == (inner, ())


def test_without_a_repository_the_folder_given_or_the_current_one_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a file's own, and never all of the machine."""
    job = tmp_path / "here" / "deploy" / "jobs" / "job.yaml"
    assert Reach().root(job) == tmp_path / "here"
    assert Reach(given=(tmp_path,)).root(job) == tmp_path
    monkeypatch.chdir(tmp_path / "home")
    assert Reach().root(job) == job.parent
    monkeypatch.chdir("/")
    assert Reach().root(job) == job.parent


def test_a_current_folder_that_was_deleted_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell still stands in it, as after `git checkout` of another branch; what is named from there is no file."""
    gone, job = tmp_path / "gone", tmp_path / "here" / "job.yaml"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert Reach().root(job) == job.parent
    assert Reach().holds(Path("job.yaml"), Path("job.yaml"))


def test_links_count_as_where_they_lead_to(tmp_path: Path) -> None:
    """A name is a stranger's; so is what its links name."""
    repo = repository(tmp_path / "repo", job_yaml="", src__a="")
    other = repository(tmp_path / "other", secret="")
    (repo / "inner").symlink_to("src")
    (repo / "away").symlink_to(other)
    job = repo / "job.yaml"
    assert ITS_OWN.holds(repo / "inner" / "a", job)
    assert not ITS_OWN.holds(repo / "away" / "secret", job)
    assert not ITS_OWN.holds(repo / ".." / "other" / "secret", job)
    assert not ITS_OWN.holds(tmp_path / "nothing", job)
    assert Reach(allowed=(other,)).holds(repo / "away" / "secret", job)
    (tmp_path / "link").symlink_to(repo)
    assert ITS_OWN.holds(tmp_path / "link" / "src", tmp_path / "link" / "job.yaml")


def test_a_folder_of_no_repository_may_be_named_by_a_link_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many a home has its projects on another disk; a link of that folder still leads nowhere."""
    project = tmp_path / "data" / "project"
    project.mkdir(parents=True)
    (project / "job.yaml").touch()
    (project / "away.yaml").symlink_to(tmp_path / "secret")
    (tmp_path / "here" / "project").symlink_to(project)
    monkeypatch.chdir(tmp_path / "here")
    assert ITS_OWN.holds(Path("project/job.yaml"), Path("project/job.yaml"))
    assert not ITS_OWN.holds(Path("project/away.yaml"), Path("project/away.yaml"))


def test_a_submodule_that_is_tracked_no_more_is_no_worktree(tmp_path: Path) -> None:
    """Another branch leaves its folder there, and the policies around it must not be passed over."""
    outer = repository(tmp_path / "outer", a="")
    git(outer, "submodule", "add", "-q", str(repository(tmp_path / "other", job_yaml="")), "inner")
    git(outer, "rm", "-q", "--cached", "inner")
    assert repository_of(outer / "inner" / "job.yaml") == (outer / "inner", (outer,))


def test_a_user_without_a_name_or_a_home_has_no_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like that of many containers; git is asked all the same."""
    outer = repository(tmp_path / "outer", inner__job_yaml="")
    git(outer, "init", "-q", "inner")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    assert root_of(outer / "inner" / "job.yaml") == outer


def test_hidden_folders_of_a_home_are_nobodys_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and tokens lie there, also for whoever works in his home itself."""
    home = tmp_path / "home"
    monkeypatch.chdir(home)
    job = home / "downloaded" / "job.yaml"
    assert ITS_OWN.holds(home / "src", job)
    assert not ITS_OWN.holds(home / ".ssh", job)
    assert not ITS_OWN.holds(Path(os.path.relpath(home / ".ssh")), job)
    for each in (home / ".job.yaml", home / ".job.lock.yaml"):
        assert link_outside(each, ITS_OWN, "") is None  # which a user may name there
    assert ITS_OWN.holds(home / ".config" / "jobs" / "src", home / ".config" / "jobs" / "job.yaml")
