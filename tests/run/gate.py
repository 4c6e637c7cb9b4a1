"""Where a job of any target waits until its test has seen what it wants to see while the job runs.

A job that slept instead would be over too soon on a busy machine, and too late on an idle one.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Gate(NamedTuple):
    """A folder that this host and the job see alike, with a file in it for each gate that is open."""

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
        return self.waits_for("open")

    def waits_for(self, name: str) -> str:
        """Return what a shell script waits by, where it does so more than once."""
        return f"until [ -e {self.folder}/{name} ]; do sleep 0.1; done"

    def open(self, name: str = "open") -> None:
        """Let the job go on, and all its later attempts."""
        (self.folder / name).touch()
