"""Repositories as their owners make them with git itself."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run git in a folder, as somebody with a name and no settings."""
    someone = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    argv = ["git", *someone, "-C", str(folder), *words]
    return subprocess.run(argv, check=check, capture_output=True, text=True, timeout=60)


def repository(folder: Path, *options: str, **files: str) -> Path:
    """Return a repository that has committed `files`: a name's `__` is a slash, its last `_` a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main", *options)
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "a")
    return folder
