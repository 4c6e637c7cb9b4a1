"""Writers of values into shell and YAML text, whose results alone a template may print, and the templates' filters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from trainlaunch.formats.docker.functions import END_OF_TEXT
from trainlaunch.yamltree.emitter import Quoted, comment, yaml_block, yaml_folded, yaml_string, yaml_text

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_EXPANDED = re.compile(r"\$\$+|\$(?=\(|[^\x00-\x7f])")
_PLAIN_SHELL_WORD = re.compile(r"[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:=@%+,-]*")


def require_quoted(value: object) -> Quoted:
    """Return `value`; raises TypeError where a template would print something that no writer of this module made."""
    if not isinstance(value, Quoted):
        raise TypeError(f"a template prints {value!r} without a quoting filter")
    return value


def sh_word(value: str) -> Quoted:
    """Return one shell word: bare where no shell reads anything into it, else single-quoted (may span lines)."""
    if _PLAIN_SHELL_WORD.fullmatch(value):
        return Quoted(value)
    return Quoted("'" + value.replace("'", "'\\''") + "'")


def sh_words(values: tuple[str, ...]) -> Quoted:
    """Return shell words on one line (values with line breaks span lines)."""
    return Quoted(" ".join(map(sh_word, values)))


def here_document(value: str) -> Quoted:
    """Return the body of a here-document up to END_OF_TEXT, as it is; raises ValueError for one that has that line."""
    if END_OF_TEXT in value.split("\n") or not value or value.endswith("\n"):
        raise ValueError(f"a text that is empty, or has a line {END_OF_TEXT}, is no here-document")
    return Quoted(value)


def sh_name(value: str) -> Quoted:
    """Return the name of a shell variable; raises ValueError for anything else, since no quoting exists for names."""
    if not re.fullmatch(_NAME, value):
        raise ValueError(f"{value!r} is not the name of an environment variable")
    return Quoted(value)


def sh_variable(value: str) -> Quoted:
    """Return the double-quoted reference to the shell variable called `value`, empty where it is not set."""
    return Quoted(f'"${{{sh_name(value)}:-}}"')


def compose_variable(value: str, message: str) -> Quoted:
    """Return the YAML scalar by which Compose takes the host's variable `value`, or stops with `message`."""
    return yaml_string(f"${{{sh_name(value)}:?{dollars(message)}}}")


def kubernetes_dollars(value: str) -> str:
    """Return `value` with those `$` doubled that Kubernetes would take for something else; not quoted yet.

    That is a run of two or more, one before `(`, and one before a byte ≥ 0x80: before 1.36 the API server's expansion
    returned a byte there. Any other arrives as it is.
    """
    return _EXPANDED.sub(lambda match: match[0] * 2, value)


def dollars(value: str) -> str:
    """Return `value` with each `$` doubled, as Compose expands it; not quoted yet."""
    return value.replace("$", "$$")


def number(value: int) -> Quoted:
    """Return a bare decimal integer; raises TypeError for anything else, booleans included."""
    if type(value) is not int:
        raise TypeError(f"{value!r} is not an integer")
    return Quoted(str(value))


def plain(value: str) -> Quoted:
    """Return a word that nobody reads anything into, as an image or a duration; raises ValueError for any other."""
    if not _PLAIN_SHELL_WORD.fullmatch(value):
        raise ValueError(f"{value!r} is not a plain word")
    return Quoted(value)


def instruction(value: str) -> Quoted:
    """Return a value in double quotes as ENV, LABEL and WORKDIR of a Dockerfile read it; it has no line breaks."""
    return Quoted('"' + re.sub(r'(["\\$])', r"\\\1", value) + '"')


def exec_form(words: tuple[str, ...]) -> Quoted:
    """Return words as JSON; each line of a long text is a line of its own.

    Docker drops an empty line and one that starts with `#`, and joins behind a backslash: so a line begins with the
    escape of the line break before it, and a backslash that ends one is written by its number. So is one before a
    quotation mark, after which hadolint would see no JSON.
    """
    import json  # only a Dockerfile has some

    whole = json.dumps(words, ensure_ascii=False)
    whole = re.sub(r'(?<!\\)((?:\\\\)+)(?=\\n|\\?")', lambda it: "\\u005c" * (len(it[1]) // 2), whole)
    return Quoted(re.sub(r"(?<!\\)\\n", "\\\n\\\\n", whole))


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
    "here_document": here_document,
    "sh_variable": sh_variable,
    "compose_variable": compose_variable,
    "yaml": yaml_string,
    "yaml_text": yaml_text,
    "yaml_folded": yaml_folded,
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
