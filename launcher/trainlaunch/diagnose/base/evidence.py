"""What is known about the end of a run, or about one that goes on: the input of every diagnosis."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot
from trainlaunch.diagnose.base.log_facts import LogFacts
from trainlaunch.plan.plan_label import Planned
from trainlaunch.targets import DEFAULT_TARGET, TARGETS, Target
from trainlaunch.units import counted

ENDING_SIGNALS = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL, signal.SIGTERM})


def _have_somewhere(number: int) -> str:
    """Return how a script gets `number` workers where nobody knows who decides how many it has."""
    where = "where it sets num_workers (an option, a variable, or the DataLoader call)"
    return f"let it start {counted(number, 'worker')} {where}"


class WorkersAdvice(NamedTuple):
    """What to type for another number of workers: so many, or fewer. Asked only where it is told."""

    to_have: Callable[[int], str] = _have_somewhere
    lower: Callable[[], str] = lambda: "lower num_workers"


def _enlarge(_: int) -> str:
    return "enlarge it by `mount -o remount,size=…` as root"


class RunEvent(NamedTuple):
    """What a cluster or an engine noted of a run: its word for it, and the sentence."""

    reason: str
    words: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts only. `exit_code` None: it has not ended, or nobody knows; sizes are bytes, 0 or None where unknown.

    `oom_killed` is the engine's or the cluster's word, None where nobody asked for it. `stopped_by` names who ended it
    through us (`Ctrl-C`, `active_deadline`), `killed_by` who would not wait for its grace period to be over,
    `unhealthy` what the health check had against it where it was stopped for that, `signals`
    are those sent through the target, `private_shm` says that `shm_size` is in effect, `log` is the last part of both
    streams. `reason` and `words` are a cluster's own for an end, or a wait, that the container did not bring about, as
    `Evicted`.
    `scanned` is the whole log where it was read as it came; `log` then is only its last part.
    `redact` takes secrets out of what is quoted of it.

    `shm_volume` is the pod's volume that is mounted at /dev/shm, `memory_volumes` are all those kept in memory.
    `pids_limit` and `nofile` are the container's own limits, 0 where unknown; `gpus` is how many it was given, None
    where unknown; `look` is what a run that goes on does. For commands to type, `` where unknown: `job` is the file or
    the name of the job, `container` the name of the container, or of the pod in `namespace`, `engine` its program.
    `enlarge` says how this host's /dev/shm has so many bytes more.
    `has_job` False: there is no job file, and a way out in its fields would be none; `by_run`: it has run's options.
    """

    exit_code: int | None
    log: str = ""
    oom_killed: bool | None = None
    error: str = ""
    private_shm: bool = True
    ipc_mode: str = ""
    shm_size: int = 0
    memory: int = 0
    shm_peak: int | None = None
    signals: tuple[int, ...] = ()
    stopped_by: str = ""
    killed_by: str = ""
    unhealthy: str = ""
    target: str = DEFAULT_TARGET
    reason: str = ""
    words: str = ""
    planned: Planned = field(default_factory=Planned)
    scanned: LogFacts | None = None
    redact: Callable[[str], str] = str
    events: tuple[RunEvent, ...] = ()
    shm_volume: str = ""
    memory_volumes: tuple[str, ...] = ()
    pids_limit: int = 0
    nofile: int = 0
    gpus: int | None = None
    image: str = ""
    job: str = ""
    has_job: bool = True
    by_run: bool = False
    container: str = ""
    namespace: str = ""
    engine: str = "docker"
    look: ContainerSnapshot | None = None
    workers: WorkersAdvice = field(default_factory=WorkersAdvice)
    enlarge: Callable[[int], str] = _enlarge

    @property
    def where(self) -> Target:
        """What is so of its target."""
        return TARGETS[self.target]

    @property
    def stopped(self) -> bool:
        """Whether somebody ended it on purpose; SIGUSR1 and the like ask a job for something else.

        One that was stopped because it was unhealthy has failed.
        """
        return bool(self.stopped_by) or (not self.unhealthy and not ENDING_SIGNALS.isdisjoint(self.signals))
