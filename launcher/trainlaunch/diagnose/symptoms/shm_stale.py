from __future__ import annotations

from trainlaunch.diagnose.base.bus_error import DF, bytes_of_df, sigbus
from trainlaunch.diagnose.base.case import LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL631"
NAME = "shm-stale"
MOSAIC = LogPattern("FileExistsError: [Errno 17]", r"File exists: '/(?:\d{6}_\w+|\w+_\d{6})'")
_EXISTS = LogPattern("FileExistsError: [Errno 17]", r"File exists: '/[^/']+'")
_LEAKED = LogPattern("leaked shared_memory", r"leaked shared_memory objects to clean up", beside=True)
_MAKES = r"shared_memory\.py|_posixshmem"
_LEFT = LogPattern("shm", r"(?:leftovers|left) .*in /dev/shm|files? of a dead (?:job|attempt)", beside=True)
_FILES = "remove what dead jobs left (`ls -l /dev/shm`, as root), then give shm_size in the place of ipc host"


def diagnose(case: Case) -> Diagnosis | None:
    """Match Mosaic's names, any name beside a report of leaks, and a full /dev/shm that is the host's."""
    hit = case.first(MOSAIC) or (case.first(_EXISTS, within=_MAKES) if case.first(_LEAKED) else None)
    if hit is not None:
        return Diagnosis(
            CODE,
            NAME,
            "a shared memory segment of an earlier run is still in /dev/shm, so this one can't make its own",
            seen(hit, case.first(_LEAKED)),
            "call streaming.base.util.clean_stale_shared_memory() once before the datasets are made, or give each run "
            "its own /dev/shm with shm_size",
        )
    full = case.first(DF)
    shared = case.evidence.ipc_mode == "host" or not case.evidence.private_shm
    died = sigbus(case)
    if full is None or not shared or died is None or bytes_of_df(full.match["free"]) > 1 << 20:
        return None
    return Diagnosis(
        CODE,
        NAME,
        "the host's /dev/shm, which this container uses (ipc host), is full of files that other runs left",
        seen(full, died.shown),
        _FILES,
        LIKELY,
    )
