"""Is a run's end told by the user's own line? Real runs that fail, and what `doctor` says of each.

    python bench/real_ends.py --write-to LOGS.jsonl    run those that it lacks in the tests' image of examples; all
                                                       take some 30 minutes of CPU
    python bench/real_ends.py LOGS.jsonl               what is said of logs that were written before

Twelve exceptions, each plain, by torchrun with 1 and 2 ranks, of the last rank, after caught errors, after a restart,
with an abort at exit, in a DataLoader worker, by mp.spawn's parent and by Lightning. Right is an answer whose first
sentence names the exception and the script's line.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "launcher")]

from trainlaunch.diagnose import all_causes  # noqa: E402 - the checkout's own package, whatever is installed
from trainlaunch.diagnose.base.evidence import Evidence  # noqa: E402

SCRIPTS = Path(__file__).resolve().parent / "real_ends"
IMAGE = "trainlaunch-test:examples"
TIMED_OUT = 124  # as timeout(1) says it
EXCEPTIONS = (
    "KeyError", "IndexError", "TypeError", "ZeroDivisionError", "AttributeError", "ValueError", "RuntimeError",
    "FileNotFoundError", "AssertionError", "NotImplementedError", "UnicodeDecodeError", "OutOfDataError",
)  # fmt: skip
TORCHRUN = "torchrun --standalone --nproc-per-node {ranks} {more} train.py {exception} {args}"
WAYS = {
    "plain": "python train.py {exception}",
    "unbuffered, caught": "python -u train.py {exception} --how caught",
    "abort": "python train.py {exception} --how abort",
    "worker": "python train.py {exception} --how worker",
    "torchrun 1": TORCHRUN.format(ranks=1, more="", exception="{exception}", args=""),
    "torchrun 2": TORCHRUN.format(ranks=2, more="", exception="{exception}", args=""),
    "torchrun 2, last rank": TORCHRUN.format(ranks=2, more="", exception="{exception}", args="--rank 1"),
    "torchrun 2, caught": TORCHRUN.format(ranks=2, more="", exception="{exception}", args="--how caught"),
    "torchrun 2, restart": TORCHRUN.format(ranks=2, more="--max-restarts 1", exception="{exception}", args=""),
    "torchrun 2, abort": TORCHRUN.format(ranks=2, more="", exception="{exception}", args="--how abort"),
    "torchrun 2, worker": TORCHRUN.format(ranks=2, more="", exception="{exception}", args="--how worker"),
    "torchrun 2, tee": TORCHRUN.format(ranks=2, more="--tee 3 --log-dir /tmp/l", exception="{exception}", args=""),
    "tail": "python train.py {exception} >/tmp/log 2>&1; code=$?; tail -n 4 /tmp/log; exit $code",
    "spawn": "python -c 'import torch.multiprocessing as m, train_spawned; m.spawn(train_spawned.run, "
    '("{exception}",), 2)\'',
    "Lightning 1": "python train_lightning.py {exception} 1",
    "Lightning 2": "python train_lightning.py {exception} 2",
}


def run_all(done: set[tuple[str, str]]) -> Iterator[dict[str, object]]:
    """Run each exception in each way that is not done yet, and yield its log and exit code."""
    start = [
        "docker",
        "run",
        "--rm",
        "-d",
        "--shm-size=256m",
        "-v",
        f"{SCRIPTS}:/workspace:ro",
        "-w",
        "/workspace",
    ]
    name = subprocess.run(
        [*start, "-e", "PYTHONDONTWRITEBYTECODE=1", IMAGE, "sleep", "7200"], check=True, capture_output=True, text=True
    )
    container = name.stdout.strip()
    try:
        ways = list(WAYS)
        for shift, number in product(range(len(ways)), range(len(EXCEPTIONS))):  # so that the first ones differ in both
            way, exception = ways[(number + shift) % len(ways)], EXCEPTIONS[number]
            if (way, exception) in done:
                continue
            line = f"{WAYS[way].format(exception=exception)} 2>&1"
            ended = subprocess.run(
                ["docker", "exec", container, "timeout", "300", "nice", "-n", "10", "sh", "-c", line],
                capture_output=True,
                text=True,
                check=False,
            )
            if ended.returncode == TIMED_OUT:
                continue  # gloo's ranks may wait for each other for ever after a restart: that is no end
            yield {"way": way, "exception": exception, "exit_code": ended.returncode, "log": ended.stdout}
    finally:
        subprocess.run(["docker", "rm", "-f", container], check=False, capture_output=True)


def line_of(exception: str) -> int:
    """Return the line of the script that raises it."""
    text = (SCRIPTS / "train.py").read_text(encoding="utf-8").splitlines()
    start = next((number for number, each in enumerate(text) if f'== "{exception}"' in each), None)
    lines = range(start if start is not None else text.index("    else:"), len(text))
    return next(number for number in lines if text[number].endswith("# here")) + 1


def is_right(record: dict[str, object]) -> tuple[bool, str]:
    """Return whether the first answer names the exception and the line, and its sentence."""
    exception = str(record["exception"])
    code = record["exit_code"]
    causes = all_causes(Evidence(code if isinstance(code, int) else None, str(record["log"])))
    said = causes[0].sentence if causes else "nothing"
    named = exception in said or (exception == "FileNotFoundError" and "annotations.json" in said)
    place = re.search(rf"train\.py:{line_of(exception)}\b", said) is not None
    return named and place, said


def main(argv: Sequence[str] | None = None) -> int:
    """Print what is wrong, and return 1 where anything is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("logs", nargs="?", type=Path)
    parser.add_argument("--write-to", type=Path)
    args = parser.parse_args(argv)
    if args.write_to is not None:
        earlier = args.write_to.read_text(encoding="utf-8").splitlines() if args.write_to.exists() else []
        done = {(each["way"], each["exception"]) for each in map(json.loads, earlier)}
        with args.write_to.open("a", encoding="utf-8") as file:
            for record in run_all(done):
                file.write(json.dumps(record) + "\n")
                file.flush()
    source = args.write_to or args.logs
    if source is None:
        parser.error("name LOGS.jsonl, or --write-to it")
    counts: Counter[tuple[str, bool]] = Counter()
    for line in source.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        right, said = is_right(record)
        counts[record["way"], right] += 1
        if not right:
            print(f"{record['way']}, {record['exception']}: {said}")
    for way in WAYS:
        print(f"{way:24} {counts[way, True]:3} right {counts[way, False]:3} wrong")
    return 1 if any(not right for _, right in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
