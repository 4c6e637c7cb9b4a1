"""Templates as Python modules: the same text as Jinja2 gives, and never an old one."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from launcher.render import compiled, compiler, render, templates
from launcher.render.compiler import compiled_module
from launcher.render.templates import compiled_text, environment, module_name, template_text
from launcher.render.text import batches, indented
from tests.render.jobs import JOBS, TARGETS, job_plan

FOLDER = templates.template_folder()
MODULES = Path(compiled.__path__[0])
INCLUDED = {
    name
    for path in FOLDER.rglob("*.j2")
    for name in re.findall(r'{% include "([^"]+)" %}', path.read_text(encoding="utf-8"))
}
TEMPLATES = sorted({str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.j2")} - INCLUDED)


@pytest.fixture
def other_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the templates that is read in their place."""
    shutil.copytree(FOLDER, tmp_path / "templates")
    monkeypatch.setattr(templates, "template_folder", lambda: tmp_path / "templates")
    monkeypatch.setattr(compiler, "template_folder", lambda: tmp_path / "templates")
    for cached in (compiled_text, environment):
        cached.cache_clear()
    yield tmp_path / "templates"
    for cached in (compiled_text, environment):
        cached.cache_clear()


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_committed_module_is_what_its_template_compiles_to(
    template: str, golden: Callable[[Path, str], None]
) -> None:
    """A changed template needs `make regen`, which writes its module."""
    golden(MODULES / f"{module_name(template)}.py", compiled_module(template))


def test_each_module_has_its_template() -> None:
    """A template that is gone leaves no module behind."""
    assert {path.stem for path in MODULES.glob("*.py")} == {"__init__", *map(module_name, TEMPLATES)}


@pytest.mark.parametrize("template", TEMPLATES)
def test_renderings_take_the_compiled_module(template: str) -> None:
    """No committed template is parsed at a start."""
    assert compiled_text(template) is not None


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("job", JOBS)
def test_module_and_template_give_the_same_text(job: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jinja2 itself renders each job on each target to the same bytes."""
    plan = job_plan(job, target)
    text = render(plan)
    monkeypatch.setattr(templates, "compiled_text", lambda template: None)
    assert render(plan) == text


@pytest.mark.parametrize("edited", ["health.sh.j2", "docker-run.sh.j2"])
def test_an_edited_template_is_taken_at_once(edited: str, other_folder: Path) -> None:
    """Its module is of the text before, so Jinja2 renders the new one; the other templates keep theirs."""
    with (other_folder / edited).open("a") as file:
        file.write("# edited\n")
    assert compiled_text(edited) is None
    assert compiled_text("compose.yaml.j2") is not None
    assert "# edited\n" in render(job_plan("minimal", "docker")).replace("\n'", "\n")


def test_an_edited_include_is_taken_at_once(other_folder: Path) -> None:
    """A module holds its includes, so it is old where one of them changes."""
    with (other_folder / "kubernetes/pod-spec.yaml.j2").open("a") as file:
        file.write("# edited\n")
    assert compiled_text("kubernetes/job.yaml.j2") is None
    assert "# edited\n" in render(job_plan("minimal", "kubernetes"))


def test_a_template_without_a_module_is_rendered(other_folder: Path) -> None:
    """A new template works before it is compiled."""
    (other_folder / "new.j2").write_text("{{ x | sh }}\n")
    assert template_text("new.j2", x="a b") == "'a b'\n"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ x }}", "without a quoting filter"),
        ("{{ x | sh ~ 'a' }}", "without a quoting filter"),
        ("{% set x = 1 %}", "no Assign"),
        ("{{ x[2:] | sh_words }}", "the only slice"),
        ("{% if x is defined %}a{% endif %}", "the only test"),
        ("{% for x in y %}a{% else %}b{% endfor %}", "no else"),
        ("{{ x | upper | sh }}", "no filter upper"),
        ("{{ out | sh }}", "the module's own"),
    ],
)
def test_what_the_compiler_does_not_know_is_refused(source: str, reason: str, other_folder: Path) -> None:
    """Nothing is compiled to something else than Jinja2 does with it."""
    (other_folder / "new.j2").write_text(source)
    with pytest.raises(NotImplementedError, match=reason):
        compiled_module("new.j2")


def test_loop_variables_do_not_outlive_their_loop(other_folder: Path) -> None:
    """A name that a loop takes means the template's own value again behind it, as in Jinja2."""
    source = "{% for x in y %}{{ loop.index | number }}{{ x | sh }}{% endfor %}{{ x | sh }}"
    (other_folder / "new.j2").write_text(source)
    made: dict[str, object] = {}
    exec(compiled_module("new.j2"), made)  # noqa: S102  what the compiler wrote is run to see what it does
    text = made["text"]
    assert callable(text)
    assert text(x="z", y=["a", "b"]) == "1a2bz" == template_text("new.j2", x="z", y=["a", "b"])


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\nb", "a\n\n b\n", "\na"])
@pytest.mark.parametrize("first", [True, False])
def test_indented_is_jinjas_indent(text: str, first: bool) -> None:
    """The helper of compiled templates gives what the filter gives."""
    assert indented(text, 2, first=first) == environment().filters["indent"](text, 2, first=first)


@pytest.mark.parametrize("count", range(6))
def test_batches_is_jinjas_batch(count: int) -> None:
    """The helper of compiled templates gives what the filter gives."""
    items = list(range(count))
    assert list(batches(items, 2, "")) == list(environment().filters["batch"](items, 2, ""))
