"""DataLoader workers: how they ended, and what they can not be given."""

from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import (
    CERTAIN,
    LIKELY,
    POSSIBLE,
    Case,
    Story,
    Symptom,
    Told,
    of_one_text,
    of_stories,
    place_in_script,
    seen,
)
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.symptoms.rank_faults import WATCHDOG
from trainlaunch.exit_codes import EXIT_SIGABRT, EXIT_SIGSEGV
from trainlaunch.units import counted

_WORKER_EXCEPTION_CAUGHT = LogPattern(
    "in DataLoader worker process", r"Caught (?P<type>[\w.]+) in DataLoader worker process (?P<worker>\d+)"
)
_RERAISE = r"_utils\.py.*in reraise|raise self\.exc_type"
_ARTEFACT = LogPattern(
    "Error: ", r"TypeError: .*missing \d+ required (?:positional|keyword-only) arguments?: (?P<names>.*)"
)
_HTTP = "'code', 'msg', 'hdrs', and 'fp'"


def _worker_exception(case: Case) -> Told | None:
    """Match torch's wrapper, and what is left of an exception that it can't build again."""
    artefact = case.first(_ARTEFACT, within=_RERAISE)
    if artefact is not None:
        lost = "an HTTPError of urllib, so a download failed" if _HTTP in artefact.text else "another exception"
        return Told(
            f"a DataLoader worker raised {lost}; the TypeError is only torch's failure to build that again",
            seen(artefact),
            "run once with data_loader.num_workers 0 to see it, or catch it in __getitem__ and raise RuntimeError",
            LIKELY,
        )
    hit = case.first(_WORKER_EXCEPTION_CAUGHT)
    if hit is None:
        return None
    raised = case.raised
    original = raised if raised is not None and raised.worker else None
    at = place_in_script(original) if original is not None else ""
    message = f": {original.message}" if original is not None and original.message else ""
    shown = seen(case.raised_seen() if original is not None else None, hit)
    return Told(
        f"the dataset raised {hit.match['type']} in DataLoader worker {hit.match['worker']}{at}{message}",
        shown,
        "correct what the original traceback names; it is not a matter of workers",
        CERTAIN,
    )


_WORKER_SEGFAULT_WORKER = LogPattern(
    "egmentation fault", r"segmentation fault encountered in worker|killed by signal: Segmentation fault"
)
_TRAP = LogPattern("illed", r"killed by signal: (?:Floating point exception|Illegal instruction|Trace)")
_WORKER_SEGFAULT_PROCESS = LogPattern("SIG", r"Signal 11 \(SIGSEGV\)|signal SIGSEGV|exitcode *: *-11\b")
_WORKER_SEGFAULT_TORCHRUN = LogPattern("exitcode", r"\bexitcode *[:=] *-11\b")
_DEEPSPEED = LogPattern("return code = -", r"exits with return code = -11\b")
_WORKER_SEGFAULT_PYTHON = LogPattern(
    "egmentation fault",
    r"Fatal Python error: Segmentation fault|^Segmentation fault(?: \(core dumped\))?\s*$|: line \d+: +\d+ Seg",
)


def _worker_segfault(case: Case) -> Told | None:
    """Match torch's, torchrun's and Python's texts, and exit code 139."""
    worker = case.first(_WORKER_SEGFAULT_WORKER, _TRAP)
    process = case.first(_WORKER_SEGFAULT_PROCESS, _WORKER_SEGFAULT_TORCHRUN, _DEEPSPEED, _WORKER_SEGFAULT_PYTHON)
    if worker:
        return Told(
            "a DataLoader worker crashed in native code, often a handle (LMDB, HDF5, cv2) opened before the fork",
            seen(worker),
            "open the handle inside the worker, at first use in __getitem__",
        )
    if process or case.exit_code == EXIT_SIGSEGV:
        shown = seen(process or "exit code 139, which is 128 + SIGSEGV")
        return Told(
            "the job crashed in native code",
            shown,
            'set env: {PYTHONFAULTHANDLER: "1"} and run again for a traceback',
        )
    return None


_WORKER_ABORTED_WORKER = LogPattern("killed by signal: Aborted")
_WORKER_ABORTED_PROCESS = LogPattern("SIG", r"Signal 6 \(SIGABRT\)|signal SIGABRT")
_WORKER_ABORTED_TORCHRUN = LogPattern("exitcode", r"\bexitcode *[:=] *-6\b")
_WORKER_ABORTED_PYTHON = LogPattern("Aborted", r"Fatal Python error: Aborted|^Aborted(?: \(core dumped\))?\s*$")
_WHAT = LogPattern("what():  ", r"what\(\):  (?P<what>.+)", beside=True)
_THREAD = LogPattern("xception: ", r"terminated with exception: (?P<what>.+)", beside=True)
_GPU = re.compile(r"CUDA error: (?:an illegal|device-side|misaligned|unspecified)")


def _worker_aborted(case: Case) -> Told | None:
    """Match torch's text, torchrun's and Python's."""
    hit = case.first(_WORKER_ABORTED_WORKER) or case.first(
        _WORKER_ABORTED_PROCESS, _WORKER_ABORTED_TORCHRUN, _WORKER_ABORTED_PYTHON
    )
    if hit is None and case.exit_code != EXIT_SIGABRT:
        return None
    if (hit is None or "worker" not in hit.text) and case.first(*WATCHDOG) is not None:
        return None  # NCCL's watchdog ends its own rank so
    who = "a DataLoader worker" if hit is not None and "worker" in hit.text else "a process of the job"
    said = case.hits(_WHAT, _THREAD)
    what = said[-1].match["what"].strip() if said else ""
    fix = (
        "look at the lines above it (terminate called, free(), an assertion), run once with env: "
        '{PYTHONFAULTHANDLER: "1"} and data_loader.num_workers 0; /dev/shm and memory are not it'
    )
    if _GPU.search(what):
        fix = (
            "run once with env: {CUDA_LAUNCH_BLOCKING: '1'}: the line that is then told is the one whose kernel failed"
        )
    return Told(
        f"{who} called abort(): native code gave up" + (f": {what}" if what else ""),
        seen(hit or "exit code 134, which is 128 + SIGABRT", said[-1] if said else None),
        fix,
    )


_EXITED = LogPattern("DataLoader worker", r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) exited unexpectedly")
_CODE = LogPattern("DataLoader worker", r"exited unexpectedly with exit code (\d+)")
_ITSELF = (
    "a DataLoader worker ended by itself, with no signal that torch saw; its own words, if any, stand above",
    "look above for the first traceback of a worker, and run once with data_loader.num_workers 0; with "
    "multiprocessing_context spawn or forkserver look for a missing `if __name__ == '__main__':`",
    LIKELY,
)
_worker_exited = of_stories("TL643", "worker-exited", (Story((_CODE,), *_ITSELF), Story((_EXITED,), *_ITSELF)))


_PIN_MEMORY_THREAD_EXITED = LogPattern("Pin memory thread", r"Pin memory thread exited unexpectedly")
_PIN_MEMORY_THREAD_CAUGHT = LogPattern("Caught ", r"Caught [\w.]+ in pin memory thread")

_NO_MEMORY = LogPattern("rror", r"CUDA error: out of memory|cudaHostAlloc|CUDA error: OS call failed")

_pin_memory_thread = of_stories(
    "TL645",
    "pin-memory-thread",
    (
        Story(
            (_NO_MEMORY,),
            "the host's memory could not be locked for a batch (pinned memory); the GPU's own memory is not it",
            "set pin_memory=False in the DataLoader, or lower batch_size or prefetch_factor; WSL lets little memory be "
            "locked: raise memory= in .wslconfig",
            LIKELY,
            within=r"pin_memory\.py|cudaHostAlloc",
        ),
        Story(
            (_PIN_MEMORY_THREAD_CAUGHT, _PIN_MEMORY_THREAD_EXITED),
            "the thread that pins batches died; what killed it stands above that line",
            "correct the exception above it; data_loader.pin_memory false shows whether pinning is the reason",
            LIKELY,
        ),
    ),
)


_TIMED_OUT = LogPattern("rror: DataLoader timed out", r"DataLoader timed out after \d+ seconds")
_THREADS = LogPattern("This process", r"is multi-threaded, use of fork\(\) may lead to deadlocks", beside=True)

_dataloader_timeout = of_stories(
    "TL647",
    "dataloader-timeout",
    (
        Story(
            (_TIMED_OUT,),
            "a DataLoader worker gave no batch within the job's own timeout: it is stuck, or its storage is slow",
            "look for the reason above that line, or at a worker with `py-spy dump --pid PID` before the timeout; "
            "where threads (Ray, gRPC, cv2) exist before the fork set data_loader.multiprocessing_context to "
            "forkserver",
            also=(_THREADS,),
        ),
    ),
)


_BARE = LogPattern("An attempt has been", r"An attempt has been made to start a new process before")

_main_guard = of_one_text(
    "TL651",
    "main-guard",
    (_BARE,),
    "the script has no main guard, so each worker started the whole script again",
    'put the script\'s own calls below `if __name__ == "__main__":`; with multiprocessing_context fork none is needed',
)


_CANT = LogPattern(
    "Error: ",
    r"(?:Error: )(?:Can't pickle|Can't get local object|cannot pickle|can't pickle|Can't get attribute '[^']+' on <)",
)
_TYPE = LogPattern("PicklingError")
_SAVES = r"torch/serialization\.py|torch\.save|pickle\.dump|joblib|cloudpickle"
_SENDS = r"multiprocessing/|popen_|DataLoader|_feed|ForkingPickler|reduction\.py|dataloader\.py|spawn"


def _unpicklable(case: Case) -> Told | None:
    """Match pickle's texts where processes are started or fed."""
    hit = case.first(_CANT, _TYPE, within=_SENDS) or case.first(_CANT, _TYPE)
    if hit is None or (hit.within(_SAVES) and not hit.within(_SENDS)):
        return None
    fed = hit.within(r"queues\.py.*_feed")
    hung = "; the batch is lost, and the run is hung" if fed and case.exit_code is None else ""
    return Told(
        f"something that is sent to or from a DataLoader worker can't be pickled{hung}",
        seen(hit),
        "define functions at the top of a module in the place of lambdas and local functions, and "
        "open files and handles "
        "in the worker; multiprocessing_context fork needs no pickle of the dataset",
    )


def in_feeder(case: Case) -> bool:
    """Whether a worker's feeder thread met it, which prints it, drops the batch, and goes on."""
    return case.first(_CANT, _TYPE, within=r"queues\.py.*\b_feed\b") is not None


_TORCH = LogPattern(
    "This DataLoader will create",
    r"will create (?P<workers>\d{1,9}) worker processes in total\. Our suggested .{0,99} system is (?P<cpus>\d{1,9})\b",
    beside=True,
)


def _oversubscription(case: Case) -> Told | None:
    """Match torch's warning."""
    hit = case.first(_TORCH)
    if hit is None or case.evidence.exit_code == 0:  # it ran as its author wanted: `tune` may even have chosen it
        return None
    workers, cpus = hit.match["workers"], hit.match["cpus"]
    sure = LIKELY if int(workers) >= 2 * int(cpus) else POSSIBLE
    return Told(
        f"{counted(workers, 'DataLoader worker')} on {counted(cpus, 'CPU')}",
        seen(hit),
        f"{case.evidence.workers.to_have(int(cpus))}, or give it more CPUs (resources.cpus)",
        sure,
    )


SYMPTOMS = (
    Symptom("TL644", "worker-exception", _worker_exception),
    Symptom("TL613", "worker-segfault", _worker_segfault),
    Symptom("TL642", "worker-aborted", _worker_aborted),
    _worker_exited,
    _pin_memory_thread,
    _dataloader_timeout,
    _main_guard,
    Symptom("TL650", "unpicklable", _unpicklable),
    Symptom("TL662", "oversubscription", _oversubscription),
)
