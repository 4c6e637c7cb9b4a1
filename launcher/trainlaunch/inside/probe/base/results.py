"""What workers measured comes back through a file, under every start method."""

from __future__ import annotations

import json
import os
import tempfile

from trainlaunch.inside.probe.base.loader_stats import Fetched

VARIABLE = "TRAINLAUNCH_PROBE_RESULTS"  # tells spawned workers the path
STACKS = "-stacks"  # of the file beside it, where workers write where they stand


class Results:
    """One process's file, to which its workers append a line for each batch."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.path = os.environ.get(VARIABLE, "")
        self._read = 0

    def open(self) -> None:
        """Make the file of this process, in the folder of the delivery or where temporary files go."""
        ours = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
        folder = ours if os.access(ours, os.W_OK) else None
        descriptor, self.path = tempfile.mkstemp(prefix=".trainlaunch-probe-", dir=folder)
        os.close(descriptor)
        os.close(os.open(self.path + STACKS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        self.owner = os.getpid()
        os.environ[VARIABLE] = self.path

    def add(self, fetched: Fetched) -> None:
        """Append one batch; called in a worker. Raises OSError."""
        line = json.dumps(fetched).encode("ascii") + b"\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)  # never makes one: its owner may have ended
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def read(self) -> list[Fetched]:
        """Return what came since it was last read."""
        with open(self.path, "rb") as file:
            file.seek(self._read)
            text = file.read()
        text = text[: text.rfind(b"\n") + 1]
        self._read += len(text)
        return [Fetched(*json.loads(line)) for line in text.splitlines()]

    def remove(self) -> None:
        """Remove the file, where it is this process's own."""
        if self.path and self.owner == os.getpid():
            os.unlink(self.path)
            os.unlink(self.path + STACKS)
            os.environ.pop(VARIABLE, None)
            self.path = ""
