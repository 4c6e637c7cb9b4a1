"""The filters and tests of the templates, the same in a checkout, which Jinja2 renders, and in a wheel."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trainlaunch.templating.quoting import (
    compose_variable,
    dollars,
    exec_form,
    instruction,
    kubernetes_dollars,
    number,
    plain,
    sh_name,
    sh_variable,
    sh_word,
    sh_words,
)
from trainlaunch.yamltree.emitter import Quoted, comment, yaml_block, yaml_string, yaml_text


def indent(text: str, width: int, first: bool = False) -> str:
    """Return `text` with each line that is not empty moved right by `width` columns; the first only if asked."""
    blank = " " * width
    head, *lines = text.split("\n")
    return "\n".join((blank + head if first else head, *(blank + line if line else line for line in lines)))


def none(value: object) -> bool:
    """Return whether there is no value."""
    return value is None


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
    "plain": plain,
    "instruction": instruction,
    "exec_form": exec_form,
    "comment": comment,
}
FILTERS: Mapping[str, Callable[..., object]] = {
    **QUOTING_FILTERS,
    "dollars": dollars,
    "kubernetes_dollars": kubernetes_dollars,
    "indent": indent,
    "int": int,
}
TESTS: Mapping[str, Callable[[object], bool]] = {"none": none}
