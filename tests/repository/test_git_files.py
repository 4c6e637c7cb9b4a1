"""What git tracks is read of any repository, and nothing that the repository names is run or read elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.repository.git import GitFailed, git_files

from tests.repository.git import git, repository

FILES = {"src__train_py": "import torch\n", "src__pkg__a_py": "", "other__b_py": ""}
Arm = Callable[[Path, str], tuple[str, ...]]


def tracked(folder: Path) -> list[str]:
    """Return what git tracks in a folder."""
    found = git_files(folder)
    assert found is not None
    return list(found.tracked)


def _lacks_a_tree(repo: Path, **remote: str) -> None:
    """Give a repository a sparse index whose missing tree is promised by a remote."""
    git(repo, "sparse-checkout", "init", "--cone", "--sparse-index")
    git(repo, "sparse-checkout", "set", "src")
    tree = git(repo, "rev-parse", "HEAD:other").stdout.strip()
    (repo / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    settings = {"extensions.partialClone": "origin", "remote.origin.promisor": "true", **remote}
    for name, value in {"core.repositoryFormatVersion": "1", **settings}.items():
        git(repo, "config", name, value)


def uploadpack(repo: Path, run: str) -> tuple[str, ...]:
    """A missing tree is fetched by the remote's own program."""
    _lacks_a_tree(repo, **{"remote.origin.url": str(repo), "remote.origin.uploadpack": f"{run}; git-upload-pack"})
    return ("ls-files",)


def ssh_command(repo: Path, run: str) -> tuple[str, ...]:
    """A missing tree is fetched over a connection that a program of the repository makes."""
    _lacks_a_tree(repo, **{"remote.origin.url": "ssh://nowhere.example/x", "core.sshCommand": f"{run}; false"})
    return ("ls-files",)


def fsmonitor(repo: Path, run: str) -> tuple[str, ...]:
    """Git asks a program which files changed."""
    git(repo, "config", "core.fsmonitor", f"{run}; false")
    return ("ls-files",)


def included(repo: Path, run: str) -> tuple[str, ...]:
    """The program is named in a file that the configuration includes."""
    git(repo, "config", "include.path", "../more")
    git(repo, "config", f"--file={repo / 'more'}", "core.fsmonitor", f"{run}; false")
    return ("ls-files",)


def hook(repo: Path, run: str) -> tuple[str, ...]:
    """Git runs a hook when it writes an index again."""
    program = repo / "hooks" / "post-index-change"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{run}\n")
    program.chmod(0o755)
    git(repo, "config", "core.hooksPath", str(program.parent))
    return ("update-index", "--force-write-index")


def filters(repo: Path, run: str) -> tuple[str, ...]:
    """Git compares a file with what a program makes of it."""
    (repo / ".gitattributes").write_text("*.py filter=x\n")
    git(repo, "config", "filter.x.clean", f"{run}; cat")
    (repo / "src" / "train.py").write_text("import numpy\n")
    return ("status",)


def submodule_update(repo: Path, run: str) -> tuple[str, ...]:
    """A submodule is checked out by a command of its own."""
    library = repository(repo.parent / "library", lib_py="")
    git(repo, "submodule", "add", "-q", str(library), "src/vendored")
    git(repo, "config", "submodule.src/vendored.update", f"!{run}; true")
    git(repo / "src" / "vendored", "checkout", "-q", "--detach")
    git(repo / "src" / "vendored", "commit", "-q", "--allow-empty", "-m", "b")
    return ("submodule", "update")


def in_submodule(repo: Path, run: str) -> tuple[str, ...]:
    """A submodule has a configuration too, which `ls-files --recurse-submodules` obeys."""
    library = repository(repo.parent / "library", lib_py="")
    git(repo, "submodule", "add", "-q", str(library), "src/vendored")
    git(repo / "src" / "vendored", "config", "core.fsmonitor", f"{run}; false")
    return ("ls-files", "--recurse-submodules")


def alternates(repo: Path, run: str) -> tuple[str, ...]:
    """A program lists the objects of another repository."""
    other = repository(repo.parent / "lender", x_py="")
    (repo / ".git" / "objects" / "info" / "alternates").write_text(f"{other / '.git' / 'objects'}\n")
    git(repo, "config", "core.alternateRefsCommand", f"{run}; true")
    return ("fetch", "-q", str(repository(repo.parent / "source", y_py="")))


@pytest.mark.parametrize(
    "arm",
    [uploadpack, ssh_command, fsmonitor, included, hook, filters, submodule_update, in_submodule, alternates],
    ids=lambda arm: arm.__name__,
)
def test_no_program_that_a_repository_names_is_run(tmp_path: Path, arm: Arm) -> None:
    """The same repository runs it where git is asked as it stands, so that the door is known to be open."""
    repo, ran = repository(tmp_path / "repo", **FILES), tmp_path / "ran"
    words = arm(repo, f"touch {ran}")
    ran.unlink(missing_ok=True)
    assert "train.py" in tracked(repo / "src")
    assert not ran.exists()
    git(repo, *words, check=False)
    assert ran.exists()


def test_a_committed_git_directory_is_a_folder_like_any_other(tmp_path: Path) -> None:
    """`git -C` takes a folder with HEAD, objects and refs for a repository, though it has no `.git`."""
    repo, ran = repository(tmp_path / "author", **FILES), tmp_path / "ran"
    bare = tmp_path / "bare"
    git(repo, "clone", "-q", "--bare", str(repo), str(bare))
    git(bare, "config", "core.fsmonitor", f"touch {ran}; false")
    git(bare, "config", "core.bare", "false")
    git(bare, "config", "core.worktree", ".")
    shutil.rmtree(repo / "src")
    shutil.copytree(bare, repo / "src")
    (repo / "src" / "refs" / "heads").mkdir(parents=True, exist_ok=True)
    (repo / "src" / "refs" / "heads" / "kept").write_text(git(repo, "rev-parse", "HEAD").stdout)
    git(repo, "add", "-A", "-f")
    git(repo, "commit", "-qm", "b")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repo), str(clone))
    (clone / "src" / "objects" / "info").mkdir(exist_ok=True)
    ran.unlink(missing_ok=True)
    assert {"HEAD", "config"} <= set(tracked(clone / "src"))
    assert not ran.exists()
    git(clone / "src", "ls-files", check=False)
    assert ran.exists()


def test_a_work_tree_elsewhere_is_not_listed(tmp_path: Path) -> None:
    """core.worktree would let the files of another folder be told as untracked."""
    repo, private = repository(tmp_path / "repo", **FILES), tmp_path / "private"
    private.mkdir()
    (private / "id_rsa").touch()
    git(repo, "config", "core.worktree", str(private))
    found = git_files(repo)
    assert found is not None
    assert "src/train.py" in found.tracked
    assert found.untracked == ()


@pytest.mark.parametrize("kind", ["file", "link", "index", "shared index", "fifo"])
def test_a_git_directory_that_is_somebody_elses_is_told(tmp_path: Path, kind: str) -> None:
    """Its index lists names of files that nobody gave away; a FIFO would be waited for."""
    private = repository(tmp_path / "private", secret_py="") / ".git"
    repo = repository(tmp_path / "repo", **FILES)
    dot = repo / ".git"
    if kind in {"file", "link"}:
        shutil.rmtree(dot)
        dot.write_text(f"gitdir: {private}\n") if kind == "file" else dot.symlink_to(private)
    elif kind == "shared index":
        (dot / "sharedindex.x").symlink_to(private / "index")
    else:
        (dot / "index").unlink()
        os.mkfifo(dot / "index") if kind == "fifo" else (dot / "index").symlink_to(private / "index")
    with pytest.raises(GitFailed):
        git_files(repo)


def _submodule(repo: Path) -> None:
    git(repo, "submodule", "add", "-q", str(repository(repo.parent / "library", lib_py="")), "src/vendored")
    git(repo, "commit", "-qm", "b")


HONEST: dict[str, tuple[tuple[str, ...], Callable[[Path], object]]] = {
    "plain": ((), lambda repo: None),
    "split index": ((), lambda repo: git(repo, "update-index", "--split-index")),
    "index of version 4": ((), lambda repo: git(repo, "update-index", "--index-version", "4")),
    "untracked cache": ((), lambda repo: git(repo, "update-index", "--untracked-cache")),
    "sha256": (("--object-format=sha256",), lambda repo: None),
    "sparse index": ((), lambda repo: git(repo, "sparse-checkout", "set", "--cone", "--sparse-index", "src")),
    "sparse checkout": ((), lambda repo: git(repo, "sparse-checkout", "set", "--cone", "src")),
    "sparse checkout of all": ((), lambda repo: git(repo, "sparse-checkout", "set", "--cone", "src", "other")),
    "submodule": ((), _submodule),
}


@pytest.mark.parametrize("kind", HONEST)
@pytest.mark.parametrize("worktree", [False, True], ids=["", "worktree"])
def test_an_honest_repository_is_listed_as_git_lists_it(tmp_path: Path, kind: str, worktree: bool) -> None:
    """Whatever form its index has; a worktree has a file `.git`, which points at a folder that points back."""
    options, arm = HONEST[kind]
    repo = repository(tmp_path / "repo", *options, **FILES)
    if worktree and kind != "submodule":
        git(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
        repo = tmp_path / "tree"
    arm(repo)
    if worktree and kind == "submodule":
        git(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
        repo = tmp_path / "tree"
        git(repo, "submodule", "update", "-q", "--init")
    (repo / "src" / "new.py").touch()
    (repo / "src" / "run.log").touch()
    (repo / ".gitignore").write_text("*.log\n")
    expected = git(repo / "src", "ls-files", "--recurse-submodules").stdout.split()
    assert tracked(repo / "src") == sorted(expected)
    found = git_files(repo / "src")
    assert found is not None
    assert found.untracked == ("new.py",)


def test_files_in_a_folder_that_a_sparse_index_leaves_out_are_told(tmp_path: Path) -> None:
    """They are tracked or new, and only trees that may be missing would tell which."""
    repo = repository(tmp_path / "repo", **FILES)
    git(repo, "sparse-checkout", "set", "--cone", "--sparse-index", "src")
    assert "src/train.py" in tracked(repo)
    (repo / "other").mkdir(exist_ok=True)
    (repo / "other" / "b.py").touch()
    with pytest.raises(GitFailed, match="git sparse-checkout disable"):
        git_files(repo)
