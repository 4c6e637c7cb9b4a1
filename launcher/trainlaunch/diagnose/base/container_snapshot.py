"""What one look at a running container found, and who of it waits, and for what.

Facts only; None and empty mean that nobody could see it. Who waits is told by a stack where one was seen, else by the
kernel's word for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from trainlaunch.diagnose.base.log_facts import Frame

WORKER = "pt_data_worker"  # torch names its worker processes so, under fork and spawn
_WORKER_LOOP = "_worker_loop"
_LOADER = "torch/utils/data/dataloader.py"
IDLE = 0.05  # of one CPU: what a process that only waits may use
LONG = 10.0  # seconds without a step in one sample; ordinary reading and decoding take less
_FORK = "multiprocessing/popen_fork.py"
_READS_A_PIPE = ("poll", "epoll", "ep_", "pipe_", "unix_stream", "select")


class ShmUsage(NamedTuple):
    """Bytes of /dev/shm by what they are: `kind` is how they are named, `pids` are the processes that have them."""

    kind: str
    size: int
    pids: tuple[int, ...] = ()


class Shm(NamedTuple):
    """/dev/shm in bytes; size 0 has no limit, and then `used` is unknown. `held` is the largest first."""

    size: int
    used: int
    held: tuple[ShmUsage, ...] = ()


class Memory(NamedTuple):
    """A cgroup's memory in bytes: what processes have, what is in /dev/shm, what files could give back."""

    limit: int | None
    used: int | None
    anon: int | None
    shmem: int | None
    file: int | None


class Gpu(NamedTuple):
    """One GPU: how busy it was in percent, and its memory in bytes."""

    number: str
    busy: float
    used: int
    total: int


@dataclass(frozen=True)
class Process:
    """One process. `cpu` is its share of one CPU during the look, `asleep` seconds since its main thread last ran.

    `starved` is the share of the look in which its main thread could have run and got no CPU.

    `state` is the kernel's letter, `kernel` the function or the system call in which its main thread waits. `stack` is
    its main thread's, innermost first. `rank` and `local_world` are what a launcher gave it.
    """

    pid: int
    parent: int
    name: str
    state: str
    threads: int = 1
    cpu: float | None = None
    asleep: float | None = None
    starved: float | None = None
    kernel: str = ""
    open_files: int | None = None
    most_files: int | None = None
    rank: int | None = None
    local_rank: int | None = None
    local_world: int | None = None
    cpus: int | None = None
    stack: tuple[Frame, ...] = ()

    @property
    def dead(self) -> bool:
        """Whether it has ended and nobody has asked for its exit code."""
        return self.state in {"Z", "X"}

    @cached_property
    def is_worker(self) -> bool:
        """Whether it is a DataLoader worker."""
        return self.name == WORKER or any(each.name == _WORKER_LOOP for each in self.stack) or self.is_in_fork

    @cached_property
    def is_in_fork(self) -> bool:
        """Whether it is a worker that never came out of fork, where its parent stands for a moment only."""
        loads = any(each.file.endswith(_LOADER) for each in self.stack)
        return loads and self.stack[0].file.endswith(_FORK) and is_in_lock(self)

    @cached_property
    def script_frame(self) -> Frame | None:
        """The innermost frame of the user's own code; None where it is not in it, or nobody saw its stack.

        Below a worker's loop stand the frames of who forked it: they are not where it is.
        """
        if self.is_in_fork:
            return None
        names = [each.name for each in self.stack]
        own = self.stack[: names.index(_WORKER_LOOP)] if _WORKER_LOOP in names else self.stack
        return next((each for each in own if not each.is_library), None)

    @cached_property
    def waits_for_batch(self) -> bool:
        """Whether its stack stands in the DataLoader, waiting for what a worker gives."""
        waits = {"_try_get_data", "_get_data"}
        return any(each.file.endswith(_LOADER) and each.name in waits for each in self.stack)

    @cached_property
    def collective(self) -> str:
        """The call of torch.distributed in which it stands, as `all_reduce`; empty outside of one."""
        inside = [each for each in self.stack if "torch/distributed/" in each.file]
        inside = [each for each in inside if not each.name.startswith(("_", "wrapper", "<"))]
        launcher = any("distributed/elastic/" in each.file or "distributed/run.py" in each.file for each in inside)
        return inside[-1].name if inside and not launcher else ""

    @cached_property
    def waits_for_work(self) -> bool:
        """Whether it is a worker that has nothing to do: it reads from the queue of indices."""
        names = {each.name for each in self.stack}
        return bool(self.stack) and _WORKER_LOOP in names and "fetch" not in names and self.script_frame is None


@dataclass(frozen=True)
class ContainerSnapshot:
    """One container. `throttled` is in how many of how many periods of the look its CPU quota was used up.

    `quota` counts CPUs, None without a limit. `stacks` says why there are none, empty where there are.
    """

    seconds: float
    processes: tuple[Process, ...] = ()
    shm: Shm | None = None
    memory: Memory | None = None
    quota: float | None = None
    throttled: tuple[int, int] | None = None
    gpus: tuple[Gpu, ...] = ()
    pids: tuple[int, int | None] | None = None
    stacks: str = ""

    @cached_property
    def workers(self) -> tuple[Process, ...]:
        """The DataLoader workers, in the order in which they were started."""
        return tuple(sorted((each for each in self.processes if each.is_worker), key=lambda each: each.pid))

    @cached_property
    def mains(self) -> tuple[Process, ...]:
        """The processes that train: those that have workers, and those that a launcher gave a rank."""
        parents = {each.parent for each in self.workers}
        found = [each for each in self.processes if not each.is_worker and not each.dead]
        own = [each for each in found if each.pid in parents]
        ranks = [each for each in found if each.rank is not None and _topmost(each, found)]
        known = {each.pid: each for each in (*own, *ranks)}
        alone = [each for each in found if each.stack and each.script_frame is not None] if not known else []
        return tuple(sorted((*known.values(), *alone), key=lambda each: each.pid))

    def number(self, worker: Process) -> int:
        """Return which worker of its process it is, from 0, as torch numbers them."""
        siblings = [each.pid for each in self.workers if each.parent == worker.parent]
        return siblings.index(worker.pid)

    def workers_of(self, main: Process) -> tuple[Process, ...]:
        """Return the workers of one process."""
        return tuple(each for each in self.workers if each.parent == main.pid)

    @property
    def cpus(self) -> float | None:
        """How many CPUs its processes may use; None where nobody could see it."""
        allowed = next((each.cpus for each in self.processes if each.cpus), None)
        limits = [each for each in (self.quota, allowed) if each]
        return min(limits) if limits else None


def _topmost(process: Process, found: list[Process]) -> bool:
    """Whether its parent has not the same rank: what a rank starts inherits its variables."""
    parent = next((each for each in found if each.pid == process.parent), None)
    return parent is None or parent.rank != process.rank


def waits_for_batch(look: ContainerSnapshot, main: Process) -> bool:
    """Whether a process waits for its workers; without its stack, whether it, and each GPU, does nothing."""
    if not look.workers_of(main):
        return False
    if main.stack:
        return main.waits_for_batch
    return main.cpu is not None and main.cpu < IDLE and all(each.busy < 100 * IDLE for each in look.gpus)


def waiting_mains(look: ContainerSnapshot) -> tuple[Process, ...]:
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
    if process.is_in_fork:
        return "in `fork`"
    return f"in the kernel's {process.kernel}" if process.kernel else "somewhere that nobody could see"


def duration(process: Process) -> str:
    """Return for how long it has not run, as the end of a sentence; empty where that is not known, or short."""
    seconds = int(slept(process))
    if seconds < 2:
        return ""
    return f" for {seconds} s" if seconds < 300 else f" for {seconds // 60} min"
