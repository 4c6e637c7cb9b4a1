from __future__ import annotations

from trainlaunch.diagnose.base.case import Case
from trainlaunch.diagnose.base.diagnosis import Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL652"
NAME = "batchnorm-last-batch"
_ONE = LogPattern("rror: Expected more than 1", r"Expected more than 1 value per channel when training")


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's text."""
    hit = case.first(_ONE)
    if hit is None:
        return None
    sentence = "the last batch of the epoch has a single sample, which batch normalisation can't train on"
    fix = "give DataLoader(drop_last=True), or a batch_size that does not leave one sample over"
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix)
