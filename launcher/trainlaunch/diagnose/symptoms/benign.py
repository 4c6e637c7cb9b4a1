from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL668"
NAME = "benign"
_IGNORED = LogPattern(
    "xception ignored in",
    r"Exception ignored in: .*(?:__del__|_cleanup|_remove|tracker|shutdown|finali[sz]e)",
    beside=True,
)
_CHILD = LogPattern("Error: can only", r"AssertionError: can only (?:test|join) a child process", beside=True)


def diagnose(case: Case) -> Diagnosis | None:
    """Match them where the job did not fail by a code of its own; anything else found counts more."""
    hit = case.first(_CHILD, _IGNORED)
    if hit is None or case.exit_code not in {None, 0}:
        return None
    return Diagnosis(
        CODE,
        NAME,
        "Python reported a failure while it threw an object away, and went on: nothing is wrong",
        seen(hit),
        "nothing; if the job died, its reason is something else",
        LIKELY,
    )
