"""Does Ray's object store take what `shm_extra: [{name: ray}]` counts, and is it on disk with less?

    python bench/owners.py                          # installs PyPI's Ray into a folder first; about three minutes
    python bench/owners.py --packages FOLDER        # that of `pip install --target FOLDER ray`, for Python 3.11

Each row is a container with that much memory and /dev/shm, in which a script starts Ray and puts half as much again as
its store into it, in objects of 16 MiB. Exits 1 where a store that the law gives room isn't in /dev/shm, or takes more
than the law says, and where one is there that has less than its own size, or half of the law's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "launcher")]

from trainlaunch.job.shm_owners import RAY, STORE, Surroundings, law_of  # noqa: E402
from trainlaunch.units import GIB, MIB, human_size  # noqa: E402

from tests.engine.images import base_image  # noqa: E402

STORES = (None, 200 * MIB, 400 * MIB)  # object_store_memory; None: Ray's own, of the memory
MEMORY = 3 * GIB
PROGRAM = """
import json, os, sys, ray
def used():
    shm = os.statvfs("/dev/shm")
    return (shm.f_blocks - shm.f_bfree) * shm.f_frsize
before, store = used(), json.loads(sys.argv[1])
ray.init(object_store_memory=store, num_cpus=1, include_dashboard=False, logging_level="WARNING")
started = used()
made = int(ray.cluster_resources()["object_store_memory"])
peak = started
for _ in range(made * 3 // 2 // (16 << 20)):
    held = ray.put(bytes(16 << 20))
    peak = max(peak, used())
print(json.dumps({"version": ray.__version__, "store": made, "started": started - before, "peak": peak - before}))
"""


class Row(NamedTuple):
    """What one start of Ray took of /dev/shm, in bytes; `counted` is the law's for it, `is_short` where it had less."""

    version: str
    asked: int | None
    counted: int
    shm: int
    is_short: bool
    store: int
    started: int
    peak: int

    @property
    def is_right(self) -> bool:
        """Whether it is as the law has it."""
        in_shm = self.peak >= min(self.store, 32 * MIB)
        return not in_shm if self.is_short else in_shm and self.peak <= self.counted


def rows_of(packages: Path) -> Iterator[Row]:
    """Yield each store with the room that the law gives it, and with less."""
    for asked in STORES:
        commands = () if asked is None else ((RAY, STORE[0], str(asked)),)
        law = law_of(RAY, Surroundings(commands, {}, MEMORY, 0, 1, 1))
        if law is None:
            raise SystemExit(f"no law for a store of {asked}")
        yield measured(packages, asked, law.size, law.size)
        yield measured(packages, asked, law.size, asked - MIB if asked else law.size // 2)


def measured(packages: Path, asked: int | None, counted: int, shm: int) -> Row:
    """Start Ray in a container with that /dev/shm."""
    settings = [f"--memory={MEMORY}", f"--shm-size={shm}", "--cpus=2", "--env=PYTHONPATH=/packages"]
    command = ["docker", "run", "--rm", *settings, f"--volume={packages}:/packages:ro", base_image()]
    done = subprocess.run(
        [*command, "python", "-c", PROGRAM, json.dumps(asked)], capture_output=True, text=True, check=False
    )
    found = [line for line in done.stdout.splitlines() if line.startswith('{"version"')]
    if done.returncode or not found:
        raise SystemExit(f"Ray ended with {done.returncode}: {done.stderr[-2000:]}")
    return Row(asked=asked, counted=counted, shm=shm, is_short=shm < counted, **json.loads(found[0]))


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, help="a folder with Ray for Python 3.11")
    args = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as made:
        packages = args.packages or Path(made)
        if args.packages is None:
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", made, "ray"], check=True)
        print("ray     asked      counted    /dev/shm   store      at start   peak")
        for row in rows_of(packages.resolve()):
            sizes = (row.counted, row.shm, row.store, row.started, row.peak)
            told = " ".join(f"{human_size(size):10}" for size in sizes)
            asked = "its own" if row.asked is None else human_size(row.asked)
            print(f"{row.version:7} {asked:10} {told} {'' if row.is_right else 'WRONG'}".rstrip(), flush=True)
            wrong += not row.is_right
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
