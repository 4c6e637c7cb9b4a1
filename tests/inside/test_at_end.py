"""When a script has ended, as Python 3.12 and later tell it; a stand-in for those: the tests' own Python is older."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from trainlaunch.inside.probe import at_end

DISABLE = object()
EVENTS = SimpleNamespace(PY_RETURN=1, PY_UNWIND=2)


class Monitoring:
    """Takes callbacks as sys.monitoring does."""

    events, DISABLE = EVENTS, DISABLE

    def __init__(self) -> None:
        self.callbacks: dict[int, Callable[..., Any]] = {}
        self.local: list[tuple[Any, int]] = []
        self.everywhere = 0

    def get_tool(self, number: int) -> str | None:
        """Return who has a number; debuggers have the first."""
        return "debugger" if number == 0 else None

    def use_tool_id(self, number: int, name: str) -> None:
        """Take a number."""
        assert (number, name) == (1, "trainlaunch-probe")

    def register_callback(self, number: int, event: int, callback: Callable[..., Any]) -> None:
        """Take what is called."""
        assert number == 1
        self.callbacks[event] = callback

    def set_local_events(self, number: int, code: Any, events: int) -> None:
        """Follow events of one code; an unwinding can't be one."""
        assert (number, events) == (1, EVENTS.PY_RETURN)
        self.local.append((code, events))

    def set_events(self, number: int, events: int) -> None:
        """Follow events of all code."""
        assert number == 1
        self.everywhere = events


@pytest.fixture
def monitoring(monkeypatch: pytest.MonkeyPatch) -> Monitoring:
    """Return what stands for sys.monitoring."""
    made = Monitoring()
    monkeypatch.setattr(sys, "monitoring", made, raising=False)
    return made


def test_a_script_ends_with_its_own_module(monitoring: Monitoring, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its return and by what leaves it, as sys.exit: not by what other code returns or raises."""
    code, other = compile("1", "train.py", "exec"), compile("1", "other.py", "exec")
    monkeypatch.setattr(at_end, "_script", lambda: code)
    ends: list[str] = []
    at_end.call(lambda: ends.append("once"))
    assert (monitoring.local, monitoring.everywhere) == ([(code, EVENTS.PY_RETURN)], EVENTS.PY_UNWIND)
    assert monitoring.callbacks[EVENTS.PY_UNWIND](other, 0, SystemExit(0)) is None
    assert ends == []
    assert monitoring.callbacks[EVENTS.PY_UNWIND](code, 0, SystemExit(0)) is None
    assert monitoring.callbacks[EVENTS.PY_RETURN](code, 0, None) is DISABLE
    assert ends == ["once", "once"]
