"""How long the diagnosis of a large log takes, and how much memory: 1 GB unless told otherwise.

    python bench/doctor_speed.py                  the goal: 25 s and 150 MB for each of the four logs
    python bench/doctor_speed.py --megabytes 100  shorter logs, no goal
    python bench/doctor_speed.py --output json    the same as one JSON document

Writes a log of a training, one of eight ranks through Compose with colours, one of a program that prints a traceback
over and over, and generated text, each with a death of SIGBUS in its middle. Each is read by `trainlaunch doctor
--log` in a process of its own. Exit 1 when the cause is not named, or the goal is missed. Time by the clock needs an
idle machine: the CPU column tells when it was not.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MEGABYTES = 1000
BLOCKS = 400  # of 1,000 steps, over and over
MOST_SECONDS = 25.0
MOST_MEGABYTES = 150.0
CAUSE = (
    "RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error. It is possible that they are out of it.\n"
)
_LETTERS = str.maketrans("0123456789", "qwrtyuiopk")
RETRY = """\
Traceback (most recent call last):
  File "/w/data.py", line 31, in fetch
    return session.get(url, timeout=3)
  File "/usr/lib/python3.12/site-packages/requests/sessions.py", line 602, in get
    return self.request("GET", url, **kwargs)
requests.exceptions.ConnectTimeout: HTTPConnectionPool(host='data', port=80): Max retries exceeded with url: /{step}
"""


@dataclass(frozen=True)
class Measured:
    """One log: its name and size, seconds by the clock and of CPU, the peak resident megabytes, the first symptom."""

    log: str
    megabytes: float
    seconds: float
    cpu: float
    resident: float
    symptom: str


def training(step: int) -> str:
    """Return what a training prints in one step."""
    return (
        f"2026-03-01 10:{step // 60 % 60:02d}:{step % 60:02d},042 - INFO - step {step} loss 0.{step % 9973} lr 1e-04\n"
        f"Epoch {step // 5005}/90 [{step % 5005:>5}/5005] Time 0.213 (0.245) Loss 3.{step % 997} Acc@1 31.{step % 89}\n"
        f"val_error=0.{step % 7919}, num_workers=8, /dev/shm 512M of 8.0G, errors 0: {step}it [00:11, 31.2it/s]\n"
    )


def ranks(step: int) -> str:
    """Return what eight ranks print through Compose, in colours."""
    line = f"NCCL INFO Channel {step % 32:02d} via P2P; step {step} loss 0.{step % 9973}"
    return "".join(f"\x1b[36mtrainer-{rank}  | \x1b[0m[rank{rank}]: {line}\n" for rank in range(8))


def retries(step: int) -> str:
    """Return a traceback that somebody catches, and a line of progress."""
    return RETRY.format(step=step) + training(step) * 4


def words(step: int) -> str:
    """Return lines of which no two are alike, as generated text is."""
    state = step * 2_654_435_761 % 2**32
    letters = f"{state:x}{state * 31:x}{state * 1009:x}".translate(_LETTERS)
    return f"sample {letters[:9]} {letters[9:]} said: the {letters[3:12]} of {letters[5:15]} is {letters[::-1]} again\n"


LOGS: dict[str, Callable[[int], str]] = {"training": training, "ranks": ranks, "retries": retries, "words": words}


def write_log(path: Path, size: int, step: Callable[[int], str]) -> None:
    """Write a log of about `size` bytes, with its cause in the middle."""
    parts = ["".join(step(block * 1000 + number) for number in range(1000)).encode() for block in range(BLOCKS)]
    written, number = 0, 0
    with path.open("wb") as log:
        while written < size:
            if written < size // 2 <= written + len(parts[number % BLOCKS]):
                written += log.write(CAUSE.encode())
            written += log.write(parts[number % BLOCKS])
            number += 1


def measure(name: str, path: Path) -> Measured:
    """Run `trainlaunch doctor` on a log in a process of its own."""
    command = [sys.executable, "-m", "trainlaunch", "doctor", "--log", str(path), "--exit-code", "1", "-o", "json"]
    answer = path.with_suffix(".json")
    since = time.monotonic()
    with answer.open("wb") as out:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "launcher")}
        actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1)]
        child = os.posix_spawn(sys.executable, command, environment, file_actions=actions)
        _, _, used = os.wait4(child, 0)
    found = json.loads(answer.read_bytes())["diagnoses"]
    seconds = time.monotonic() - since
    symptom = found[0]["symptom"] if found else ""
    size = path.stat().st_size / 1e6
    return Measured(name, size, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6, symptom)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print a table or JSON, and return 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=MEGABYTES)
    parser.add_argument("--output", choices=("text", "json"), default="text")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for name, step in LOGS.items():
            path = Path(folder) / f"{name}.log"
            # In a process of its own: a child's peak counts the memory of who started it.
            writer = multiprocessing.Process(target=write_log, args=(path, args.megabytes * 1_000_000, step))
            writer.start()
            writer.join()
            found.append(measure(name, path))
            path.unlink()
    if args.output == "json":
        print(json.dumps({"schema_version": 1, "logs": [asdict(each) for each in found]}))
    else:
        print(f"{'log':10} {'MB':>6} {'seconds':>8} {'CPU':>6} {'resident MB':>12}  first symptom")
        for each in found:
            row = f"{each.log:10} {each.megabytes:6.0f} {each.seconds:8.1f} {each.cpu:6.1f} {each.resident:12.0f}"
            print(f"{row}  {each.symptom}")
    wrong = [each for each in found if each.symptom != "shm-exhausted"]
    slow = [each for each in found if each.seconds > MOST_SECONDS or each.resident > MOST_MEGABYTES]
    return 1 if wrong or (slow and args.megabytes >= MEGABYTES) else 0


if __name__ == "__main__":
    sys.exit(main())
