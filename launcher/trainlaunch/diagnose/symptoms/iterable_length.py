from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, of_one_text
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL653"
NAME = "iterable-length"
_LENGTH = LogPattern("Length of IterableDataset", r"Length of IterableDataset .* was reported to be \d+", beside=True)
_NO_LEN = LogPattern(
    "rror: object of type", r"TypeError: object of type '\w*(?:Iterable|Stream|Web)\w*' has no len\(\)"
)

diagnose = of_one_text(
    CODE,
    NAME,
    (_LENGTH, _NO_LEN),
    "the IterableDataset gives more samples than it says: each worker most likely yields all of them",
    "share the samples out in __iter__ by torch.utils.data.get_worker_info(), and let __len__ say what one pass gives",
    LIKELY,
)
