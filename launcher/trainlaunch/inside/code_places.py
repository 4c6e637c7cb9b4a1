"""Where in the user's own code something happens."""

from __future__ import annotations

import os
import sys
import sysconfig
import types
from typing import Any, NamedTuple

_FOLDER = os.getcwd()  # scripts change it
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_STDLIB = tuple(each + os.sep for each in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), _OURS))
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def caller() -> str:
    """Return the innermost frame outside libraries as FILE:LINE, relative to the folder that the script began in.

    Where all code is a library's, it is the innermost one outside torch; empty where there is none.
    """
    frame, fallback = sys._getframe(1), ""
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith("<frozen "):
            path = os.path.join(_FOLDER, path) if not path.startswith("<") else path
            if not _is_library(path):
                return _named(path, frame.f_lineno)
            if not fallback and not path.startswith(_OURS + os.sep) and f"{os.sep}torch{os.sep}" not in path:
                fallback = _named(path, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return fallback


class UserFrame(NamedTuple):
    """A place of code and the name of its function."""

    at: str
    function: str


def frame_of_script(trace: Any) -> UserFrame:
    """Return the innermost frame of a traceback in the user's own code, else the innermost of all."""
    found, last = None, UserFrame("", "")
    while trace is not None:
        code = trace.tb_frame.f_code
        last = UserFrame(place(code.co_filename, trace.tb_lineno), code.co_name)
        found = last if is_of_script(code.co_filename) else found
        trace = trace.tb_next
    return found or last


def is_of_script(path: str) -> bool:
    """Whether a file of code is the user's own: not a library's, not Python's, not ours."""
    return not path.startswith("<") and not _is_library(os.path.join(_FOLDER, path))


def is_made_by_script(value: Any) -> bool:
    """Whether a class, a function or a module is the user's own."""
    module = value if isinstance(value, types.ModuleType) else sys.modules.get(getattr(value, "__module__", None) or "")
    path = getattr(module, "__file__", None)
    return is_of_script(path) if path else getattr(module, "__name__", "") == "__main__"  # of python -c


def place(path: str, line: int) -> str:
    """Return a place of code as FILE:LINE, relative to the folder that the script began in."""
    return _named(os.path.join(_FOLDER, path), line)


def _is_library(path: str) -> bool:
    return any(each in path for each in _PACKAGES) or path.startswith(_STDLIB)


def _named(path: str, line: int) -> str:
    inside = path.startswith(_FOLDER.rstrip(os.sep) + os.sep)
    return f"{os.path.relpath(path, _FOLDER) if inside else path}:{line}"
