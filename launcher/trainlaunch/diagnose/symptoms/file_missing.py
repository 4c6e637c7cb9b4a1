from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, place_in_script, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL665"
NAME = "file-missing"
_SCRIPT = LogPattern("o such file", r"can't open file '?(?P<path>[^']+?)'?: \[Errno 2\] No such file or directory")
_RAISED = LogPattern(
    "o such file", r"FileNotFoundError: .*No such file or directory(?:: (?P<quote>b?['\"])(?P<path>.+?)(?P=quote))?"
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match the interpreter's own text, and FileNotFoundError where it ended the script."""
    if case.exit_code == 0:
        return None
    script = case.first(_SCRIPT)
    if script is not None:
        path = script.match["path"]
        return Diagnosis(
            CODE,
            NAME,
            f"python could not open the script {path}: no such file {_where(case)}",
            seen(script),
            f"check that one of mounts brings {path} to where it is expected, and working_dir for a relative path",
        )
    raised = case.raised
    if raised is None or raised.short_type != "FileNotFoundError":
        return None
    hit = next((each for each in case.hits(_RAISED) if each.traceback is raised), None)
    path = (hit.match["path"] if hit is not None else "") or ""
    if path.startswith("/") and "/" not in path[1:] and raised.has(r"shared_memory\.py|synchronize\.py"):
        return None
    named = f" {path}" if path else ""
    return Diagnosis(
        CODE,
        NAME,
        f"the job wants the file{named}, which is not {_where(case)}{place_in_script(raised)}",
        seen(case.raised_seen()),
        "check the path and that one of mounts brings it there; a relative path counts from working_dir",
    )


def _where(case: Case) -> str:
    return "in the container" if case.evidence.where.starts_container else "on this host"
