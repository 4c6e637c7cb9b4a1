"""The templates' text: through Jinja2 in a checkout, through the modules that were made of them in a wheel."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.templating.filters import FILTERS
from launcher.templating.quoting import require_quoted

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE = Path(__file__).resolve().parent.parent
TEMPLATES = _PACKAGE.parent / "templates"
BUILT = _PACKAGE / "templates"  # in a wheel


@functools.cache
def environment() -> Environment:
    """Return the Jinja2 environment: undefined names, and values that no quoting filter made, raise."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        finalize=require_quoted,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        comment_start_string="{=#",  # the usual one is part of the shell's ${#name}
        comment_end_string="#=}",
        auto_reload=False,  # no template changes while a process runs
        autoescape=False,  # noqa: S701  HTML escaping would change shell and YAML text; require_quoted guards instead
    )
    made.filters.update(FILTERS)
    return made


@functools.cache
def _is_built() -> bool:
    """Whether this is a wheel's package, which has modules in place of templates."""
    return BUILT.is_dir()


@functools.cache
def constant_text(name: str) -> str:
    """Return the text of a file among the templates that is no template: a shell script, the same for every job."""
    return ((BUILT if _is_built() else TEMPLATES) / name).read_text(encoding="utf-8")


def template_text(template: str, /, **values: object) -> str:
    """Return the text of `template` with `values`, or with none: every printed value passes a quoting filter."""
    if _is_built():
        from launcher.templating.built import built_text

        return built_text(template, values)
    return environment().get_template(template).render(values)
