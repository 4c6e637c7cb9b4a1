"""Workers and threads against the CPUs that a container has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainlaunch.diagnostics import Severity
from trainlaunch.formats.workload import Known, stated
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import container_rule
from trainlaunch.rules.sources.container_facts import command_span, env_of, has_gpu, is_fragment
from trainlaunch.rules.sources.purpose import ranks_of, trains, workers_of
from trainlaunch.rules.sources.source_text import KUBERNETES, PRACTICE, SourceContainer, at
from trainlaunch.rules.sources.training_commands import program_of, shell_text, stated_ranks
from trainlaunch.units import counted

_NPROC = re.compile(r"(?:^|[\s;&|(`'\"/])nproc(?! +--all)(?=$|[\s;&|)`'\"])")
_SETS_THREADS = re.compile(r"\bOMP_NUM_THREADS=(\d{1,4})\b")
_THREADS = frozenset({"OMP_NUM_THREADS", "MKL_NUM_THREADS"})


def _limit_millis(container: SourceContainer) -> int | None:
    """Return the limit of CPUs in thousandths; None without one, as where a pod has a request alone."""
    if container.workload.format == KUBERNETES and at(container.own, "resources", "limits", "cpu") is None:
        return None
    return stated(container.workload.cpus) or None


@container_rule("TL354", Severity.INFO, group=PRACTICE, kinds=(KUBERNETES,))
def cpu_request_missing(container: SourceContainer) -> Iterator[Problem]:
    """A pod sets workers and no CPUs."""
    workers = workers_of(container)
    if workers and container.workload.cpus is None and not is_fragment(container):
        yield Problem(
            f"{counted(workers, 'DataLoader worker')} without a request or a limit of CPUs",
            f"set resources.requests.cpu to {workers}",
            "a pod without a request gets what others leave of a busy node",
        )


@container_rule("TL206", Severity.WARNING)
def workers_exceed_cpus(container: SourceContainer) -> Iterator[Problem]:
    """The workers that a command sets, over all ranks, outnumber the CPU limit."""
    cpus, workers, millis = container.workload.cpus, workers_of(container), _limit_millis(container)
    ranks = ranks_of(container)
    if workers is not None and millis is not None and workers * ranks * 1000 > millis and workers * ranks > 1:
        several = f" ({counted(ranks, 'rank')})" if ranks > 1 else ""
        yield Problem(
            f"{counted(workers * ranks, 'DataLoader worker')}{several} for a CPU limit of {millis / 1000:g}",
            f"set {counted(max(1, millis // 1000 // ranks), 'worker')} at most, or raise the limit",
            "workers beyond the CPUs only take turns, and each costs memory",
            span=cpus.span if cpus is not None else None,
        )


@container_rule("TL355", Severity.WARNING)
def threads_exceed_cpus(container: SourceContainer) -> Iterator[Problem]:
    """The ranks' threads outnumber the CPU limit."""
    value, millis = container.workload.env.get("OMP_NUM_THREADS"), _limit_millis(container)
    if not isinstance(value, Known) or not millis or not re.fullmatch(r"[1-9][0-9]{0,3}", value.value):
        return
    ranks = stated_ranks(container.argvs) or 1
    threads = int(value.value) * ranks
    if threads * 1000 > millis and int(value.value) != 1:
        several = f" in each of {ranks} ranks" if ranks > 1 else ""
        yield Problem(
            f"OMP_NUM_THREADS {value.value}{several} is {threads} threads, above the CPU limit {millis / 1000:g}",
            f"set OMP_NUM_THREADS to {max(1, millis // 1000 // ranks)}",
            "threads beyond the limit are throttled while others wait for them",
            span=value.span,
        )


@container_rule("TL371", Severity.INFO, group=PRACTICE)
def threads_unstated(container: SourceContainer) -> Iterator[Problem]:
    """A container trains by python itself, without a GPU, under a limit of CPUs."""
    workload, millis = container.workload, _limit_millis(container)
    if not millis or not trains(container) or has_gpu(workload) or _THREADS & {*env_of(container), *workload.secrets}:
        return
    if any(name in word for argv in (container.argv, *container.argvs) for word in argv for name in _THREADS):
        return  # a shell's text sets it, as our own preflight does
    if any(program_of(each).startswith("python") for each in container.argvs):  # launchers of ranks set it
        yield Problem(
            f"OMP_NUM_THREADS is unset under a limit of {millis / 1000:g} CPUs",
            f"set OMP_NUM_THREADS to {max(1, millis // 1000)}",
            "OpenMP counts the machine's CPUs, not the quota",
        )


@container_rule("TL353", Severity.INFO)
def workers_zero_on_gpu(container: SourceContainer) -> Iterator[Problem]:
    """A training container with a GPU sets 0 workers."""
    if trains(container) and has_gpu(container.workload) and workers_of(container) == 0:
        yield Problem(
            "0 DataLoader workers are set, so the GPU waits while each batch is loaded",
            "set about one worker for each CPU of the container, and its /dev/shm",
            "without workers the training process loads every batch itself",
            span=command_span(container.workload),
        )


@container_rule("TL324", Severity.WARNING)
def nproc_under_omp(container: SourceContainer) -> Iterator[Problem]:
    """A container runs nproc and sets OMP_NUM_THREADS."""
    text = shell_text(container.argv) or ""
    inside = _SETS_THREADS.search(text)
    threads = inside[1] if inside else stated(container.workload.env.get("OMP_NUM_THREADS"))
    # In the words of a docker line itself the machine's own shell asks.
    asked = " ".join(container.argv)
    if container.workload.format == "docker_run":
        asked = text or " ".join(container.argv[:2])
    if threads is not None and _NPROC.search(asked, inside.end() if inside else 0):
        yield Problem(
            f"nproc prints OMP_NUM_THREADS {threads} here, not the number of CPUs",
            "write the number of workers, or nproc --all",
            "coreutils' nproc obeys OMP_NUM_THREADS by design",
            span=command_span(container.workload),
        )
