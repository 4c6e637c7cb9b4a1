from __future__ import annotations

from trainlaunch.diagnose.base.case import CERTAIN, LIKELY, Case, Diagnosis, place_in_script, seen

CODE = "TL663"
NAME = "python-exception"


def diagnose(case: Case) -> Diagnosis | None:
    """Match the traceback that ended the script, of whatever exception."""
    raised = case.raised
    if raised is None or case.exit_code == 0:
        return None
    frame = raised.user_frame
    message = f": {raised.message}" if raised.message else ""
    fix = f"correct what {frame.file} does in line {frame.line}" if frame else "read the traceback above that line"
    if frame is not None and frame.code:
        fix += f": `{frame.code}`"
    sure = CERTAIN if case.exit_code == 1 else LIKELY
    return Diagnosis(
        CODE,
        NAME,
        f"the script raised {raised.type}{place_in_script(raised)}{message}",
        seen(case.raised_seen()),
        fix,
        sure,
    )
