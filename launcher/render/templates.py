"""The one place that knows Jinja2: finds the templates and makes sure that they print only quoted values."""

from __future__ import annotations

import functools
import hashlib
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.render.quoting import (
    Quoted,
    comment,
    compose_variable,
    dollars,
    number,
    require_quoted,
    sh_name,
    sh_variable,
    sh_word,
    sh_words,
    yaml_block,
    yaml_string,
    yaml_text,
)

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


def module_name(template: str) -> str:
    """Return the name of the module that `template` is compiled to."""
    return template.removesuffix(".j2").replace("/", "_").replace("-", "_").replace(".", "_")


@functools.cache
def compiled_text(template: str) -> Callable[..., str] | None:
    """Return the function that `template` was compiled to; None where there is none, or a source differs since."""
    name = f"{__package__}.compiled.{module_name(template)}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise
        return None
    sources: Mapping[str, str] = module.SOURCES
    if any(digest_of(each) != digest for each, digest in sources.items()):
        return None
    text: Callable[..., str] = module.text
    return text


def digest_of(template: str) -> str:
    """Return the digest of a template's source; empty where the file is gone."""
    try:
        return hashlib.sha256((template_folder() / template).read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""


def template_text(template: str, /, **values: object) -> str:
    """Return the text of `template` with `values`, or with none: every printed value passes a quoting filter.

    An edited template is taken as it is, by Jinja2, until `make regen` compiles it again.
    """
    compiled = compiled_text(template)
    if compiled is not None:
        return compiled(**values)
    return environment().get_template(template).render(values)
