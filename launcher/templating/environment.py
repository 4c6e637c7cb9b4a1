"""The one place that knows Jinja2: finds the templates and makes sure that they print only quoted values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.templating.quoting import (
    compose_variable,
    dollars,
    number,
    require_quoted,
    sh_name,
    sh_variable,
    sh_word,
    sh_words,
)
from launcher.yamltree.emitter import Quoted, comment, yaml_block, yaml_string, yaml_text

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE = Path(__file__).resolve().parent.parent
QUOTING_FILTERS: Mapping[str, Callable[..., Quoted]] = {
    "sh": sh_word,
    "sh_words": sh_words,
    "sh_name": sh_name,
    "sh_variable": sh_variable,
    "compose_variable": compose_variable,
    "yaml": yaml_string,
    "yaml_text": yaml_text,
    "yaml_block": yaml_block,
    "number": number,
    "comment": comment,
}


def template_folder() -> Path:
    """Return the folder of the templates: inside the package in a wheel, beside it in a checkout."""
    inside = _PACKAGE / "templates"
    return inside if inside.is_dir() else _PACKAGE.parent / "templates"


@functools.cache
def environment() -> Environment:
    """Return the Jinja2 environment: undefined names, and values that no quoting filter made, raise."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(template_folder()),
        undefined=StrictUndefined,
        finalize=require_quoted,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        comment_start_string="{=#",  # the usual one is part of the shell's ${#name}
        comment_end_string="#=}",
        autoescape=False,  # noqa: S701  HTML escaping would change shell and YAML text; require_quoted guards instead
    )
    made.filters.update(QUOTING_FILTERS, dollars=dollars)
    return made


def template_text(template: str, /, **values: object) -> str:
    """Return the text of `template` with `values`, or with none: every printed value passes a quoting filter."""
    return environment().get_template(template).render(values)
