from __future__ import annotations

from trainlaunch.diagnose.base.case import CERTAIN, LIKELY, Case, Diagnosis, place_in_script, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL644"
NAME = "worker-exception"
_CAUGHT = LogPattern(
    "in DataLoader worker process", r"Caught (?P<type>[\w.]+) in DataLoader worker process (?P<worker>\d+)"
)
_RERAISE = r"_utils\.py.*in reraise|raise self\.exc_type"
_ARTEFACT = LogPattern(
    "Error: ", r"TypeError: .*missing \d+ required (?:positional|keyword-only) arguments?: (?P<names>.*)"
)
_HTTP = "'code', 'msg', 'hdrs', and 'fp'"


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's wrapper, and what is left of an exception that it can't build again."""
    artefact = case.first(_ARTEFACT, within=_RERAISE)
    if artefact is not None:
        lost = "an HTTPError of urllib, so a download failed" if _HTTP in artefact.text else "another exception"
        return Diagnosis(
            CODE,
            NAME,
            f"a DataLoader worker raised {lost}; the TypeError is only torch's failure to build that again",
            seen(artefact),
            "run once with data_loader.num_workers 0 to see it, or catch it in __getitem__ and raise RuntimeError",
            LIKELY,
        )
    hit = case.first(_CAUGHT)
    if hit is None:
        return None
    raised = case.raised
    original = raised if raised is not None and raised.worker else None
    at = place_in_script(original) if original is not None else ""
    message = f": {original.message}" if original is not None and original.message else ""
    shown = seen(case.raised_seen() if original is not None else None, hit)
    return Diagnosis(
        CODE,
        NAME,
        f"the dataset raised {hit.match['type']} in DataLoader worker {hit.match['worker']}{at}{message}",
        shown,
        "correct what the original traceback names; it is not a matter of workers",
        CERTAIN,
    )
