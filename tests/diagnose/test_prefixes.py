"""What stands before a job's own words is taken off, and says whose line it is where several are mixed."""

from __future__ import annotations

from trainlaunch.diagnose.base.line_prefixes import unprefixed

OWN = "  RuntimeError: [0] of 3: 4 | 5"  # indented, and with what would be a prefix at its beginning
OWNERS = {
    "##[error]": "",
    "2026-03-01T10:00:01.1234567Z ##[group]": "",
    "\ufeff2026-03-01T10:00:01.1234567Z ": "",
    "2026-03-01T10:00:01.123456789Z stderr F ": "",
    "Mar 01 10:00:01 node-1 dockerd[1234]: ": "dockerd[1234] ",
    "trainer-1  | ": "trainer-1 ",
    "[pod/resnet50-7c9-0/trainer] ": "pod/resnet50-7c9-0/trainer ",
    "[default3]: ": "default3 ",
    "[worker-3] ": "worker-3 ",
    "[rank3]: ": "rank3 ",
    "[1,3]<stderr>: ": "3 ",
    "[1,0]<stdout>: ": "0 ",
    "3: ": "3 ",
    "(TrainWorker pid=123, ip=10.0.0.7) ": "TrainWorker pid=123, ip=10.0.0.7 ",
    "(EngineCore rank=2 pid=9) ERROR 11-28 10:00:00 [core.py:700] ": "EngineCore rank=2 pid=9 ",
    "INFO 11-28 10:00:00 worker/gpu.py:31 ": None,  # without its bracket it is the job's own
    "E1128 10:00:00.123456 12 torch/distributed/error_handler.py:141]  ": "",
    "W1128 10:00:00.123456 12 api.py:900] [3] ": "",
}


def test_each_prefix_is_taken_off_and_tells_the_owner() -> None:
    """Each has one blank where its program prints one: what is left is indented as the job printed it."""
    wrong = []
    for prefix, owner in OWNERS.items():
        expected = (prefix + OWN, "") if owner is None else (OWN, owner)
        if (found := unprefixed(f"{prefix}{OWN}\n")) != expected:
            wrong.append((prefix, found))
    assert wrong == []


def test_five_prefixes_are_taken_off_and_no_more() -> None:
    """A line of nothing but them, as somebody may print, ends."""
    assert unprefixed("1: 2: 3: 4: 5: lost") == ("lost", "1 2 3 4 5 ")
    assert unprefixed("1: 2: 3: 4: 5: 6: lost") == ("6: lost", "1 2 3 4 5 ")
