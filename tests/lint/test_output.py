"""Formats, exit codes, comments that allow a finding, baselines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.lint.files import files_of
from trainlaunch.lint.linter import unopened

from tests.conftest import Runs
from tests.lint.texts import codes, linted

BAD = "docker run --rm --shm-size=16 x:1 python train.py\n"
WARNS = "docker run --ipc=host --shm-size=8g x:1\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script with an error and a warning."""
    path = tmp_path / "run.sh"
    path.write_text("# é\n" + BAD + WARNS)
    return path


def test_text_shows_the_line_the_reason_and_the_value(trainlaunch: Runs, script: Path) -> None:
    """As every finding of trainlaunch; the sum is on stderr."""
    done = trainlaunch("lint", str(script))
    assert done.returncode == 1
    assert "error[TL302]: the size of /dev/shm is 16: 16 bytes, less than one MiB\n" in done.stdout
    assert f"  --> {script}:2:28\n" in done.stdout
    assert "2 | docker run --rm --shm-size=16 x:1" in done.stdout
    assert "   = fix: write 16g\n" in done.stdout
    assert "linted 1 file: 1 error, 1 warning" in done.stderr


@pytest.mark.parametrize(("least", "code"), [("error", 0), ("warning", 1), ("info", 1)])
def test_what_fails_is_stated(trainlaunch: Runs, tmp_path: Path, least: str, code: int) -> None:
    """A warning alone fails only where it is asked to."""
    path = tmp_path / "run.sh"
    path.write_text(WARNS)
    assert trainlaunch("lint", str(path), "--fail-on", least).returncode == code


def test_json_has_the_keys_of_diagnostics_and_the_edits(trainlaunch: Runs, tmp_path: Path) -> None:
    """Places are 1-based and name the file; an insertion has an empty span."""
    path = tmp_path / "run.sh"
    path.write_text("docker run --gpus all x:1 torchrun train.py\n")
    done = trainlaunch("lint", str(path), "-o", "json")
    (found,) = json.loads(done.stdout)["findings"]
    keys = ["code", "name", "severity", "message", "why", "fix", "field", "span", "edits", "safe", "purpose"]
    assert list(found) == keys
    assert (found["name"], found["safe"]) == ("shm-size-missing", True)
    assert found["span"] == {"file": str(path), "line": 1, "column": 8, "end_line": 1, "end_column": 11}
    place = {"file": str(path), "line": 1, "column": 11, "end_line": 1, "end_column": 11}
    assert found["edits"] == [{"span": place, "text": " --shm-size=2g"}]
    signs = ["the launcher torchrun", "the script train.py", "a GPU"]
    assert found["purpose"] == {"verdict": "training", "signs": signs}


def test_sarif_names_rules_places_and_fixes(trainlaunch: Runs, script: Path) -> None:
    """Each result is of a rule that the run lists; levels are SARIF's own words."""
    log: dict[str, Any] = json.loads(trainlaunch("lint", str(script), "-o", "sarif").stdout)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = [each["id"] for each in run["tool"]["driver"]["rules"]]
    assert [rules[each["ruleIndex"]] for each in run["results"]] == [each["ruleId"] for each in run["results"]]
    assert [each["level"] for each in run["results"]] == ["error", "warning"]
    region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 2, "startColumn": 28, "endLine": 2, "endColumn": 30}


def test_github_gets_annotations(trainlaunch: Runs, script: Path) -> None:
    """One a finding, at its line."""
    lines = trainlaunch("lint", str(script), "-o", "github").stdout.splitlines()
    assert [each.split(" ")[0] for each in lines] == ["::error", "::warning"]
    assert f"file={script},line=2," in lines[0]


def test_stdin_is_read_and_fixed_to_stdout() -> None:
    """A pipe, as behind `kustomize build`."""
    command = [sys.executable, "-m", "trainlaunch", "lint", "-", "--fix"]
    text = "docker run --gpus all x:1 torchrun train.py\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "docker run --shm-size=2g --gpus all x:1 torchrun train.py\n")
    broken = subprocess.run(
        [*command[:-1]], input="docker run --shm-size=16 x:1\n", capture_output=True, text=True, check=False
    )
    assert broken.returncode == 1
    assert "1 | docker run --shm-size=16 x:1" in broken.stdout


def test_a_comment_with_a_reason_allows_a_finding() -> None:
    """On its line or above the statement, by code or name; the finding at another place stays."""
    above = "# trainlaunch: allow=TL302 a test\ndocker run \\\n  --shm-size=16 x:1\n"
    assert codes(above, "shell") == []
    assert codes("docker run --shm-size=16 x:1  # trainlaunch: allow=size-without-unit a test\n", "shell") == []
    assert codes(above + BAD, "shell") == ["TL302"]
    inside = "services:\n  a:\n    image: x\n    # trainlaunch: allow=TL302 a test\n    shm_size: 16\n"
    assert codes(inside, "compose") == []


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        ("# trainlaunch: allow=TL302", ["TL391", "TL302"]),
        ("# trainlaunch: allow=TL303 another", ["TL392", "TL302"]),
        ("# trainlaunch: allow=TL302 right\n\necho", ["TL392", "TL302"]),
    ],
)
def test_a_comment_without_reason_or_use_is_a_finding(comment: str, found: list[str]) -> None:
    """It neither allows nor stays unsaid."""
    assert sorted(codes(f"{comment}\n{BAD}", "shell")) == sorted(found)


def test_comments_in_files_that_a_config_map_carries_are_not_its_own() -> None:
    """They belong to the script in it, whatever its style; those beside the keys and in a pod's shell are lint's."""
    carries = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: code}\ndata:\n  a.py: |\n"
        '    # trainlaunch: allow=TL315 of the script\n    x = 1\n  b.sh: "echo # trainlaunch: allow=TL315 too"\n'
    )
    assert codes(carries, "kubernetes") == []
    listed = "apiVersion: v1\nkind: List\nitems:\n- " + carries.replace("\n", "\n  ").rstrip() + "\n"
    assert codes(listed, "kubernetes") == []
    assert codes(carries.replace("data:", "# trainlaunch: allow=TL315 here\ndata:"), "kubernetes") == ["TL392"]
    assert codes(carries.replace("ConfigMap", "Other"), "kubernetes") == ["TL392", "TL392"]


def test_a_baseline_leaves_only_what_is_new(trainlaunch: Runs, script: Path, tmp_path: Path) -> None:
    """Lines above may come and go; a second one of the same kind is new."""
    baseline = tmp_path / "baseline.json"
    assert trainlaunch("lint", str(script), "--write-baseline", str(baseline)).returncode == 0
    assert trainlaunch("lint", str(script), "--baseline", str(baseline)).returncode == 0
    script.write_text("echo\n\n" + script.read_text() + BAD)
    done = trainlaunch("lint", str(script), "--baseline", str(baseline), "-o", "concise")
    assert done.returncode == 1
    assert [each.split(": ")[0] for each in done.stdout.splitlines()] == [f"{script}:6:28"]
    baseline.write_text("[]")
    assert trainlaunch("lint", str(script), "--baseline", str(baseline)).returncode == 2


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("services:\n  a: {image: x, shm_size: 2g\n", "compose"),
        ("{", "devcontainer"),
        ("kind: Pod\n  a: [", "kubernetes"),
    ],
)
def test_a_broken_text_is_one_finding_with_a_place(text: str, name: str) -> None:
    """Its own reader stops there too."""
    (found,) = linted(text, name).findings
    assert found.diagnostic.code == "TL393"
    assert found.diagnostic.span is not None


@pytest.mark.parametrize(
    ("kind", "text", "line"),
    [
        ("kubernetes", "kind: Pod\n<<<<<<< HEAD\nspec: {}\n=======\nspec: {a: b}\n>>>>>>> main\n", 2),
        ("training-script", "import torch\n\n<<<<<<< HEAD\na = 1\n=======\na = 2\n>>>>>>> main\n", 3),
    ],
)
def test_a_merge_that_was_left_is_named(kind: str, text: str, line: int) -> None:
    """No reader takes it, whatever its version; without the marks it is not ours to judge."""
    (found,) = linted(text, kind).findings
    assert "both sides of a merge" in found.diagnostic.message
    assert found.diagnostic.span is not None
    assert (found.severity.value, found.diagnostic.span.line) == ("error", line)
    (other,) = linted("import torch\na = 1 +\n>>>>>>> main\n", "training-script").findings
    assert other.severity.value == "info"


@pytest.mark.parametrize(
    ("value", "severity"),
    [
        ("%NAMESPACE%", "info"),
        ("{gigabytes}Gi", "info"),
        ("[PROJECT]-media", "info"),
        ("*PROJECT*", "info"),
        ("[PROJECT] media", "error"),
        ("x\n  ${LABELS}\n", "info"),
        ("${GIGABYTES}: Gi", "error"),
        ("'a' b", "error"),
    ],
)
def test_a_template_that_is_no_yaml_before_it_is_filled_in_is_nobodys_mistake(value: str, severity: str) -> None:
    """Words for sed and for str.format stand where YAML has an indicator, a block of envsubst's alone in its line."""
    (found,) = linted(f"kind: Pod\nspec: {{}}\nmetadata:\n  name: {value}\n", "kubernetes").findings
    assert (found.diagnostic.code, found.severity.value) == ("TL393", severity)


@pytest.mark.parametrize(
    ("data", "line"), [(b"docker run x\n\xff\n", 2), ("#!/bin/sh\ndocker run x\n".encode("utf-16"), 1)]
)
def test_a_file_that_is_not_utf_8_is_one_finding(data: bytes, line: int, trainlaunch: Runs, tmp_path: Path) -> None:
    """With the line of the byte; UTF-16, as PowerShell writes it, is text as well."""
    path = tmp_path / "run.sh"
    path.write_bytes(data)
    done = trainlaunch("lint", str(path), "-o", "concise")
    assert (done.returncode, done.stdout) == (0, f"{path}:{line}:1: info TL393: not judged: it is not UTF-8\n")


def test_bytes_of_others_are_no_commands_to_a_terminal(trainlaunch: Runs, tmp_path: Path) -> None:
    """Escape sequences in a line, or in what a finding quotes, are shown as one sign each."""
    path = tmp_path / "run.sh"
    path.write_text("docker run --shm-size=16 x:1 \x1b]0;owned\x07\n")
    shown = trainlaunch("lint", str(path)).stdout
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "x:1 \ufffd]0;owned\ufffd" in shown
    workflow = tmp_path / "w.yaml"
    workflow.write_text(
        'on: push\njobs: {a: {runs-on: "x\\e[2J\\ny", container: {image: i, options: --shm-size=1g}, steps: []}}\n'
    )
    for output in ("text", "concise"):
        shown = trainlaunch("lint", str(workflow), "-o", output).stdout
        assert "x\\x1b[2J\\ny" in shown


def test_a_file_of_a_folder_that_cannot_be_opened_is_one_finding(tmp_path: Path) -> None:
    """The others are judged all the same; a link to nowhere is not a file."""
    (tmp_path / "nowhere.sh").symlink_to(tmp_path / "absent")
    assert list(files_of([tmp_path])) == []
    linted = unopened(tmp_path / "run.sh", "Permission denied")
    assert [each.diagnostic.code for each in linted.findings] == ["TL393"]
    assert linted.findings[0].diagnostic.span is not None


def test_a_byte_order_mark_is_no_part_of_a_script() -> None:
    """Editors of Windows write one."""
    assert codes("\ufeffx = DataLoader(d, num_workers=os.cpu_count())\n", "training-script") == ["TL345"]
    assert codes("\ufeffservices: {a: {image: x, shm_size: 8}}\n", "compose") == ["TL302"]
