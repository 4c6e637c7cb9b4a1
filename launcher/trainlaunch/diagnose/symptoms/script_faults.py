"""The script's own exceptions, and what nothing explains."""

from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import (
    CERTAIN,
    LIKELY,
    POSSIBLE,
    Case,
    EvidenceLine,
    Symptom,
    Told,
    of_one_text,
    place_in_script,
    seen,
)
from trainlaunch.diagnose.base.log_patterns import LogPattern

_FILE_MISSING_SCRIPT = LogPattern(
    "o such file", r"can't open file '?(?P<path>[^']+?)'?: \[Errno 2\] No such file or directory"
)
_RAISED = LogPattern(
    "o such file", r"FileNotFoundError: .*No such file or directory(?:: (?P<quote>b?['\"])(?P<path>.+?)(?P=quote))?"
)


def _file_missing(case: Case) -> Told | None:
    """Match the interpreter's own text, and FileNotFoundError where it ended the script."""
    if case.exit_code == 0:
        return None
    script = case.first(_FILE_MISSING_SCRIPT)
    if script is not None:
        path = script.match["path"]
        return Told(
            f"python could not open the script {path}: no such file {_where(case)}",
            seen(script),
            _bring(
                case,
                f"check that one of mounts brings {path} to where it is expected, and working_dir for a relative path",
            ),
        )
    raised = case.raised
    if raised is None or raised.short_type != "FileNotFoundError":
        return None
    hit = next((each for each in case.hits(_RAISED) if each.traceback is raised), None)
    path = (hit.match["path"] if hit is not None else "") or ""
    if path.startswith("/") and "/" not in path[1:] and raised.has(r"shared_memory\.py|synchronize\.py"):
        return None
    named = f" {path}" if path else ""
    return Told(
        f"the job opens the file{named}{place_in_script(raised)}, which is not {_where(case)}",
        seen(case.raised_seen()),
        _bring(case, "check the path and that one of mounts brings it there; a relative path counts from working_dir"),
    )


def _bring(case: Case, by_mounts: str) -> str:
    """Return how a file comes to where it is looked for; a process of this host has no mounts."""
    if case.evidence.where.starts_container and case.evidence.by_run:
        return "check the path; the container has the folder that the command was started in, and what --mount names"
    if case.evidence.where.starts_container:
        return by_mounts
    return "check the path; a relative one counts from the folder that the command was started in"


def _where(case: Case) -> str:
    return "in the container" if case.evidence.where.starts_container else "on this host"


_PERMISSION_DENIED_SCRIPT = LogPattern("enied", r"can't open file '?(?P<path>[^']+?)'?: \[Errno 13\] Permission denied")
_PATH = LogPattern("rror: [Errno", r"\[Errno (?:1|13|30)\] [\w -]+: (?P<quote>b?['\"])(?P<path>.+?)(?P=quote)")
_CACHES = re.compile(
    r"^/\.|/\.cache\b|/\.(?:triton|nv|torch|config|local)\b|huggingface|torchinductor|matplotlib|triton"
)


def _permission_denied(case: Case) -> Told | None:
    """Match EACCES, EPERM and EROFS where they ended the script."""
    if case.exit_code == 0:
        return None
    script = case.first(_PERMISSION_DENIED_SCRIPT)
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
    return Told(sentence, seen(script or case.raised_seen()), fix)


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
        re.compile(r"KV cache is needed|Free memory on device|available memory for the cache blocks"),
        "the GPU has less free memory than the engine wants: end what else holds it (`nvidia-smi`), or lower "
        "max_model_len and gpu_memory_utilization, or share the model between more GPUs",
    ),
    (
        re.compile(r"CUBLAS_STATUS_NOT_INITIALIZED"),
        "most often the GPU's memory is full, or an index is out of range: look with `nvidia-smi`, and run once with "
        "env: {CUDA_LAUNCH_BLOCKING: '1'}",
    ),
    (
        re.compile(r"only supports Ampere"),
        "this GPU is older than what FlashAttention is written for: go without (attn_implementation='sdpa'), or use "
        "another GPU",
    ),
    (
        re.compile(r"\[Errno 98\]|(?i:address already in use)"),
        "another process has the port: end it (`ss -ltnp` shows who), or take another port",
    ),
    (
        re.compile(r"unhandled (?:system|cuda) error|report this issue to the NCCL developers"),
        "NCCL's own lines say more: run once with env: {NCCL_DEBUG: INFO}, and look for the first WARN of any rank",
    ),
    (
        re.compile(r"operator torchvision::nms does not exist"),
        "torchvision was built for another torch: install the two of one release (`pip install torch torchvision`)",
    ),
    (
        re.compile(r"placement group|No available node types"),
        "Ray has not as many free CPUs or GPUs as are asked for, or not on one node: `ray status` shows what it has and"
        " who holds it; ask for less, or start Ray with more (`ray start --num-gpus`)",
    ),
    (
        re.compile(r"an illegal memory access|device-side assert"),
        "run once with env: {CUDA_LAUNCH_BLOCKING: '1'}: the line is then the one that failed; an assert is most "
        "often an "
        "index (a label, a token) that is out of range",
    ),
)


def _python_exception(case: Case) -> Told | None:
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
    return Told(
        f"the script raised {raised.type}{place_in_script(raised)}{message}",
        seen(case.raised_seen()),
        fix,
        sure,
    )


_IGNORED = LogPattern(
    "xception ignored in",
    r"Exception ignored in: .*(?:__del__|_cleanup|_remove|tracker|shutdown|finali[sz]e)",
    beside=True,
)
_CHILD = LogPattern("Error: can only", r"AssertionError: can only (?:test|join) a child process", beside=True)


def _benign(case: Case) -> Told | None:
    """Match them where the job did not fail by a code of its own; anything else found counts more."""
    hit = case.first(_CHILD, _IGNORED)
    if hit is None or case.exit_code not in {None, 0}:
        return None
    return Told(
        "Python reported a failure while it threw an object away, and went on: nothing is wrong",
        seen(hit),
        "nothing; if the job died, its reason is something else",
        LIKELY,
    )


def _unknown(case: Case) -> Told | None:
    """Match a failure, by its code, that is asked about and that nothing else matches."""
    if not case.exit_code:
        return None
    last = next((each.strip() for each in reversed(case.facts.last) if each.strip()), "")
    shown = EvidenceLine("log", case.facts.lines, last) if last else None
    return Told(
        f"it ended with {case.exit_code}, and nothing in what is known names a cause",
        seen(shown, f"exit code {case.exit_code}"),
        'run again with env: {PYTHONUNBUFFERED: "1", PYTHONFAULTHANDLER: "1"} and look at the last lines; `--inspect` '
        "and `--exit-code` tell more where a log is all there is",
        POSSIBLE,
    )


_UID = LogPattern("ot found: ", r"'?getpwuid\(\): uid not found: \d+|no entry for uid \d+")
_NO_USERNAME = LogPattern("rror: No username set in the environment")

_user_without_name = of_one_text(
    "TL667",
    "user-without-name",
    (_UID, _NO_USERNAME),
    "the user that the container runs as has no name in the image",
    "set env: {USER: user, LOGNAME: user, HOME: /tmp, TORCHINDUCTOR_CACHE_DIR: /tmp/inductor}",
)


SYMPTOMS = (
    _user_without_name,
    Symptom("TL665", "file-missing", _file_missing),
    Symptom("TL666", "permission-denied", _permission_denied),
    Symptom("TL663", "python-exception", _python_exception),
    Symptom("TL668", "benign", _benign),
    Symptom("TL669", "unknown", _unknown),
)
