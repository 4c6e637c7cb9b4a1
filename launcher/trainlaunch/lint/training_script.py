"""The syntax tree of a training script; the script is never run or imported."""

from __future__ import annotations

import ast
import warnings

from trainlaunch.diagnostics import Span
from trainlaunch.rules.written.model import TRAINING_SCRIPT, SourceText
from trainlaunch.yamltree.documents import Source


def read_script(text: str, name: str) -> SourceText | tuple[str, Span]:
    """Return a script with its tree, or what this Python refuses in it and where."""
    source = Source(text, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the script's own escapes
            tree = ast.parse(text.removeprefix("\ufeff").replace("\f", " "))
    except SyntaxError as error:
        line, column = error.lineno or 1, max(error.offset or 1, 1)
        return error.msg, Span(name, line, column, line, column + 1)
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or "nested too deep", Span(name, 1, 1, 1, 1)
    return SourceText(TRAINING_SCRIPT, text, source, tree=tree)
