"""Where a job of any target waits until its test has seen what it wants to see while the job runs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Gate(NamedTuple):
    """A folder that this host and the job see alike, with a file in it once the gate is open."""

    folder: Path

    @classmethod
    def made_in(cls, folder: Path) -> Gate:
        """Make a gate that is closed."""
        (folder / "gate").mkdir()
        return cls(folder / "gate")

    @property
    def mounts(self) -> list[dict[str, str]]:
        """The mounts that the job needs."""
        return [{"type": "bind", "source": str(self.folder), "target": str(self.folder)}]

    @property
    def waits(self) -> str:
        """What a shell script waits by."""
        return f"until [ -e {self.folder}/open ]; do sleep 0.1; done"

    def open(self) -> None:
        """Let the job go on, and all its later attempts."""
        (self.folder / "open").touch()
