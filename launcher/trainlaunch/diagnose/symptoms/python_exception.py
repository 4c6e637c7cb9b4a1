from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import CERTAIN, LIKELY, Case, Diagnosis, place_in_script, seen

CODE = "TL663"
NAME = "python-exception"
# Exceptions of libraries that say what to type, by their message.
_KNOWN = (
    (
        re.compile(r"DefaultCPUAllocator: can't allocate|Unable to allocate [\d.]+ [KMGT]iB"),
        "it asked for more memory at once than there is: look at the shape and the type of what that line makes",
    ),
    (
        re.compile(r"Weights only load failed|weights_only"),
        "since torch 2.6 torch.load reads tensors alone: give it weights_only=False for a file that you trust, or "
        "allow its "
        "classes by torch.serialization.add_safe_globals",
    ),
    (
        re.compile(r"an illegal memory access|device-side assert"),
        "run once with env: {CUDA_LAUNCH_BLOCKING: '1'}: the line is then the one that failed; an assert is most "
        "often an "
        "index (a label, a token) that is out of range",
    ),
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match the traceback that ended the script, of whatever exception."""
    raised = case.raised
    if raised is None or case.exit_code == 0:
        return None
    frame = raised.user_frame
    message = f": {raised.message}" if raised.message else ""
    fix = f"correct what {frame.file} does in line {frame.line}" if frame else "read the traceback above that line"
    if frame is not None and frame.only_imports and frame is not raised.frames[-1]:
        fix = (
            f"that line only imports; what failed is {raised.frames[-1].file}: compare the versions of what "
            f"is installed"
        )
    elif frame is not None and frame.code:
        fix += f": `{frame.code}`"
    known = next((each for pattern, each in _KNOWN if pattern.search(raised.message)), "")
    fix = known or fix
    sure = CERTAIN if case.exit_code == 1 else LIKELY
    return Diagnosis(
        CODE,
        NAME,
        f"the script raised {raised.type}{place_in_script(raised)}{message}",
        seen(case.raised_seen()),
        fix,
        sure,
    )
