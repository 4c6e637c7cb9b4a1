"""Which files of a folder are a job's code, whatever lies in it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from trainlaunch.job.code_folder import MAX_BYTES, MAX_FILES, CodeFolder, CodeRefused, read_code_folder

from tests.repository.git import git


@pytest.fixture
def src(tmp_path: Path) -> Path:
    """Return a folder with a script and a package, in no repository."""
    src = tmp_path / "src"
    (src / "pkg" / "__pycache__").mkdir(parents=True)
    (src / "train.py").write_text("import pkg\n")
    (src / "pkg" / "__init__.py").touch()
    (src / "pkg" / "__pycache__" / "a.pyc").write_bytes(b"\0")
    return src


@pytest.fixture
def repository(src: Path) -> Path:
    """Return the same folder, in a repository that tracks it and ignores *.log."""
    git(src.parent, "init", "-q")
    (src.parent / ".gitignore").write_text("*.log\n__pycache__\n")
    git(src.parent, "add", ".")
    return src


def taken(src: Path) -> CodeFolder:
    """Return what is taken along."""
    return read_code_folder("./src", src)


def paths(src: Path) -> list[str]:
    """Return the paths that are taken along."""
    return [each.path for each in taken(src).files]


def refused(src: Path) -> str:
    """Return why nothing is."""
    with pytest.raises(CodeRefused) as caught:
        taken(src)
    assert caught.value.fix
    return caught.value.message


def test_without_git_all_files_are_taken_but_pythons_caches(src: Path) -> None:
    """Hidden files too; a cache would change the content with each run."""
    (src / ".env").touch()
    assert paths(src) == [".env", "pkg/__init__.py", "train.py"]
    assert not taken(src).by_git


def test_with_git_the_tracked_files_are_taken_as_they_are_now(repository: Path) -> None:
    """Edited and not committed counts, ignored and deleted files don't, a new one is told."""
    (repository / "train.py").write_text("import pkg.new\n")
    (repository / "run.log").touch()
    (repository / "pkg" / "new.py").touch()
    (repository / "pkg" / "__init__.py").unlink()
    found = taken(repository)
    assert [(each.path, each.data) for each in found.files] == [("train.py", b"import pkg.new\n")]
    assert found.untracked == ("pkg/new.py",)
    assert found.by_git


def test_a_hooks_variables_and_a_foreign_owner_change_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook has GIT_DIR and an index of its own; in CI the checkout is often somebody else's."""
    before = taken(repository)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    os.chown(repository.parent, 4321, 4321)
    assert taken(repository) == before


def test_a_repository_without_tracked_files_says_what_to_type(src: Path) -> None:
    """On the first day nothing is added yet."""
    git(src.parent, "init", "-q")
    assert refused(src) == "git tracks no file of ./src"


def test_a_broken_repository_is_not_taken_for_none(repository: Path) -> None:
    """All files instead of the tracked ones would be another content on each machine."""
    (repository.parent / ".git" / "index").write_bytes(b"nonsense")
    assert refused(repository).startswith("git can't tell which files of ./src it tracks: ")


def test_git_is_needed_where_there_is_a_repository(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And only there."""
    monkeypatch.setenv("PATH", "/nowhere")
    assert "git is not installed here" in refused(repository)


def test_a_folder_of_another_repository_is_that_ones(src: Path, tmp_path: Path) -> None:
    """The job file's own repository says nothing about a folder outside of it."""
    git(tmp_path, "init", "-q")
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "a.py").touch()
    git(other, "add", ".")
    assert paths(other) == ["a.py"]


def test_submodules_bring_their_files_once_they_are_checked_out(repository: Path, tmp_path: Path) -> None:
    """One that isn't is an empty folder, and the job would miss a package."""
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    (library / "lib.py").touch()
    git(library, "add", ".")
    git(library, "commit", "-qm", "a")
    git(repository, "submodule", "add", "-q", str(library), "vendored")
    assert "vendored/lib.py" in paths(repository)
    git(repository, "submodule", "deinit", "--force", "vendored")
    assert refused(repository) == "vendored in ./src is a git repository of its own that is not checked out"


def test_links_are_what_they_lead_to_below_the_folder(src: Path) -> None:
    """A file's content, or the files of a folder; a ConfigMap has no links."""
    (src / "main.py").symlink_to("train.py")
    (src / "alias").symlink_to("pkg")
    assert paths(src) == ["alias/__init__.py", "main.py", "pkg/__init__.py", "train.py"]
    assert {each.path: each.data for each in taken(src).files}["main.py"] == b"import pkg\n"


@pytest.mark.parametrize("target", ["/etc/passwd", "../job.yaml", "gone", ".", "link"])
def test_links_to_elsewhere_are_refused(src: Path, target: str) -> None:
    """What is outside is not this folder's to give away, and a dangling link means something else in the container."""
    (src.parent / "job.yaml").touch()
    (src / "pkg" / "link").symlink_to(target if target != "." else src)
    assert refused(src).startswith("pkg/link in ./src is a link to ")


def test_links_in_a_circle_are_refused(src: Path) -> None:
    """Each would hold the other for ever."""
    (src / "a").mkdir()
    (src / "b").mkdir()
    (src / "a" / "b").symlink_to("../b")
    (src / "b" / "a").symlink_to("../a")
    assert "is a link to a folder that it is in itself" in refused(src)


def test_a_pipe_is_refused_and_not_read(src: Path) -> None:
    """Reading one would wait for ever."""
    os.mkfifo(src / "pipe")
    assert refused(src) == "pipe in ./src is not a regular file"


@pytest.mark.parametrize("name", [b"caf\xe9.py", b"..data"])
def test_names_that_a_cluster_can_t_hold_are_refused(src: Path, name: bytes) -> None:
    """The kubelet keeps `..` for itself, and an object of the API is UTF-8."""
    Path(os.fsdecode(os.fsencode(src) + b"/" + name)).touch()
    assert "has a name that" in refused(src)


def test_odd_names_executable_bits_and_bytes_survive(repository: Path) -> None:
    """Blanks, line ends, other scripts; git's own listing is not quoted."""
    for name in ("a b.py", "line\nend", "naïve.py", "$(x)", '"q".py'):
        (repository / name).write_bytes(b"\xff\0")
    (repository / "run.sh").touch()
    (repository / "run.sh").chmod(0o755)
    git(repository, "add", ".")
    found = {each.path: each for each in taken(repository).files}
    assert found["line\nend"].data == b"\xff\0"
    assert [path for path, each in found.items() if each.executable] == ["run.sh"]
    assert {"a b.py", "naïve.py", "$(x)", '"q".py'} < set(found)


def test_the_largest_folder_is_900_kib(src: Path) -> None:
    """One byte more is refused, with the largest file's name."""
    (src / "train.py").write_bytes(b"#" * MAX_BYTES)
    assert taken(src).size == MAX_BYTES
    (src / "pkg" / "__init__.py").write_text("\n")
    with pytest.raises(CodeRefused) as caught:
        taken(src)
    assert "train.py 900 KiB" in caught.value.why
    assert "image" in caught.value.fix
    assert "pvc" in caught.value.fix


def test_the_number_of_files_is_bounded(src: Path) -> None:
    """Each stands in the pod's object too."""
    for number in range(MAX_FILES):
        (src / f"{number}.py").touch()
    assert f"in {MAX_FILES + 2} files" in refused(src)


def test_the_digest_follows_content_path_and_executable_bit(src: Path) -> None:
    """And nothing else: not the time, not the folder."""
    before = taken(src).digest
    os.utime(src / "train.py", (1, 1))
    assert taken(src.rename(src.with_name("code"))).digest == before
    src = src.with_name("code")
    (src / "train.py").chmod(0o755)
    executable = taken(src).digest
    (src / "train.py").rename(src / "main.py")
    assert len({before, executable, taken(src).digest}) == 3


def test_what_can_t_be_read_is_named(tmp_path: Path) -> None:
    """A missing folder and a file in its place."""
    assert refused(tmp_path / "gone") == "./src does not exist"
    (tmp_path / "file").touch()
    assert refused(tmp_path / "file") == "./src is not a folder"


def test_a_folder_that_became_a_link_brings_nothing_from_elsewhere(repository: Path, tmp_path: Path) -> None:
    """Git lists the files that it tracks below that name, and they would be read wherever the link leads."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "__init__.py").write_text("KEY = 1\n")
    shutil.rmtree(repository / "pkg")
    (repository / "pkg").symlink_to(tmp_path / "private")
    assert refused(repository).endswith("lies behind a link to a folder elsewhere")
