"""The preflight wrapper and the health command: POSIX sh texts that carry the plan's numbers.

Both are the same bytes on every target; a target only quotes them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

from trainlaunch.container.instrumentation_files import unpacking
from trainlaunch.container.job_variables import checkpoint_dir, restarts_field
from trainlaunch.container.secret_delivery import path_variables, read_secrets, written_secrets
from trainlaunch.job.loader_spec import LoaderSpec
from trainlaunch.job.spec import JobSpec
from trainlaunch.job.tokens import has_token
from trainlaunch.kinds import KINDS
from trainlaunch.plan.instrumentation import HEARTBEAT
from trainlaunch.plan.launch_plan import LaunchPlan, LinearBytes, cache_last_plan
from trainlaunch.plan.lock_overrides import fresh_tune
from trainlaunch.plan.ranks import fills_variables
from trainlaunch.plan.workers_and_threads import MAX_WORKERS_ON_CPU, shares_cpus, whole_cpus
from trainlaunch.templating.environment import constant_text
from trainlaunch.templating.quoting import sh_word
from trainlaunch.units import MIB, round_up

# What stands before the preflight's last sentence, so that its 75 and 78 can be told from the job's own.
STOP_MARKER = "trainlaunch: preflight stopped"
SCRIPT_MARK = "# trainlaunch preflight,"  # how the wrapper's constant text begins
FILES = "  #: files\n"  # where the script unpacks Python of ours
_NO_LOADER = LoaderSpec(
    name="",
    batch_size=None,
    sample=None,
    batch_bytes=None,
    num_workers=0,
    prefetch_factor=2,
    pin_memory=False,
    persistent_workers=False,
    timeout=0,
    collate="none",
    batches_held=1,
)
FORWARDED = ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2")

# A probe runs in the job's own cgroup, and gets CPU beside all of its processes: a slow one must end no job.
MIN_LIVENESS_TIMEOUT = 60
_RECORDS_ONLY = "trap 'exit 0' EXIT # something acts on readiness here, so this check only records\n"


@cache_last_plan
def preflight_text(plan: LaunchPlan) -> str:
    """Return the wrapper: proves the container, exports what the job reads, then becomes `"$@"`, the plan's argv.

    It is a prologue of the job's own numbers, then templates/preflight.sh with the sections that the job needs.
    """
    lines = *_numbers(plan), *_settings(plan), *_names(plan)
    script = _script("preflight.sh", tuple(_sections(plan)))
    if plan.inside.parts:
        script = script.replace(FILES, unpacking(plan))
    return "\n".join((*lines, script))


def preflight_behind_entrypoint(argv: Sequence[str]) -> bool:
    """Return whether a process that runs our wrapper has a program of its image in front, which may not run it."""
    words = ("/bin/sh", "-c")
    at = next((index for index, word in enumerate(argv) if SCRIPT_MARK in word), None)
    return at is not None and tuple(argv[:at]) != words


def health_text(plan: LaunchPlan) -> str:
    """Return the health command: one line of text and exit 0 while /dev/shm is as planned, else a reason and exit 1."""
    numbers: dict[str, object] = {"least": plan.shm.minimum, "planned": plan.processes, "shared": _shared(plan)}
    beats = HEARTBEAT in plan.inside.parts
    if beats:
        longest = plan.job.healthcheck.stall_after or 0
        numbers |= {"stall": longest, "first": max(longest, plan.job.healthcheck.start_period)}
    return "\n".join((_assigned(numbers), _script("health.sh", (("heartbeat", beats),))))


@functools.lru_cache(maxsize=64)
def _script(name: str, sections: tuple[tuple[str, bool], ...]) -> str:
    """Return a constant script without its marks, and without the sections, `#: NAME` to `#: end`, that are False."""
    kept, wanted, stated = [], True, dict(sections)
    for line in constant_text(name).splitlines(keepends=True):
        if line.startswith("#: "):
            wanted = stated.get(line[3:].strip(), True)
        elif wanted:
            kept.append(line)
    return "".join(kept)


def _sections(plan: LaunchPlan) -> Iterator[tuple[str, bool]]:
    job = plan.job
    variables = fills_variables(job)
    yield "secrets", bool(job.secrets and (written_secrets(plan) or path_variables(plan) or read_secrets(plan)))
    yield "host", not plan.target_record.starts_container
    yield "auto", _automatic(plan)
    yield "tuned", _tuned(plan) is not None
    yield "identity", plan.target_record.starts_container
    yield "home", plan.target_record.starts_container and "HOME" not in {*job.env, *job.secrets}
    yield "nvidia", bool(plan.gpus) and job.resources.gpu_vendor == "nvidia"
    yield "amd", bool(plan.gpus) and job.resources.gpu_vendor == "amd"
    yield "torchrun", job.torchrun is not None
    yield "nodes", job.nodes > 1
    yield "disks", any(_disks(job))
    yield "checkpoints", job.checkpoint_dir is not None
    yield "restarts", bool(restarts_field(plan))
    yield "inject", job.data_loader.inject != "off"
    yield "inside", bool(plan.inside.parts)
    yield "variables", variables
    yield "tokens", variables or any(map(has_token, job.command or ()))
    # torchrun itself hands signals on to the script that it starts.
    script = job.script is not None and job.torchrun is None
    yield "script", script
    yield "command", not script


def _automatic(plan: LaunchPlan) -> bool:
    """Whether the preflight may lower num_workers."""
    return plan.auto_workers and plan.num_workers.value > 0


def _tuned(plan: LaunchPlan) -> int | None:
    """Return the whole CPUs with which `tune` found an automatic num_workers; None where the rule gives it."""
    return whole_cpus(plan.job) if _automatic(plan) and fresh_tune(plan.job) is not None else None


def _shared(plan: LaunchPlan) -> str:
    """Return `yes` where /dev/shm is the host's own, which others use too; empty where the container has its own."""
    return "" if plan.target_record.private_shm else "yes"


def _numbers(plan: LaunchPlan) -> Iterator[str]:
    """Yield the line that changes with what the job asks for; bytes, and MiB of memory."""
    shm, loader, workers = plan.shm, _loader(plan), plan.num_workers.value
    automatic, tuned = _automatic(plan), _tuned(plan)
    ruled = automatic and tuned is None and not plan.gpus
    numbers: dict[str, object] = {
        "ranks": plan.ranks.value,
        "workers": min(workers, MAX_WORKERS_ON_CPU) if ruled else workers,
        "stated": 0 if shares_cpus(plan) else plan.stated_processes,  # said once
        "batch": "" if loader.batch_size is None else loader.batch_size,
        "files": plan.open_files,
        "memory": round_up(shm.need + plan.memory.working_set.value, 512 * MIB) // MIB,
        "need": shm.need,
        "size": shm.size.value,
    }
    if tuned is not None:
        numbers["tuned"] = tuned
    if automatic:
        numbers |= {"first": _pairs(shm.first_epoch), "every": _pairs(shm.every_epoch), "without": shm.without_workers}
    yield _assigned(numbers)


def _pairs(lines: Sequence[LinearBytes]) -> str:
    """Return words `A:B`, A·W + B bytes for W workers; the largest counts, and those that never are it are left out."""
    kept = [each for each in dict.fromkeys(lines) if not any(_above(other, each) for other in lines)]
    return " ".join(f"{per_worker}:{constant}" for per_worker, constant in kept)


def _above(line: LinearBytes, other: LinearBytes) -> bool:
    """Whether `line` is another one that is never below `other`."""
    return line != other and line.per_worker >= other.per_worker and sum(line) >= sum(other)


def _settings(plan: LaunchPlan) -> Iterator[str]:
    """Yield the line of words and switches; a switch is empty where it is off."""
    job, loader, workers = plan.job, _loader(plan), plan.num_workers.value
    yield _assigned(
        {
            "name": job.name,
            "prefetch": loader.prefetch_factor if workers else "",
            "persistent": int(loader.persistent_workers and workers > 0),
            "timeout": loader.timeout if workers else 0,
            "pin": int(loader.pin_memory),
            "gpus": job.resources.gpu_vendor if plan.gpus else "",
            "shared": _shared(plan),
            "unsized": int(plan.shm.unsized and not _shared(plan)),
            "asks": "need unknown" if plan.shm.unsized else "",
            "signals": " ".join(forwarded_signals(job.stop_signal)),
        }
    )


def _names(plan: LaunchPlan) -> Iterator[str]:
    """Yield the line of each section that works on a list of names."""
    job = plan.job
    if dict(_sections(plan))["secrets"]:
        lists = {"written": written_secrets(plan), "paths": path_variables(plan), "read": read_secrets(plan)}
        yield _assigned({key: " ".join(names) for key, names in lists.items()})
    if fills_variables(job):
        yield _assigned({"filled": " ".join(name for name, value in job.env.items() if has_token(value))})
    saves = checkpoint_dir(plan)
    if saves is not None:
        yield _assigned({"saves": saves, "bytes": job.checkpoint_bytes or 0})
    disks = tuple(_disks(job))
    if disks:
        yield _assigned({"disks": "\n".join(disks)})
    if plan.inside.parts:
        yield _assigned({"parts": " ".join(plan.inside.parts)})
    for name, value in plan.inside.settings:
        yield f"export {name}={sh_word(value)}"


def _assigned(values: Mapping[str, object]) -> str:
    return " ".join(f"tl_{key}={sh_word(str(value)) if value != '' else ''}" for key, value in values.items())


def _loader(plan: LaunchPlan) -> LoaderSpec:
    """Return the loader whose values the job gets as variables: the first automatic one, else the first."""
    loaders = plan.job.data_loader.loaders
    return next((each for each in loaders if each.num_workers is None), loaders[0] if loaders else _NO_LOADER)


def _disks(job: JobSpec) -> Iterator[str]:
    """Yield the targets of empty mounts, which are there to be written to."""
    for mount in job.mounts:
        if mount.type in {"scratch", "tmpfs"}:
            yield mount.target


def forwarded_signals(stop_signal: str | None) -> tuple[str, ...]:
    """Return the names, as `trap` and `kill -s` take them, of the signals that reach the job through the wrapper."""
    own = (stop_signal or "TERM").upper().removeprefix("SIG")
    return tuple(dict.fromkeys((*FORWARDED, own)))


def readiness_text(job: JobSpec, health: str) -> str:
    """Return the readiness command: the health check, which must not fail where readiness decides about the job.

    A queue evicts what is not ready, and a pod that is not ready drops out of the names that its peers look up.
    """
    acted_upon = job.nodes > 1 or job.kubernetes.queue or KINDS[job.kubernetes.kind].acts_on_readiness
    return _RECORDS_ONLY + health if acted_upon else health


def liveness_timeout(job: JobSpec) -> int:
    """Return the seconds that the liveness check may take."""
    return max(MIN_LIVENESS_TIMEOUT, job.healthcheck.timeout)
