from __future__ import annotations

from trainlaunch.diagnose.base.case import CERTAIN, Case, Diagnosis, place_in_script, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL664"
NAME = "module-missing"
_LIBRARY = LogPattern("rror: lib", r"ImportError: (?P<library>lib[\w.+-]+): cannot open shared object file")
_OSERROR = LogPattern("rror: lib", r"OSError: (?P<library>lib[\w.+-]+): cannot open shared object file")
_MODULE = LogPattern(
    "o module named",
    r"(?:ModuleNotFoundError|ImportError): No module named '?(?P<module>[\w.]+)(?![\w.]|'?,)"
    r"|: No module named (?P<bare>[\w.]+)$",
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match imports that ended the script: many are tried and caught."""
    hits = case.hits(_MODULE, _LIBRARY, _OSERROR)
    raised = case.raised
    decided = [each for each in hits if each.traceback is None or each.traceback is raised or _same(case, each.text)]
    if not decided or case.exit_code == 0:
        return None
    hit = decided[0]
    found = hit.match.groupdict()
    what = found.get("library") or found.get("module") or found.get("bare")
    image = f"the image {case.evidence.image}" if case.evidence.image else "the image"
    place = image if case.evidence.where.starts_container else "this host's Python"
    at = place_in_script(raised) if raised is not None else ""
    return Diagnosis(
        CODE,
        NAME,
        f"{place} has no {'library' if 'library' in found else 'module'} {what}, which the job needs{at}",
        seen(hit),
        f"install it in {place}; if {what} is the job's own code, check mounts and working_dir, and set env: "
        "{PYTHONPATH: …} to the folder that holds it",
        CERTAIN,
    )


def _same(case: Case, text: str) -> bool:
    """Whether the exception that ended the script repeats this one."""
    return case.raised is not None and case.raised.message != "" and case.raised.message in text
