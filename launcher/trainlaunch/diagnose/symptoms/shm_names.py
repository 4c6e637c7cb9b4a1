"""Segments and semaphores of /dev/shm that are missing, stale, forbidden or gone."""

from __future__ import annotations

from trainlaunch.diagnose.base.bus_error import DF, bytes_of_df, sigbus
from trainlaunch.diagnose.base.case import LIKELY, Case, Story, Symptom, Told, of_one_text, of_stories, seen
from trainlaunch.diagnose.base.log_facts import Hit
from trainlaunch.diagnose.base.log_patterns import LogPattern

_SHM_MISSING_ENOENT = LogPattern(
    "rror: [Errno", r"(?:FileNotFoundError: \[Errno 2\] No such file or directory$|OSError: \[Errno 38\])"
)
TORCH = LogPattern("nable to open shared memory object", r"unable to open shared memory object <[^<>]*>.*\(2\)")
_TORCH_MAKES = r"_share_f(?:d|ilename)_cpu_|_new_using_f(?:d|ilename)_cpu"
_SHM_MISSING_MAKES = r"SemLock\(|_posixshmem\.shm_open|synchronize\.py.*__init__"
_SHM_MISSING_PATH = LogPattern(
    "/dev/shm", r"/dev/shm['\"/:]? *: No such file or directory|No such file or directory: '/dev/shm['/]"
)


def torch_makes(case: Case, hit: Hit) -> bool:
    """Whether torch was to make the segment that it names, so that /dev/shm is missing; else one was only opened."""
    return hit.within(_TORCH_MAKES) or case.evidence.ipc_mode == "none"


def _shm_missing(case: Case) -> Told | None:
    """Match ENOENT where a semaphore or segment is made; where one is only opened again, it was removed."""
    hit = next(
        (each for each in case.hits(_SHM_MISSING_ENOENT, within=_SHM_MISSING_MAKES) if not each.within("_rebuild")),
        None,
    )
    hit = (
        hit
        or case.first(_SHM_MISSING_PATH)
        or next((each for each in case.hits(TORCH) if torch_makes(case, each)), None)
    )
    if hit is None:
        return None
    if case.evidence.ipc_mode == "none":
        return Told(
            "the container has no /dev/shm: its ipc is none",
            seen(hit),
            "delete ipc none, and give shm_size",
        )
    return Told(
        "a semaphore or segment could not be made: there is no /dev/shm, or this user may not enter it",
        seen(hit),
        "look with `ls -ld /dev/shm` inside; without one give shm_size and no ipc none, else mount it with mode 1777",
        LIKELY,
    )


_SHM_UNLINKED_ENOENT = LogPattern("FileNotFoundError: [Errno 2]")
_OPENS = r"synchronize\.py.*_rebuild|SemLock\._rebuild"
_NAMED = LogPattern(
    "FileNotFoundError: [Errno 2]", r"No such file or directory: '/(?:psm_|wnsm_|mp-|sem\.|\d{6}_)[^/']*'"
)
_SHM_UNLINKED_TORCH = LogPattern("rror: ", r"could not unlink the shared memory file <?/?torch_")
_UNLINKED = (
    "a semaphore or segment was removed from /dev/shm while the job still used it",
    "ask whether the session that started the job was closed (`loginctl enable-linger USER` keeps its IPC), and let "
    "the parent live until its children have started; multiprocessing_context fork needs no names",
    LIKELY,
)

# Match ENOENT where a name is opened again.
_shm_unlinked = of_stories(
    "TL633",
    "shm-unlinked",
    (
        Story((_SHM_UNLINKED_ENOENT,), *_UNLINKED, within=_OPENS),
        Story((_NAMED, _SHM_UNLINKED_TORCH), *_UNLINKED),
    ),
)


_SHM_NAME_COLLISION_EXISTS = LogPattern("FileExistsError: [Errno 17]", r"File exists: '/[^/']+'")
_SHM_NAME_COLLISION_TORCH = LogPattern("nable to open shared memory object", r"shared memory object <[^<>]*>.*\(17\)")
_REUSED = LogPattern(
    "rror: Reused local directory", r"rror: Reused local directory: \[.*\] vs "
)  # else a list names one twice
_SHM_NAME_COLLISION_MAKES = r"shared_memory\.py|_posixshmem|SemLock"
_COLLISION = (
    "another process that shares this /dev/shm already has a segment of that name, or left one",
    "give each run its own /dev/shm with shm_size, without ipc host; or leave the name to Python (name=None)",
    LIKELY,
)

# Match EEXIST for a name of one part, as segments have it: a file's path has several.
_shm_name_collision = of_stories(
    "TL632",
    "shm-name-collision",
    (
        Story((_SHM_NAME_COLLISION_EXISTS,), *_COLLISION, within=_SHM_NAME_COLLISION_MAKES),
        Story((_SHM_NAME_COLLISION_EXISTS,), *_COLLISION),
        Story((_SHM_NAME_COLLISION_TORCH,), *_COLLISION),
        Story(
            (_REUSED,),
            "streaming keeps the local directories of its datasets in /dev/shm, and one there already has this job's: "
            "another dataset of the script, a run that shares this /dev/shm, or one that died",
            "give each dataset a local directory of its own; after a run that died call "
            "streaming.base.util.clean_stale_shared_memory() once before the datasets are made",
            LIKELY,
        ),
    ),
)


MOSAIC = LogPattern("FileExistsError: [Errno 17]", r"File exists: '/(?:\d{6}_\w+|\w+_\d{6})'")
_SHM_STALE_EXISTS = LogPattern("FileExistsError: [Errno 17]", r"File exists: '/[^/']+'")
_LEAKED = LogPattern("There appear to be", r"leaked shared_memory objects to clean up", beside=True)
_SHM_STALE_MAKES = r"shared_memory\.py|_posixshmem"
_LEFT = LogPattern("shm", r"(?:leftovers|left) .*in /dev/shm|files? of a dead (?:job|attempt)", beside=True)
_FILES = "remove what dead jobs left (`ls -l /dev/shm`, as root), then give shm_size in the place of ipc host"


def _shm_stale(case: Case) -> Told | None:
    """Match Mosaic's names, any name beside a report of leaks, and a full /dev/shm that is the host's."""
    hit = case.first(MOSAIC) or (
        case.first(_SHM_STALE_EXISTS, within=_SHM_STALE_MAKES) if case.first(_LEAKED) else None
    )
    if hit is not None:
        return Told(
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
    return Told(
        "the host's /dev/shm, which this container uses (ipc host), is full of files that other runs left",
        seen(full, died.shown),
        _FILES,
        LIKELY,
    )


_DENIED = LogPattern("rror: [Errno", r"(?:PermissionError: \[Errno 13\]|OSError: \[Errno 30\])")
_SHM_UNWRITABLE_MAKES = r"SemLock|_posixshmem|shared_memory\.py|synchronize\.py"
_SHM_UNWRITABLE_TORCH = LogPattern(
    "nable to open shared memory object", r"shared memory object <[^<>]*>.*\((?:13|30)\)"
)
_SHM_UNWRITABLE_PATH = LogPattern(
    "/dev/shm",
    r"(?:Permission denied|Read-only file system).*/dev/shm\b"
    r"|/dev/shm\S{0,255}: (?:Permission denied|Read-)|/dev/shm.* .*error: (?:Permission denied|Read-)",
)


def _shm_unwritable(case: Case) -> Told | None:
    """Match EACCES and EROFS where a semaphore or a segment is made."""
    hit = case.first(_DENIED, within=_SHM_UNWRITABLE_MAKES) or case.first(_SHM_UNWRITABLE_TORCH, _SHM_UNWRITABLE_PATH)
    if hit is None:
        return None
    what = (
        "is read-only"
        if "30" in hit.text or "Read-only" in hit.text
        else "belongs to another user, or a file in it does"
    )
    return Told(
        f"this user can't write to /dev/shm: it {what}",
        seen(hit),
        "let it be a tmpfs with mode 1777: shm_size makes one, a volume or a bind mounted over /dev/shm does not",
    )


_MANAGER = LogPattern(
    "rror", r"Shared memory manager connection has timed out|[Ss]hared memory manager.*(?:died|closed)"
)
_PROCESS = LogPattern(
    "shm", r"error executing torch_shm_manager|torch_shm_manager.*(?:no response|Permission denied|no such file)"
)


def _shm_manager(case: Case) -> Told | None:
    """Match ENOENT of a name of torch's that another process made, and the manager's texts."""
    opened = next((each for each in case.hits(TORCH) if not torch_makes(case, each)), None)
    hit = opened or case.first(_MANAGER, _PROCESS)
    if hit is None:
        return None
    return Told(
        "sharing by file_system failed: a segment, or the manager that keeps them, was gone; /dev/shm is not full",
        seen(hit),
        "use data_loader.sharing_strategy file_descriptor, with a higher limit of open files (`ulimit -n`); keep fewer "
        "batches, and don't give more workers than CPUs",
    )


_ATTACH = LogPattern(
    "shm", r"(?i)error while attaching to shared memory segment /dev/shm/nccl-|attach.*/dev/shm/nccl-.*size 0\b"
)
_OPEN = LogPattern("/dev/shm/nccl-", r"/dev/shm/nccl-.*No such file or directory")
_PEER = LogPattern("NCCL", r"peer mapping resources exhausted|Cuda failure.*invalid resource handle.*shm")

# Match the lines of attaching to a segment; its size is no matter.
_nccl_attach = of_one_text(
    "TL635",
    "nccl-attach",
    (_ATTACH, _OPEN, _PEER),
    "NCCL could not open another rank's segment: the two ranks don't share one /dev/shm, or the other has died",
    "look for an earlier error of another rank; where ranks of one host run in several containers, put them into "
    'one, or set env: {NCCL_SHM_DISABLE: "1"}; a larger /dev/shm does not help',
    LIKELY,
)


SYMPTOMS = (
    Symptom("TL628", "shm-missing", _shm_missing),
    _shm_unlinked,
    _shm_name_collision,
    Symptom("TL631", "shm-stale", _shm_stale),
    Symptom("TL629", "shm-unwritable", _shm_unwritable),
    Symptom("TL646", "shm-manager", _shm_manager),
    _nccl_attach,
)
