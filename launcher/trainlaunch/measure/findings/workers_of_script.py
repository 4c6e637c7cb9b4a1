"""What workers can't get, share, wait for, or don't see."""

from __future__ import annotations

from trainlaunch.diagnose.symptoms.loading import FIX
from trainlaunch.diagnostics import Severity
from trainlaunch.measure.finding import Facts, Wording, defect
from trainlaunch.rules.sources.scripts import CUDA_FIX, CUDA_WHY, HANDLE_FIX, HANDLE_WHY, PICKLE_FIX, PICKLE_WHY
from trainlaunch.units import counted

_NOUNS = {
    "file": "file",
    "lock": "lock",
    "CUDA": "piece of a GPU's memory",
    "socket": "socket",
    "image": "image of PIL",
}
_LIBRARY = (
    "a library keeps state of what it has open in its process, and forked copies of that state contradict each other"
)
_WHY = {
    "file": HANDLE_WHY,
    "image": "PIL reads the file when its pixels are asked for, and forked workers share the position in it",
    "CUDA": CUDA_WHY,
    "lock": "each worker has its own copy, which keeps no two of them apart; one held at the fork stays so for ever",
    "socket": "all workers write to one connection and read each other's answers",
}
_NAMED = 4


@defect("TL701")
def unpicklable(facts: Facts) -> Wording:
    """Facts: `part` of the loader, `path` in it, its `class`, `name` and `at`, num_workers and start_method."""
    part, path, method, workers = facts["part"], facts["path"], str(facts["start_method"]), int(facts["num_workers"])
    stops = workers > 0 and (part == "batch" or method != "fork")
    return Wording(
        f"{path} is {_what(facts)}, which can't be pickled",
        _fix(facts),
        why=_why(part, method, workers),
        severity=Severity.ERROR if stops else Severity.WARNING,
    )


def _what(facts: Facts) -> str:
    at = f" ({facts['at']})" if facts["at"] else ""
    if facts["class"] == "function":
        return ("a lambda" if str(facts["name"]).endswith("<lambda>") else f"the local function {facts['name']}") + at
    return f"of class {facts['class']}"


def _why(part: str, method: str, workers: int) -> str:
    if part == "batch":
        return "a worker sends batches as pickles; one that can't be pickled is lost, and the job waits for it for ever"
    if method == "fork" or not workers:
        return f"{PICKLE_WHY}; fork doesn't, but forkserver is the default of Python 3.14"
    return f"{PICKLE_WHY}; these start by {method}"


def _fix(facts: Facts) -> str:
    if facts["part"] == "batch":
        return "return tensors, arrays, numbers and text from __getitem__ and collate_fn"
    if facts["class"] == "function":
        return f'{PICKLE_FIX}, or set multiprocessing_context="fork"'
    return 'make it in the worker, when it reads its first sample, or set multiprocessing_context="fork"'


@defect("TL702")
def handle_in_init(facts: Facts) -> Wording:
    """Facts: `path`, `kind`, `file` behind it, whether it was `locked` at the fork, num_workers and start_method."""
    kind, workers, method = str(facts["kind"]), int(facts["num_workers"]), str(facts["start_method"])
    file = f" of {facts['file']}" if facts["file"] else ""
    if not workers:
        shared = "which workers would share"
    elif method == "fork":
        shared = f"shared with {counted(workers, 'forked worker')}"
    else:
        shared = f"which {method} can't pickle for {counted(workers, 'worker')}"
    harmless = not workers or (kind == "lock" and not facts["locked"] and method == "fork")
    return Wording(
        f"{facts['path']} is an open {_NOUNS.get(kind, kind + ' handle')}{file}, {shared}",
        CUDA_FIX if kind == "CUDA" else HANDLE_FIX,
        why=_WHY.get(kind, _LIBRARY),
        severity=Severity.WARNING if harmless else Severity.ERROR,
    )


@defect("TL703")
def threads_before_fork(facts: Facts) -> Wording:
    """Facts: `threads` with `name`, `at` and `package`, the first few of `count`; num_workers."""
    count, workers = int(facts["count"]), int(facts["num_workers"])
    names = [f"{each['name']} ({each['at'] or each['package']})" for each in facts["threads"][:_NAMED]]
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return Wording(
        f"the script forks {counted(workers, 'worker')} beside {counted(count, 'thread')}: {', '.join(names)}{more}",
        FIX,
        why="a lock that a thread holds at the fork stays held in the worker for ever: the thread isn't copied",
    )


@defect("TL707")
def worker_hang(facts: Facts) -> Wording:
    """Facts: seconds `waited`, the `worker` with its place `at` and `function`, `threads` alive at the fork."""
    waited, workers, batches = round(float(facts["waited"])), int(facts["num_workers"]), int(facts["batches"])
    at, threads = str(facts["at"]), ", ".join(str(each) for each in facts["threads"])
    who = f"{counted(workers, 'worker')} gave no batch for {waited} s, after {counted(batches, 'batch')}"
    stands = f"; worker {facts['worker']} stands at {at} in {facts['function']}" if at else ""
    forked = bool(threads) and facts["start_method"] == "fork"
    return Wording(
        who + stands,
        FIX if forked else f"look at what {at or 'a worker'} waits for; timeout=120 of DataLoader ends such a wait",
        why=f"a lock that {threads} had when the worker was forked is never released in it"
        if forked
        else "the script waits for a worker for ever, as timeout is 0 by default",
        severity=Severity.ERROR,
    )


@defect("TL712")
def worker_dependent_samples(facts: Facts) -> Wording:
    """Facts: `wrong` of `read` samples, the `index` of one, what was `raised`, shared `files`, the `workers` tried."""
    wrong, read, workers = (int(facts[each]) for each in ("wrong", "read", "workers"))
    files, raised = ", ".join(facts["files"]), "; ".join(facts["raised"])
    index = facts["index"]
    if wrong:
        message = (
            f"{wrong} of {read} samples that {counted(workers, 'worker')} read were wrong, index {index} among them"
        )
    elif raised:
        message = f"samples that one process reads fail in a worker: {raised}"
    else:
        message = f"{workers} workers share one position in {files}; {read} samples were right this time"
    return Wording(
        message,
        f"open {files or 'files and databases'} in the worker, when it reads its first sample, and not in __init__",
        why="forked workers share one position in each file that was open before: one seeks, another reads there",
        severity=Severity.ERROR if int(facts["num_workers"]) and (wrong or raised) else Severity.WARNING,
    )


@defect("TL725")
def stale_dataset(facts: Facts) -> Wording:
    """Facts: `path` of the attribute, its `first` value and the one `now`, the `method` that was tried."""
    path, method, workers = str(facts["path"]), str(facts["method"]), int(facts["num_workers"])
    keep = f"it stays {facts['first']} in {counted(workers, 'persistent worker')}"
    change = f"{method} changes {path}" if method else f"{path} has become {facts['now']}"
    attribute = path.rpartition(".")[2]
    return Wording(
        f"{change} in the script's process alone; {keep}",
        f"keep {attribute} in shared memory, as torch.zeros(1, dtype=torch.int64).share_memory_(), and fill_() it; "
        "or set persistent_workers=False",
        why="a worker gets its copy of the dataset when it starts, and a persistent one starts once",
    )
