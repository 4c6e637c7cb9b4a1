from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL608"
NAME = "tmpdir-unusable"
NONE_USABLE = LogPattern("rror", r"No usable temporary directory(?: name)? found")
TOO_LONG = LogPattern("rror: AF_UNIX path too long")
MANAGER = LogPattern("shm", r"could not generate a random directory for manager socket")


def diagnose(case: Case) -> Diagnosis | None:
    """Match the three texts."""
    hit = case.first(NONE_USABLE, TOO_LONG, MANAGER)
    if hit is None:
        return None
    hung = "; the run is hung and will not end by itself" if case.exit_code is None else ""
    mount = "add `{type: tmpfs, target: /tmp}` to mounts, or " if case.evidence.where.starts_container else ""
    return Diagnosis(
        CODE,
        NAME,
        f"the temporary directory can't hold the socket that workers pass tensors through{hung}",
        seen(hit),
        f"{mount}set env: {{TMPDIR: /tmp}}",
    )
