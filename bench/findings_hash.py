"""Whether lint and plan say the same before and after a change of their code: a hash over all that they say.

    python bench/findings_hash.py                  of the texts and job files in tests/, examples/, docs/ and README.md
    python bench/findings_hash.py FOLDER …         of other ones, as of a checkout of the commit before
    python bench/findings_hash.py --write-to FILE  each finding as a line of JSON too, to compare by diff

A text is a file, a fence of a Markdown page, a string of a test (linted as each kind of text in turn), or a string of a
JSONL file. A job file is one that reads as such, for each target; a fence of YAML is one with what it lacks in front.
What counts of a finding is its code, severity, message, fix, why, place and edits.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "launcher")]

from trainlaunch.diagnostics import Diagnostic  # noqa: E402 - the checkout's own package, whatever is installed
from trainlaunch.errors import LaunchError  # noqa: E402
from trainlaunch.lint.file_kinds import KINDS  # noqa: E402
from trainlaunch.lint.linter import lint_text  # noqa: E402
from trainlaunch.policy import read_job  # noqa: E402
from trainlaunch.rules import plan_and_findings  # noqa: E402
from trainlaunch.targets import TARGETS  # noqa: E402

DEFAULTS = ("tests", "examples", "docs", "README.md")
GROUPS = ("defects", "practice")
FENCE = re.compile(r"^```([a-z -]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BASE = {"name": "name: job", "image": "image: trainer:1", "command": "command: [python, train.py]"}
POLICY = """\
max: {shm_size: 1Gi, memory: 4Gi, cpus: 2, gpus: 1, total_gpus: 1, num_workers: 1, active_deadline: 1h}
required: [resources.cpus, checkpoint_dir]
required_labels: {team: "[a-z-]+"}
allowed_registries: [registry.example.com/ml]
allowed_namespaces: [training]
allowed_queues: [research]
allowed_service_accounts: [trainer]
allowed_priority_classes: [low]
allowed_host_paths: [/data]
allowed_claims: [data]
allowed_extra_args: [--dns]
allowed_patch_paths: [/spec/suspend]
require_digest: true
severities: {TL206: error, TL404: "off"}
"""
MAX_BYTES = 1 << 20
# What may be a text of some kind rather than a word or a sentence of a test.
TELLING = re.compile(
    r"docker|podman|services:|containers|\bFROM |DataLoader|container_config|image:|runArgs|jobs:|script:"
)


class Text(NamedTuple):
    """One text, the name by which lint may tell its kind, and the kinds to lint it as; None: as its name says."""

    where: str
    name: str
    text: str
    kinds: tuple[str | None, ...] = (None,)


def files_of(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield every file that is a text, in order."""
    for folder in folders:
        for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
            if path.is_file() and not path.is_symlink() and path.stat().st_size < MAX_BYTES:
                yield path


def texts_of(path: Path) -> Iterator[Text]:
    """Yield the texts of one file: itself, and what stands in it."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    yield Text(str(path), str(path), text)
    if path.suffix == ".md":
        for fence, body in FENCE.findall(text):
            kind = {"workflow": "github-actions"}.get(fence, fence)
            yield Text(str(path), "text", body, (kind if kind in KINDS else None, "shell"))
    strings: Iterable[str] = ()
    if path.suffix == ".py" and "tests" in path.parts:
        strings = _strings_of_python(text)
    elif path.suffix in {".jsonl", ".json"}:
        strings = (each for line in text.splitlines() for each in _strings_of_json(line))
    for string in dict.fromkeys(strings):
        if TELLING.search(string):
            yield Text(str(path), "text", string, KINDS)


def _strings_of_python(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _strings_of_json(line: str) -> Iterator[str]:
    try:
        found: list[Any] = [json.loads(line)]
    except ValueError:
        return
    while found:
        value = found.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, (dict, list)):
            found += value.values() if isinstance(value, dict) else value


def of_rule_tables() -> Iterator[Text]:
    """Yield the texts of the tables of tests/lint, which put them together from pieces."""
    from tests.lint import rule_cases, test_rules

    for module in (test_rules, rule_cases):
        for table in vars(module).values():
            for row in table if isinstance(table, list) else ():
                if isinstance(row, tuple) and len(row) > 2 and row[1] in {*KINDS, "workflow"}:
                    kind = {"workflow": "github-actions"}.get(row[1], row[1])
                    yield Text(f"{module.__name__}:{row[0]}", "text", row[2], (kind,))


def linted(text: Text) -> Iterator[list[Any]]:
    """Yield what lint says of a text, with its edits and where the text stands."""
    for kind in text.kinds:
        for each in lint_text(text.text, text.name, kind, GROUPS).findings:
            edits = [[edit.text, *map(str, edit.span)] for edit in each.edits]
            yield [*_said(each.diagnostic), each.name, edits, each.safe, each.about, text.where]


def planned(path: Path, policy: Path) -> Iterator[list[Any]]:
    """Yield what plan says of a job file on each target, with its errors, and under a policy that allows little."""
    for target, chosen in product(TARGETS, (None, policy)):
        try:
            found = plan_and_findings(read_job(path, target=target, policy=chosen))[1]
        except LaunchError as error:
            found = tuple(getattr(error, "diagnostics", ()))
        yield from ([*_said(each), target] for each in found)


def _said(found: Diagnostic) -> list[Any]:
    return [found.code, found.severity.value, found.message, found.fix, found.why, str(found.span), found.field]


def jobs_of(path: Path, scratch: Path) -> Iterator[Path]:
    """Yield the job files of a file: itself, or each fence of YAML that names no API of somebody else."""
    if path.suffix in {".yaml", ".yml"}:
        if re.search(r"^(?:name|image|include|template):", path.read_text(encoding="utf-8", errors="replace"), re.M):
            yield path
    elif path.suffix == ".md":
        for kind, body in FENCE.findall(path.read_text(encoding="utf-8")):
            if kind.split()[0] == "yaml" and not re.search(r"^(?:apiVersion|services):", body, re.M):
                keys = set(re.findall(r"^(\w+):", body, re.M))
                lacking = [line for key, line in BASE.items() if key not in keys]
                scratch.write_text("\n".join([*lacking, body]) + "\n")
                yield scratch


def main() -> int:
    """Print how many findings there are, by lint and plan, and the hash of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[ROOT / each for each in DEFAULTS])
    parser.add_argument("--write-to", type=Path, metavar="FILE")
    args = parser.parse_args()
    said: dict[str, list[list[Any]]] = {"lint": [], "plan": []}
    texts = [*of_rule_tables(), *(text for path in files_of(args.folders) for text in texts_of(path))]
    said["lint"] = [each for text in texts for each in linted(text)]
    jobs = 0
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder, "trainlaunch-policy.yaml")
        for path in files_of(args.folders):
            policy.write_text(POLICY)
            for job in jobs_of(path, Path(folder, "job.yaml")):
                jobs += 1
                said["plan"] += planned(job, policy)
        lines = [json.dumps(each).replace(folder, "") for verb in said.values() for each in verb]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    for verb, count in (("lint", f"{len(texts)} texts"), ("plan", f"{jobs} job files")):
        print(f"{verb}: {len(said[verb])} findings of {len({each[0] for each in said[verb]})} codes over {count}")
    print(f"all: {digest}")
    if args.write_to:
        args.write_to.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
