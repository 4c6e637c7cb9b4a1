"""How long `trainlaunch lint` takes for 1,000 files of all kinds, and how much memory: goals 3 s and 200 MB.

    python bench/lint_reach.py [--files N]

The files are the field reports and other texts of tests/lint, made longer by lines that people have around them, in
folders of ten. The command runs as its own process, best of three. Exit 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "launcher"))

from bench.lint_cases import file_name, rows  # noqa: E402  it is this checkout's

SECONDS, MEGABYTES = 3.0, 200.0
_AROUND = "# one of many lines that a file has around what matters here\n" * 20


def texts() -> list[tuple[str, str]]:
    """Return names and texts of files of each kind."""
    found = [(file_name(row), row["input"]) for row in rows()]
    scripts = [text for name, text in found if name == "run.sh"]
    found += [("README.md", f"# How to\n\n```sh\n{text}\n```\n") for text in scripts[:5]]
    found += [("Makefile", f"run:\n\t{text}\n") for text in scripts[:3] if "\n" not in text]
    return [(name, text if name.endswith(".json") else _AROUND + text) for name, text in found]


def write_files(folder: Path, count: int) -> None:
    """Write that many files, each kind in turn."""
    kinds = texts()
    for number in range(count):
        name, text = kinds[number % len(kinds)]
        path = folder / f"group{number // 10}" / f"part{number}" / name
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")


def main() -> int:
    """Measure and compare with the goals."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=1000)
    count = parser.parse_args().files
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), count)
        command = [sys.executable, "-m", "trainlaunch", "lint", folder, "-o", "json"]
        times: list[float] = []
        for _ in range(3):
            start = time.perf_counter()
            done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
            times.append(time.perf_counter() - start)
            assert done.returncode == 1, done.stderr  # the texts have errors
    megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{count} files: {min(times):.2f} s (goal {SECONDS:g}), {megabytes:.0f} MB at most (goal {MEGABYTES:g})")
    return 1 if min(times) > SECONDS or megabytes > MEGABYTES else 0


if __name__ == "__main__":
    raise SystemExit(main())
