"""Who of a running container waits, and for what, by its stack where one was seen, else by the kernel's word for it."""

from __future__ import annotations

from trainlaunch.diagnose.base.live_facts import Look, Process

IDLE = 0.05  # of one CPU: what a process that only waits may use
LONG = 10.0  # seconds without a step in one sample; ordinary reading and decoding take less
_FORK = "multiprocessing/popen_fork.py"
_READS_A_PIPE = ("poll", "epoll", "ep_", "pipe_", "unix_stream", "select")


def waits_for_batch(look: Look, main: Process) -> bool:
    """Whether a process waits for its workers; without its stack, whether it, and each GPU, does nothing."""
    if not look.workers_of(main):
        return False
    if main.stack:
        return main.waits_for_batch
    return main.cpu is not None and main.cpu < IDLE and all(each.busy < 100 * IDLE for each in look.gpus)


def waiting_mains(look: Look) -> tuple[Process, ...]:
    """Return the processes that wait for their workers."""
    return tuple(each for each in look.mains if waits_for_batch(look, each))


def is_idle(worker: Process) -> bool:
    """Whether a worker waits for work; without its stack, whether it reads a pipe."""
    if worker.stack:
        return worker.waits_for_work
    return worker.state == "S" and worker.kernel.removeprefix("do_").removeprefix("sys_").startswith(_READS_A_PIPE)


def is_in_lock(process: Process) -> bool:
    """Whether its main thread has waited for a lock, and for nothing else, longer than any work in it takes."""
    return process.state == "S" and "futex" in process.kernel and slept(process) >= LONG / 2


def was_forked(process: Process) -> bool:
    """Whether its stack shows that it is a copy of the process that started it; True where nobody saw one."""
    return not process.stack or any(each.file.endswith(_FORK) for each in process.stack)


def slept(process: Process) -> float:
    """Return for how many seconds it has not run at all, 0 where nobody knows."""
    return process.asleep or 0.0


def place(process: Process) -> str:
    """Return where it stands: in the user's own code where its stack shows that, else in the kernel."""
    frame = process.script_frame
    if frame is not None:
        where = f"in `{frame.name}` at" if not frame.name.startswith("<") else "at"
        return f"{where} {frame.file}:{frame.line}"
    return f"in the kernel's {process.kernel}" if process.kernel else "somewhere that nobody could see"


def duration(process: Process) -> str:
    """Return for how long it has not run, as the end of a sentence; empty where that is not known, or short."""
    seconds = int(slept(process))
    if seconds < 2:
        return ""
    return f" for {seconds} s" if seconds < 300 else f" for {seconds // 60} min"
