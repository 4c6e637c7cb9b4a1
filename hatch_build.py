"""Puts the templates into the wheel as Python, so that an installed `trainlaunch` neither imports Jinja2 nor parses.

Each module is what Jinja2 itself makes of a template, with `trainlaunch.templating.precompiled` in place of Jinja2's
runtime. A checkout and an editable installation render the templates.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from jinja2 import Environment

JINJA2 = "jinja2>=3.1.4,<4"
THEIRS = "from jinja2.runtime import "
OURS = "from trainlaunch.templating.precompiled import Undefined, environment, missing, str_join"


class TemplateHook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling for each wheel; `version` is "editable" or "standard"."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the modules to a wheel, or the dependency on Jinja2 to an editable one."""
        if version == "editable":
            build_data["dependencies"].append(JINJA2)
            return
        self._folder = tempfile.TemporaryDirectory()
        for name, source in modules(self.root).items():
            path = Path(self._folder.name, f"{name}.py")
            path.write_text(source, encoding="utf-8")
            build_data["force_include"][str(path)] = f"trainlaunch/templates/{name}.py"
        for path in Path(self.root, "templates").glob("*.sh"):
            build_data["force_include"][str(path)] = f"trainlaunch/templates/{path.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what the wheel has by now."""
        if version != "editable":
            self._folder.cleanup()


def modules(root: str) -> dict[str, str]:
    """Return the source of each template's module, by its name.

    Raises jinja2.TemplateAssertionError where a template has a filter or a test that is not trainlaunch's own.
    """
    sys.path.insert(0, str(Path(root, "launcher")))
    from trainlaunch.templating.environment import TEMPLATES, environment
    from trainlaunch.templating.precompiled import module_name
    from trainlaunch.templating.quoting import FILTERS, TESTS

    jinja = environment()
    jinja.filters, jinja.tests = dict(FILTERS), dict(TESTS)
    texts = {each: (TEMPLATES / each).read_text(encoding="utf-8") for each in jinja.list_templates(extensions=["j2"])}
    return {module_name(each): python_of(jinja, each, text) for each, text in texts.items()}


def python_of(jinja: Environment, template: str, text: str) -> str:
    """Return the template of that name and text as Python that needs no Jinja2."""
    first, rest = jinja.compile(text, template, raw=True, defer_init=True).split("\n", 1)
    if not first.startswith(THEIRS):
        raise ValueError(f"this release of Jinja2 begins a template's Python with {first}")
    return f"{OURS}\n{rest}"
