"""The container of a bare command line: what is mounted, and which words mean something that isn't."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.errors import UsageError
from trainlaunch.init.command_container import command_folders, home_of


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a script and a link out of it, beside one with data."""
    folder = tmp_path / "f"
    folder.mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.bin").touch()
    (folder / "train.py").touch()
    (folder / "linked").symlink_to(tmp_path / "data")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def folders(*command: str, mounts: tuple[str, ...] = ()) -> dict[str, bool]:
    """Return what is mounted for a command."""
    return command_folders("a/b:1", mounts, command)


@pytest.mark.parametrize("word", ["{0}/data", "--root={0}/data/a.bin", "../data", "linked", "{0}/data/new/"])
def test_a_path_outside_names_the_folder_to_mount(here: Path, word: str) -> None:
    """Written whole, behind an option, relative, by a link, and one that the command would make there."""
    typed = word.format(here.parent)
    with pytest.raises(UsageError) as refused:
        folders("python", "train.py", typed)
    data = str(here.parent / "data")
    assert f"--mount {data}`" in refused.value.diagnostics[0].fix
    assert folders("python", "train.py", typed, mounts=(f"{data}:ro",))[data] is True


@pytest.mark.parametrize(
    "word",
    [
        "train.py",
        "./new/out",
        "/dev/shm",
        "/usr/bin/env",
        "/tmp",
        "/tmp/out",
        "/workspace/x",
        "https://a/b",
        "x" * 5000,
    ],
)
def test_what_the_image_has_and_what_is_no_path_is_left_alone(here: Path, word: str) -> None:
    """The program too: it is the image's."""
    assert list(folders("/usr/bin/python3", "train.py", word)) == [str(here), str(home_of("a/b:1"))]
    assert (home_of("a/b:1").stat().st_mode & 0o777) == 0o700


def test_a_folder_that_can_not_be_mounted_is_an_error(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that isn't there would be made by the engine, as root."""
    with pytest.raises(UsageError, match="no folder of this host"):
        folders("python", mounts=("../nothing",))
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    with pytest.raises(UsageError, match="the command's HOME, can't be made"):
        folders("python")
    monkeypatch.chdir("/")
    with pytest.raises(UsageError, match="this one is /"):
        folders("python")
