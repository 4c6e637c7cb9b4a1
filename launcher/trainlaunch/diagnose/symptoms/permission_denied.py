from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import Case, Diagnosis, place_in_script, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL666"
NAME = "permission-denied"
_SCRIPT = LogPattern("enied", r"can't open file '?(?P<path>[^']+?)'?: \[Errno 13\] Permission denied")
_PATH = LogPattern("rror: [Errno", r"\[Errno (?:1|13|30)\] [\w -]+: (?P<quote>b?['\"])(?P<path>.+?)(?P=quote)")
_CACHES = re.compile(
    r"^/\.|/\.cache\b|/\.(?:triton|nv|torch|config|local)\b|huggingface|torchinductor|matplotlib|triton"
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match EACCES, EPERM and EROFS where they ended the script."""
    if case.exit_code == 0:
        return None
    script = case.first(_SCRIPT)
    raised = case.raised
    denied = raised is not None and (
        raised.short_type == "PermissionError" or (raised.short_type == "OSError" and "[Errno 30]" in raised.message)
    )
    if script is None and not denied:
        return None
    found = script or next((each for each in case.hits(_PATH) if each.traceback is raised), None)
    path = found.match["path"] if found is not None else "a file"
    at = place_in_script(raised) if raised is not None and script is None else ""
    if "[Errno 30]" in (raised.message if raised is not None and script is None else ""):
        sentence = f"{path} is on a read-only file system{at}"
        fix = "mount it without read_only, or write below another mount; read_only: true leaves /tmp writable"
    else:
        sentence = f"the job's user has no permission for {path}{at}"
        fix = f"compare `id` inside with `ls -ln {path}`: set user to its owner, or change owner or mode on the host"
        if _CACHES.search(path):
            sentence = (
                f"the job's user may not write to the cache {path}{at}: it is of another user, or the user has no home"
            )
            fix = (
                "give the caches a folder that this user may write: set env: {HOME: /tmp, XDG_CACHE_HOME: /tmp/cache, "
                "HF_HOME: /tmp/hf, TORCH_HOME: /tmp/torch, TRITON_CACHE_DIR: /tmp/triton, MPLCONFIGDIR: /tmp/mpl}, or "
                "a mount"
            )
    return Diagnosis(CODE, NAME, sentence, seen(script or case.raised_seen()), fix)
