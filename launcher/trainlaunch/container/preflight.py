"""The preflight wrapper and the health command, and the job's own numbers that both read.

The two are POSIX sh texts, the same bytes for every job and on every target. What differs between jobs is one variable
of the container, whose value is shell text on one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainlaunch.container.instrumentation_files import unpacking
from trainlaunch.container.job_variables import checkpoint_dir, restarts_field
from trainlaunch.container.secret_delivery import path_variables, read_secrets, written_secrets
from trainlaunch.job.loader_spec import LoaderSpec
from trainlaunch.job.reserved import PLAN_VARIABLE
from trainlaunch.job.spec import JobSpec
from trainlaunch.job.tokens import has_token
from trainlaunch.plan.instrumentation import HEARTBEAT
from trainlaunch.plan.launch_plan import LaunchPlan, LinearBytes, cache_last_plan
from trainlaunch.plan.lock_overrides import fresh_tune
from trainlaunch.plan.workers_and_threads import MAX_WORKERS_ON_CPU, shares_cpus, whole_cpus
from trainlaunch.templating.environment import constant_text
from trainlaunch.templating.quoting import sh_word, sh_words
from trainlaunch.units import MIB, round_up

# What stands before the preflight's last sentence, so that its 75 and 78 can be told from the job's own.
STOP_MARKER = "trainlaunch: preflight stopped"
SCRIPT_MARK = "# trainlaunch preflight,"  # how the wrapper's text begins
LIVENESS = "liveness"  # the health command's $0 where a failure of it ends the container
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
FORWARDED = ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2")  # by every wrapper

# A probe runs in the job's own cgroup, and gets CPU beside all of its processes: a slow one must end no job.
MIN_LIVENESS_TIMEOUT = 60


def wrapper_words(plan: LaunchPlan) -> tuple[str, ...]:
    """Return what stands before the job's argv: it proves the container, exports what the job reads, becomes the job.

    Behind its name comes the text that unpacks Python of ours, where the plan has parts.
    """
    words = ("/bin/sh", "-c", preflight_text(), "trainlaunch")
    return (*words, unpacking(plan).removesuffix("\n")) if plan.inside.parts else words


def preflight_text() -> str:
    """Return the wrapper's script."""
    return _script("preflight.sh")


def health_text() -> str:
    """Return the health command: one line of text and exit 0 while /dev/shm is as planned, else a reason and exit 1."""
    return _script("health.sh")


def _script(name: str) -> str:
    """Return a script without its last line's end, which `$(…)` of a shell takes away too."""
    return constant_text(name).removesuffix("\n")


def preflight_behind_entrypoint(argv: Sequence[str]) -> bool:
    """Return whether a process that runs our wrapper has a program of its image in front, which may not run it."""
    words = ("/bin/sh", "-c")
    at = next((index for index, word in enumerate(argv) if SCRIPT_MARK in word), None)
    return at is not None and tuple(argv[:at]) != words


@cache_last_plan
def plan_variables(plan: LaunchPlan) -> dict[str, str]:
    """Return the variable that holds the job's own numbers: words NAME=VALUE, of those that are not as usual."""
    values = {**_numbers(plan), **_settings(plan), **_names(plan), **_of_health(plan)}
    together = plan.ranks.value * int(str(values["workers"]))
    usual = {"ranks": 1, "prefetch": 2, "stated": together, "planned": together, "need": "", "without": ""}
    stated = [(key, value) for key, value in values.items() if value not in ("", usual.get(key, 0))]
    words = [f"{key}={sh_word(str(value))}" for key, value in stated]
    exports = [f"export {name}={sh_word(value)}" for name, value in plan.inside.settings]
    return {PLAN_VARIABLE: "; ".join([" ".join(words), *exports])}


def _automatic(plan: LaunchPlan) -> bool:
    """Whether the preflight may lower num_workers."""
    return plan.auto_workers and plan.num_workers.value > 0


def _tuned(plan: LaunchPlan) -> int | None:
    """Return the whole CPUs with which `tune` found an automatic num_workers; None where the rule gives it."""
    tune = fresh_tune(plan.job) if _automatic(plan) else None
    return tune and (whole_cpus(plan.job) or tune.usable_cpus)


def _shared(plan: LaunchPlan) -> str:
    """Return `yes` where /dev/shm is the host's own, which others use too; empty where the container has its own."""
    return "" if plan.target_record.private_shm else "yes"


def _numbers(plan: LaunchPlan) -> dict[str, object]:
    """Return what changes with what the job asks for; bytes, and MiB of memory."""
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
    return numbers


def _pairs(lines: Sequence[LinearBytes]) -> str:
    """Return words `A:B`, A·W + B bytes for W workers; the largest counts, and those that never are it are left out."""
    kept = [each for each in dict.fromkeys(lines) if not any(_above(other, each) for other in lines)]
    return " ".join(f"{per_worker}:{constant}" for per_worker, constant in kept)


def _above(line: LinearBytes, other: LinearBytes) -> bool:
    """Whether `line` is another one that is never below `other`."""
    return line != other and line.per_worker >= other.per_worker and sum(line) >= sum(other)


def _settings(plan: LaunchPlan) -> dict[str, object]:
    """Return words and switches; what is off or usual is empty."""
    job, loader, workers = plan.job, _loader(plan), plan.num_workers.value
    script = job.script is not None and job.torchrun is None  # torchrun itself hands signals on to the script
    return {
        "name": job.name,
        "prefetch": loader.prefetch_factor if workers else "",
        "persistent": _switch(loader.persistent_workers and workers > 0, 1),
        "timeout": loader.timeout if workers and loader.timeout else "",
        "pin": _switch(loader.pin_memory, 1),
        "gpus": job.resources.gpu_vendor if plan.gpus else "",
        "shared": _shared(plan),
        "unsized": _switch(plan.shm.unsized and not _shared(plan), 1),
        "asks": _switch(plan.shm.unsized, "unknown"),
        "signal": " ".join(each for each in forwarded_signals(job.stop_signal) if each not in FORWARDED),
        "nodes": _switch(job.nodes > 1, job.nodes),
        "home": _switch("HOME" in {*job.env, *job.secrets}, "own"),
        "inject": _switch(job.data_loader.inject == "off", "off"),
        "script": _switch(script, "yes"),
        "restarts": _switch(bool(restarts_field(plan)), "yes"),
    }


def _switch(on: bool, value: object) -> object:
    return value if on else ""


def _names(plan: LaunchPlan) -> dict[str, object]:
    """Return paths, and lists of names."""
    job = plan.job
    saves = checkpoint_dir(plan)
    return {
        "written": " ".join(written_secrets(plan)),
        "paths": " ".join(path_variables(plan)),
        "read": " ".join(read_secrets(plan)),
        "filled": " ".join(name for name, value in job.env.items() if has_token(value)),
        "saves": saves or "",
        "bytes": (job.checkpoint_bytes or "") if saves is not None else "",
        "disks": sh_words(tuple(_disks(job))),
        "parts": " ".join(plan.inside.parts),
    }


def _of_health(plan: LaunchPlan) -> dict[str, object]:
    """Return what only the health command reads: bytes, processes, seconds."""
    job = plan.job
    stated: dict[str, object] = {"planned": plan.processes}
    if plan.shm.minimum != plan.shm.need:
        stated["least"] = plan.shm.minimum
    if HEARTBEAT in plan.inside.parts:
        longest = job.healthcheck.stall_after or 0
        stated |= {"stall": longest, "begin": max(longest, job.healthcheck.start_period)}
    return stated | {"records": _switch(_readiness_acts(plan), "yes")}


def _readiness_acts(plan: LaunchPlan) -> bool:
    """Whether readiness decides about the job, so that the check must not fail.

    A queue evicts what is not ready, and a pod that is not ready drops out of the names that its peers look up.
    """
    job, kind = plan.job, plan.job.kind
    return kind is not None and bool(job.nodes > 1 or job.kubernetes.queue or kind.acts_on_readiness)


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


def liveness_timeout(job: JobSpec) -> int:
    """Return the seconds that the liveness check may take."""
    return max(MIN_LIVENESS_TIMEOUT, job.healthcheck.timeout)
