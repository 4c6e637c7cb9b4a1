"""How tests are dealt out to processes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from tests.groups import Scheduling


def test_what_a_process_died_of_is_not_begun_again() -> None:
    """xdist's own scheduler gives it to the next process, until there is none left for the tests behind it."""
    scheduling: Any = Scheduling.__new__(Scheduling)
    file = {"test_a": True, "test_b": False, "test_c": False}
    scheduling.workqueue, scheduling.assigned_work = OrderedDict(), {"gw0": {"test_file.py": file}}
    assert scheduling.remove_node("gw0") == "test_b"
    assert [test for unit in scheduling.workqueue.values() for test, is_over in unit.items() if not is_over] == [
        "test_c"
    ]
    scheduling.assigned_work = {"gw1": {"test_file.py": {"test_a": True, "test_b": False}}}
    scheduling.workqueue.clear()
    assert (scheduling.remove_node("gw1"), scheduling.workqueue) == ("test_b", {})
