"""Another number of loaders than the job file names."""

from __future__ import annotations

from trainlaunch.measure.finding import ProbeFinding
from trainlaunch.measure.findings import diagnosed


def test_both_numbers_and_both_lists_are_said() -> None:
    """Which loaders were seen and which are named tells what to write."""
    facts = {"seen": 2, "stated": 1, "names": ["train"], "places": ["train.py:48", "train.py:61"]}
    said = diagnosed(ProbeFinding("loaders-differ", None, "", facts))
    assert said is not None
    assert said.code == "TL723"
    assert said.message == (
        "the script ran 2 loaders (train.py:48, train.py:61), and data_loader.loaders names 1 (train)"
    )
    assert "data_loader.loaders" in said.fix


def test_a_job_that_says_none_is_told_so() -> None:
    """There are no names to list."""
    facts = {"seen": 1, "stated": 0, "names": [], "places": ["train.py:48"]}
    said = diagnosed(ProbeFinding("loaders-differ", None, "", facts))
    assert said is not None
    assert said.message == "the script ran 1 loader (train.py:48), and data_loader is none"
