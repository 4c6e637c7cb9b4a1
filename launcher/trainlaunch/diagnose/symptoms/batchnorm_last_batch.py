from __future__ import annotations

from trainlaunch.diagnose.base.case import of_one_text
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL652"
NAME = "batchnorm-last-batch"
_ONE = LogPattern("rror: Expected more than 1", r"Expected more than 1 value per channel when training")

diagnose = of_one_text(
    CODE,
    NAME,
    (_ONE,),
    "the last batch of the epoch has a single sample, which batch normalisation can't train on",
    "give DataLoader(drop_last=True), or a batch_size that does not leave one sample over",
)
