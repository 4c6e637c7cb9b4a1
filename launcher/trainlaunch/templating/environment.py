"""The templates' text: through Jinja2 in a checkout, through the modules that were made of them in a wheel."""

from __future__ import annotations

import functools
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError
from trainlaunch.templating.quoting import FILTERS, require_quoted

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE = Path(__file__).resolve().parent.parent
TEMPLATES = _PACKAGE.parents[1] / "templates"
BUILT = _PACKAGE / "templates"  # in a wheel


@functools.cache
def environment() -> Environment:
    """Return the Jinja2 environment: undefined names, and values that no quoting filter made, raise."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ModuleNotFoundError as cause:
        raise _unprepared("Jinja2, which renders a checkout's templates, is not installed") from cause
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
    path = (BUILT if _is_built() else TEMPLATES) / name
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as cause:
        raise _unprepared(f"{path}, a part of trainlaunch, is missing") from cause


def _unprepared(message: str) -> UsageError:
    folder = shlex.quote(str(TEMPLATES.parent))
    fix = f"run `{shlex.quote(sys.executable)} -m pip install --editable {folder}`"
    if not TEMPLATES.is_dir():
        fix = "install trainlaunch again, as its README says: templates are neither built nor beside the package"
    why = "a checkout renders its templates with Jinja2; a wheel has them as Python, which a checkout has not"
    return UsageError([Diagnostic("TL158", message, fix, why=why)])


def template_text(template: str, /, **values: object) -> str:
    """Return the text of `template` with `values`, or with none: every printed value passes a quoting filter."""
    if _is_built():
        from trainlaunch.templating.precompiled import built_text

        return built_text(template, values)
    made = environment()
    if not TEMPLATES.is_dir():
        raise _unprepared(f"{TEMPLATES}, the folder of templates, is missing")
    return made.get_template(template).render(values)
