"""Every code that trainlaunch prints is explained, and the examples in the explanations do what they say."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.cli.codes_page import code_pages, codes_markdown
from trainlaunch.cli.command_line_page import command_line_markdown
from trainlaunch.manuals import FOLDER, Manual, manuals
from trainlaunch.rules import RETIRED

from tests.conftest import ROOT, Runs
from tests.runners import run_process
from tests.shell_text import run_text

PRINTED = {
    code
    for folder, pattern in (("launcher", "*.py"), ("templates", "*"))
    for path in (ROOT / folder).rglob(pattern)
    if path.is_file()
    for code in re.findall(r"TL\d{3}", path.read_text(encoding="utf-8"))
} - RETIRED
FENCE = re.compile(
    r"^\*\*(?P<part>Example|Write instead)\*\*:\n\n```(?P<kind>[a-z -]+)\n(?P<body>.*?)\n```$", re.M | re.S
)
# Their example needs a machine, an engine or a bug that a test can't make here; each is tested where it arises.
NOT_RUN = {
    "TL119",
    "TL127",
    "TL144",
    "TL147",
    "TL158",
    "TL212",
    "TL215",
    "TL218",
    "TL217",
    "TL219",
    "TL220",
    "TL502",
    "TL505",
    "TL506",
    "TL508",
    "TL509",
    "TL510",
    "TL512",
    "TL515",
    "TL516",
    "TL520",
    "TL727",
    "TL730",
    "TL728",
    "TL901",
    "TL902",
    *(f"TL52{digit}" for digit in "3456789"),
    "TL530",
    "TL531",
    "TL740",
    "TL741",
}
WRITTEN = [each for each in manuals().values() if not each.code.startswith("TL6")]
PARTS = [
    (each, match["part"], match["kind"], match["body"]) for each in WRITTEN for match in FENCE.finditer(each.explained)
]
BASE = {"name": "name: job", "image": "image: trainer:1", "command": "command: [python, train.py]"}


def job_text(fragment: str, base: dict[str, str] = BASE) -> str:
    """Return a whole job file: the fragment, after each required field that it does not state itself."""
    keys = set(re.findall(r"^(\w+):", fragment, re.M))
    missing = [line for key, line in base.items() if key not in keys and not (key == "command" and "script" in keys)]
    return "\n".join([*missing, fragment]) + "\n"


def of_kind(*kinds: str) -> pytest.MarkDecorator:
    """Parametrize over the parts whose fence is of one of these kinds."""
    chosen = [(each.code, part, body) for each, part, kind, body in PARTS if kind in kinds]
    return pytest.mark.parametrize(
        ("code", "part", "body"), chosen, ids=[f"{code}-{part.split()[0].lower()}" for code, part, _ in chosen]
    )


def test_every_printed_code_is_explained_and_no_other() -> None:
    """A code without an explanation, and an explanation without a code, are both a forgotten change."""
    assert set(manuals()) == PRINTED


def test_pages_have_nothing_but_manuals() -> None:
    """A section that isn't read as one, for want of a title or by a slip in its heading, would be lost in silence."""
    for page in FOLDER.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        codes = re.findall(r"^#+ (.*)$", outside, re.MULTILINE)[1:]
        assert codes == [f"{each.code} {each.name}" for each in manuals().values() if each.page == page.stem]


def test_an_example_of_a_pod_has_the_lines_that_matter() -> None:
    """The loader puts the pod around them, alike in every manual."""
    pages = [page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md")]
    assert [page for page in pages if "spec:\n  containers:\n  - name: train\n    image: trainer:1\n" in page] == []
    assert manuals()["TL303"].sections.count("kind: Pod\nmetadata: {name: train}\nspec:\n  containers:\n") == 2
    assert manuals()["TL303"].sections.count("\n  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: ") == 2


def test_explaining_imports_no_vendors_package() -> None:
    """`explain` works without an engine's library."""
    asked = "import sys; from trainlaunch.cli import codes_page; codes_page.codes_markdown(); print(*sys.modules)"
    this_tree = {**os.environ, "PYTHONPATH": str(ROOT / "launcher")}
    done = run_process([sys.executable, "-c", asked], env=this_tree)
    assert done.returncode == 0, done.stderr
    assert {"docker", "kubernetes", "jinja2", "torch"} & set(done.stdout.split()) == set()


def test_names_are_unique_and_short() -> None:
    """A name finds one explanation; it has the form that `explain` prints."""
    names = [each.name for each in manuals().values()]
    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name)] == []


def is_complete(each: Manual) -> bool:
    """Return whether a manual has a title, a reason, and an example with what to write instead."""
    fences = [*FENCE.finditer(each.explained)]
    return (
        each.title.endswith(".")
        and each.explained.startswith("**Why**: ")
        and [match["part"] for match in fences] == ["Example", "Write instead"]
        and (fences[0]["kind"] == "text") == (each.code in NOT_RUN)
    )


def test_an_explanation_has_a_title_a_reason_and_two_examples() -> None:
    """The sections are fixed."""
    assert [each.code for each in WRITTEN if not is_complete(each)] == []


@of_kind("yaml")
def test_a_job_file_of_an_explanation_plans_as_it_says(
    trainlaunch: Runs, tmp_path: Path, code: str, part: str, body: str
) -> None:
    """The example gets the code; what to write instead plans without it."""
    job = tmp_path / "job.yaml"
    job.write_text(job_text(body))
    done = trainlaunch("plan", str(job))
    assert (f"[{code}]" in done.stderr) == (part == "Example"), done.stderr
    if part != "Example":
        assert done.returncode == 0, done.stderr


@of_kind("sh")
def test_a_command_of_an_explanation_does_as_it_says(tmp_path: Path, code: str, part: str, body: str) -> None:
    """The example's last command gets the code; what to write instead does not."""
    (tmp_path / "job.yaml").write_text(job_text(""))
    printed = run_text(body, tmp_path, {"NO_COLOR": "1"}, stderr=True)
    assert "Traceback" not in printed
    if part == "Example":
        assert f"error[{code}]" in printed or f"warning[{code}]" in printed
    else:
        assert "error[" not in printed
        assert f"[{code}]" not in printed


@pytest.mark.docker
@of_kind("yaml up")
def test_a_job_that_the_machine_refuses_gets_the_code(
    trainlaunch: Runs, base_image: str, tmp_path: Path, code: str, part: str, body: str
) -> None:
    """`up` stops before anything starts; what to write instead passes that check and is refused by nothing else."""
    image = {**BASE, "image": f"image: {base_image}", "command": "command: ['true']"}
    job = tmp_path / "job.yaml"
    job.write_text(job_text(body.replace("name: job", ""), {**image, "name": f"name: explain-{code.lower()}"}))
    done = trainlaunch("up", "--detach", str(job))
    trainlaunch("down", str(job), "--all")
    assert (f"[{code}]" in done.stderr) == (part == "Example"), done.stderr


@pytest.mark.parametrize("asked", ["TL605", "tl605", "shm-exhausted", "shm_exhausted"])
def test_explain_takes_a_code_or_a_name(trainlaunch: Runs, asked: str) -> None:
    """A symptom has its manual as any other code."""
    done = trainlaunch("explain", asked)
    assert done.returncode == 0
    assert done.stdout.startswith("TL605 shm-exhausted\n")
    assert "since 2.10 torch reserves the pages" in done.stdout
    assert "**" not in done.stdout


def test_explain_alone_lists_every_code(trainlaunch: Runs) -> None:
    """One line a code, with its name and title."""
    lines = trainlaunch("explain").stdout.splitlines()
    assert [line.split()[0] for line in lines] == sorted(PRINTED)


@pytest.mark.parametrize(("asked", "nearest"), [("TL9O1", "TL901"), ("shm-exhauste", "shm-exhausted")])
def test_an_unknown_code_names_the_nearest(trainlaunch: Runs, asked: str, nearest: str) -> None:
    """Exit 2 with one suggestion, as for verbs."""
    done = trainlaunch("explain", asked)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"write {nearest}\n" in done.stderr


def test_another_number_is_no_misspelt_code(trainlaunch: Runs) -> None:
    """TL999 is as far from TL902 as from any other."""
    done = trainlaunch("explain", "TL999")
    assert (done.returncode, "fix: run `trainlaunch explain`" in done.stderr) == (2, True)


def test_an_error_ends_in_the_command_that_explains_it(trainlaunch: Runs, tmp_path: Path) -> None:
    """The last line of a frame can be typed."""
    job = tmp_path / "job.yaml"
    job.write_text(job_text("shm_size: 8G"))
    assert trainlaunch("plan", str(job)).stderr.splitlines()[-1] == "   = help: trainlaunch explain TL108"


def test_the_pages_of_codes_are_current(golden: Callable[[Path, str], None]) -> None:
    """docs/codes.md and docs/codes/ are what `python -m trainlaunch.cli.codes_page` writes, and nothing else."""
    golden(ROOT / "docs" / "codes.md", codes_markdown())
    pages = code_pages()
    for name, text in pages.items():
        golden(ROOT / "docs" / "codes" / name, text)
    assert {each.name for each in (ROOT / "docs" / "codes").iterdir()} == set(pages)


def test_the_page_of_the_command_line_is_current(golden: Callable[[Path, str], None]) -> None:
    """docs/command-line.md is what `python -m trainlaunch.cli.command_line_page` writes."""
    golden(ROOT / "docs" / "command-line.md", command_line_markdown())
