"""Compares what `lint` says of the field reports of area `lint` with what was judged right; a difference exits 1.

For each report: the findings by severity, name and line, among which is the report's own severity where it states one;
and, where a fix is safe, the text after `--fix`. Prints hits, misses and false alarms.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "launcher"))

from trainlaunch.lint.linter import Linted, fixed, lint_text  # noqa: E402  it is this checkout's

CASES = ROOT / "tests" / "cases"
EXPECTED = Path(__file__).with_suffix(".json")
GROUPS = ("defects", "practice")
_NAMES = {
    "docker_run": "run.sh",
    "compose": "compose.yaml",
    "k8s": "manifest.yaml",
    "dockerfile": "Dockerfile",
    "devcontainer": "devcontainer.json",
}
_BY_FORMAT = {"shell": "run.sh", "yaml": "file.yaml", "text": "notes.txt"}
_GRAVITY = ("info", "warning", "error")


class Compared(NamedTuple):
    """One report: what was expected and found, and in words what differs."""

    name: str
    expected: list[list[Any]]
    found: list[list[Any]]
    differences: list[str]


def rows() -> Iterator[dict[str, Any]]:
    """Yield each field report that is about written texts."""
    for name in ("cases.jsonl", "reports.jsonl"):
        for line in (CASES / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["area"] == "lint":
                yield row


def file_name(row: dict[str, Any]) -> str:
    """Return a name as the report's file would have."""
    if row["kind"] == "ci":
        return ".github/workflows/ci.yaml" if "runs-on:" in row["input"] else "pipeline.yaml"
    return _NAMES.get(row["kind"]) or _BY_FORMAT[row["input_format"]]


def said(linted: Linted) -> list[list[Any]]:
    """Return severity, rule and line of each finding."""
    return [
        [each.severity.value, each.name, each.diagnostic.span.line if each.diagnostic.span else None]
        for each in linted.findings
    ]


def judged(row: dict[str, Any]) -> dict[str, Any]:
    """Return what `lint` says of a report now, in the form of the file of expectations."""
    linted = lint_text(row["input"], file_name(row), None, GROUPS)
    after = fixed(linted, None, GROUPS)
    result: dict[str, Any] = {"findings": said(linted)}
    if after.text != linted.text:
        result |= {"fixed": after.text, "left": said(after)}
    return result


def compare(row: dict[str, Any], expected: dict[str, Any]) -> Compared:
    """Compare one report with what was judged right, and its gravest finding with its own severity."""
    now = judged(row)
    wanted, found = expected.get("findings", []), now["findings"]
    differences = [
        f"{key}: expected {expected.get(key)!r}, got {now.get(key)!r}"
        for key in sorted({*expected, *now})
        if expected.get(key) != now.get(key)
    ]
    severities = [_GRAVITY.index(each[0]) for each in found]
    stated = row.get("severity")
    if stated == "none" and found:
        differences.append("the report says that nothing is wrong")
    if stated in _GRAVITY and (not severities or _GRAVITY.index(stated) not in severities):
        differences.append(f"the report is of severity {stated}")
    return Compared(row["id"], wanted, found, differences)


def main(argv: list[str]) -> int:
    """Compare all reports; `--update` writes what is found now, to be read in the diff."""
    if argv == ["--update"]:
        now = {row["id"]: judged(row) for row in rows()}
        EXPECTED.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    expectations = json.loads(EXPECTED.read_text(encoding="utf-8"))
    compared = [compare(row, expectations.get(row["id"], {})) for row in rows()]
    for each in compared:
        for difference in each.differences:
            print(f"{each.name}: {difference}")
    hits = sum(finding in each.found for each in compared for finding in each.expected)
    misses = sum(finding not in each.found for each in compared for finding in each.expected)
    alarms = sum(finding not in each.expected for each in compared for finding in each.found)
    silent = sum(not each.expected for each in compared)
    print(
        f"{len(compared)} reports ({silent} that must be silent): {hits} hits, {misses} misses, {alarms} false alarms"
    )
    return 1 if any(each.differences for each in compared) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
