"""A user at a terminal: a job file, a kubeconfig, and the command line as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.jobs import write_job
from tests.kubernetes import warm
from tests.kubernetes.pods import Script
from tests.kubernetes.server import FakeCluster
from tests.kubernetes.warm import WarmProcess
from tests.run.conftest import SMALL

PATIENCE = 120.0
SPEED, GIVES_UP_SOON = 5.0, 50.0  # of a command that waits for a fake cluster, and of one that has nothing to wait for


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster to run jobs on; `fake` is the one that a test directs, None where it is a real one."""

    kubeconfig: str
    namespace: str
    image: str
    fake: FakeCluster | None = None

    def with_kubeconfig(self, kubeconfig: str) -> Place:
        """Return the same place for another user."""
        return replace(self, kubeconfig=kubeconfig)

    def pods_do(self, *scripts: Script) -> None:
        """Direct the pods of a fake cluster; a real one runs the job."""
        if self.fake is not None:
            self.fake.pods_do(*scripts)


@dataclass(slots=True)
class Running:
    """A started command whose output is read as it comes."""

    verb: str
    process: subprocess.Popen[bytes] | WarmProcess
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    _readers: list[threading.Thread] = field(default_factory=list)

    def read(self) -> Running:
        """Begin to read."""
        for stream, into in ((self.process.stdout, self.out), (self.process.stderr, self.err)):
            assert stream is not None
            reader = threading.Thread(target=_copy, args=(stream.fileno(), into), daemon=True)
            reader.start()
            self._readers.append(reader)
        return self

    def until(self, text: str, *, err: bool = False) -> Running:
        """Wait until one of its streams has a text."""
        until, stream = time.monotonic() + PATIENCE, self.err if err else self.out
        while text.encode() not in stream:
            ended = self.process.poll() is not None
            time.sleep(0.05)
            if (ended and text.encode() not in stream) or time.monotonic() > until:
                raise AssertionError(f"{text!r} did not come; code {self.process.poll()}\n{self.words()}")
        return self

    def tell(self, number: signal.Signals) -> Running:
        """Send it a signal."""
        self.process.send_signal(number)
        return self

    def end(self) -> int:
        """Wait for its end and return its exit code."""
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"it did not end\n{self.words()}") from None
        for each in self._readers:
            each.join(10)
        return code

    def close(self) -> None:
        """Let go of a process that has ended or was killed."""
        self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(10)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    @property
    def said(self) -> str:
        """What it wrote to stderr."""
        return self.err.decode()

    @property
    def lines(self) -> list[str]:
        """The job's own lines on stdout, without those of the preflight."""
        return job_lines(bytes(self.out))

    def words(self) -> str:
        """Return both streams, for a failed assertion."""
        return f"stdout:\n{self.out.decode(errors='replace')}\nstderr:\n{self.err.decode(errors='replace')}"


def _copy(descriptor: int, into: bytearray) -> None:
    while data := os.read(descriptor, 1 << 16):
        into += data


def job_lines(out: bytes) -> list[str]:
    """Return lines of output without those that the preflight wrote."""
    return [each for each in out.decode().split("\n")[:-1] if not each.startswith("trainlaunch: ")]


class User:
    """Writes one job file and runs commands about it."""

    def __init__(self, place: Place, folder: Path, name: str) -> None:
        self.place = place
        self.folder = folder
        self.name = name
        self.speed = SPEED
        self._started: list[Running] = []

    def writes(self, **fields: Any) -> Path:
        """Write the job file: a small job of the place's image, with other fields over it."""
        if "script" in fields:
            fields.setdefault("command", None)
        own = {"name": self.name, "image": self.place.image, "target": "kubernetes", "stop_grace_period": "5s"}
        return write_job(self.folder, **{**SMALL, **own, **fields})

    def starts(self, *args: str) -> Running:
        """Start `trainlaunch ARGS` about the job file."""
        env = {**os.environ, "PYTHONPATH": str(ROOT / "launcher"), "KUBECONFIG": self.place.kubeconfig, "NO_COLOR": "1"}
        if self.place.fake is None:
            process: subprocess.Popen[bytes] | WarmProcess = _started(args, cwd=self.folder, env=env)
        else:
            process = warm.start(args, cwd=self.folder, env=env, speed=self.speed)
        self._started.append(Running(args[0], process).read())
        return self._started[-1]

    def up(self, *args: str, **fields: Any) -> Running:
        """Write the job file and start `trainlaunch up` on it."""
        self.writes(**fields)
        return self.starts("up", "job.yaml", *args)

    def runs(self, verb: str, *args: str) -> Running:
        """Run another verb about the job to its end."""
        done = self.starts(verb, "job.yaml", *args)
        done.end()
        return done

    def leaves(self) -> None:
        """End what still runs of our own processes; on a real cluster take the job down."""
        for each in self._started:
            if each.process.poll() is None:
                each.process.kill()
        if (self.folder / "job.yaml").exists() and self.place.fake is None:
            self.runs("down")
        for each in self._started:
            each.close()


def _started(args: Sequence[str], *, cwd: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "trainlaunch", *args],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def once(text: str, words: Iterable[str] | str) -> bool:
    """Return whether each of these words is in a text exactly once."""
    return all(text.count(each) == 1 for each in ([words] if isinstance(words, str) else words))
