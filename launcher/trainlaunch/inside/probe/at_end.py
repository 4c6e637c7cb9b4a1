"""The end of a script, while Python still starts processes and threads for checks."""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable
from typing import Any


class ScriptFile:
    """The path of the script, which a process that is spawned imports it by, at the script's end too.

    Python gives it to `__main__` when the script begins and takes it away when its code has ended.
    """

    def __init__(self) -> None:
        self._path: str | None = None

    def keep(self) -> None:
        """Note it while the script runs."""
        self._path = self._path or getattr(sys.modules["__main__"], "__file__", None)

    def restore(self) -> None:
        """Let `__main__` have it again."""
        if self._path is not None:
            sys.modules["__main__"].__file__ = self._path


def call(function: Callable[[], None]) -> None:
    """Call `function` when the script has ended, once or more.

    From Python 3.12 on no worker starts once the interpreter ends, so there the end of the script's own module counts:
    its return, or the exception that leaves it, as sys.exit's.
    """
    register = getattr(threading, "_register_atexit", None) or atexit.register
    register(function)
    monitoring, code = getattr(sys, "monitoring", None), _script()
    tool = next((each for each in range(6) if monitoring and monitoring.get_tool(each) is None), None)
    if monitoring is None or code is None or tool is None:
        return

    def returns(*_: Any) -> Any:
        function()
        return monitoring.DISABLE

    def unwinds(left: Any, *_: Any) -> None:
        if left is code:
            function()

    events = monitoring.events
    monitoring.use_tool_id(tool, "trainlaunch-probe")
    monitoring.register_callback(tool, events.PY_RETURN, returns)
    monitoring.register_callback(tool, events.PY_UNWIND, unwinds)
    monitoring.set_local_events(tool, code, events.PY_RETURN)
    monitoring.set_events(tool, events.PY_UNWIND)  # of all code: this event has no place of its own


def _script() -> Any:
    """Return the code of the script's own module, which is now being run; None where it isn't."""
    frame, main = sys._getframe(1), vars(sys.modules["__main__"])
    while frame is not None:
        if frame.f_globals is main and frame.f_code.co_name == "<module>":
            return frame.f_code
        frame = frame.f_back  # type: ignore[assignment]
    return None
