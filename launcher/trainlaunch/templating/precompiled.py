"""Runs what a wheel has in place of templates: the Python that Jinja2 makes of them, without Jinja2.

`hatch_build.py` writes those modules, one a template, into `trainlaunch/templates/`. Importing Jinja2 and parsing would
take as long as all else that a `render` does. Here is as much of Jinja2's runtime as those modules ask for; a template
that needs more fails when the wheel is built or, like a name without a value, when it is rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from trainlaunch.templating.quoting import FILTERS, TESTS, require_quoted

missing: Any = object()  # what Jinja2's Python has in place of a value that isn't there


def module_name(template: str) -> str:
    """Return the name of the module, in the package `trainlaunch.templates`, that is made of `template`."""
    return re.sub(r"\W", "_", template)


def built_text(template: str, values: Mapping[str, object]) -> str:
    """Return the text of `template` with `values`. Raises NameError where it uses a name that has no value."""
    built = environment.get_template(template)
    return "".join(built.root_render_func(built.new_context(values)))


def undefined(name: str) -> Any:
    """Raise NameError: a template uses a name that has no value."""
    raise NameError(f"a template uses {name}, which has no value")


Undefined = undefined  # what an if-expression without else would be, as Jinja2's Python has it


def str_join(parts: Iterable[object]) -> str:
    """Return what `~` makes of its operands."""
    return "".join(map(str, parts))


class Context(dict[str, Any]):
    """The names that a template sees."""

    def resolve_or_missing(self, name: str) -> Any:
        return self.get(name, missing)

    def get_all(self) -> Mapping[str, Any]:
        return self

    @staticmethod
    def call(function: Any, *arguments: Any, _loop_vars: Any = None) -> Any:
        return function(*arguments)


class _Template(NamedTuple):
    root_render_func: Any

    @staticmethod
    def new_context(values: Mapping[str, Any], shared: bool = True, local: Mapping[str, Any] | None = None) -> Context:
        """Return the names of an included template: those around it, and the loop variables of the place."""
        return Context({**values, **(local or {})})


class _Environment:
    filters = FILTERS
    tests = TESTS
    finalize = staticmethod(require_quoted)
    concat = staticmethod("".join)
    getattr = staticmethod(getattr)
    undefined = staticmethod(undefined)

    @staticmethod
    def getitem(value: Any, key: Any) -> Any:
        return value[key]

    @staticmethod
    def get_template(name: str, parent: str | None = None) -> _Template:
        return _Template(import_module(f"trainlaunch.templates.{module_name(name)}").root)


environment = _Environment()
