"""Checks can't hold a probe up or fail it: what they found until then counts, and the rest is said to be off."""

from __future__ import annotations

import json

import pytest

from tests.inside.conftest import Inner

pytestmark = pytest.mark.docker

ABSENT = "trainlaunch_inside.probe.checks.absent"
SCRIPT = """
import json, sys, threading, time, types
from torch.utils.data import DataLoader
from trainlaunch_inside.probe import checks
from trainlaunch_inside.probe.base.loader_stats import LoaderStats

odd = sys.modules[checks.__name__ + ".odd"] = types.ModuleType("odd")

def raises(seen):
    yield {"size": len(seen.dataset)}
    raise ValueError("mine")

def hangs(seen):
    yield {"found": 1}
    while True:
        try: time.sleep(600)
        except Exception: pass

def waits(seen):
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
    yield {}

odd.raises, odd.hangs, odd.waits = raises, hangs, waits
rows = (("a", "odd", 20, "raises"), ("b", "odd", 1, "hangs"), ("c", "odd", 1, "waits"), ("d", "absent"))
loader = DataLoader([1, 2, 3])
seen = LoaderStats(4, loader, "train.py:7")
print(json.dumps(list(checks.run([seen], tuple(checks.Check(*each) for each in rows)))))
"""


def test_a_check_that_raises_hangs_or_is_missing_is_off(inside: Inner) -> None:
    """Named with its loader and place; the next one runs."""
    found = json.loads(inside(SCRIPT).out.splitlines()[0])
    where = {"loader": 4, "place": "train.py:7"}
    assert found == [
        ["finding", {"defect": "a", **where, "facts": {"size": 3}}],
        ["off", {"defect": "a", **where, "reason": "ValueError: mine"}],
        ["finding", {"defect": "b", **where, "facts": {"found": 1}}],
        ["off", {"defect": "b", **where, "reason": "not done after 1 s"}],
        ["off", {"defect": "c", **where, "reason": "not done after 1 s"}],
        ["off", {"defect": "d", **where, "reason": f"ModuleNotFoundError: No module named '{ABSENT}'"}],
    ]
