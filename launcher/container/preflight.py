"""The preflight wrapper and the health command: POSIX sh texts that carry the plan's numbers.

Both are the same bytes on every target; a target only quotes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from launcher.container.secrets import path_variables, read_secrets, written_secrets
from launcher.job.spec import JobSpec, secret_path
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.workers import CPUS_PER_WORKER_ON_CPU, FEWEST_CPUS_FOR_WORKERS, MOST_WORKERS_ON_CPU
from launcher.templating.environment import template_text
from launcher.units import MIB, format_size, round_up

# What stands before the preflight's last sentence, so that its 75 and 78 can be told from the job's own.
STOP_MARKER = "trainlaunch: preflight stopped"
# A worker's socket is TMPDIR/pymp-xxxxxxxx/listener-xxxxxxxx: 32 more of the 107 characters that Linux allows.
LONGEST_TMPDIR = 75
# Seconds that a node waits for the others, which may have a large image to pull first; torch's own 60 are too few.
NODE_PATIENCE = 1800
UNLIMITED = 1 << 62  # free bytes of a tmpfs with size=0
FORWARDED = ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2")
TOKENS = ("num_workers", "prefetch_factor", "batch_size", "nproc_per_node")
_TOKEN = re.compile(rf"(?:|.*=)\{{({'|'.join(TOKENS)})\}}", re.DOTALL)
_LITERAL = re.compile(rf"(?:|.*=)\{{\{{({'|'.join(TOKENS)})\}}\}}", re.DOTALL)


def preflight_text(plan: LaunchPlan) -> str:
    """Return the wrapper: proves the container, exports what the job reads, then becomes `"$@"`, the plan's argv."""
    return template_text("preflight.sh.j2", **_limits(plan), **_loader(plan), **_job(plan))


def health_text(plan: LaunchPlan) -> str:
    """Return the health command: one line of text and exit 0 while /dev/shm is as planned, else a reason and exit 1."""
    return template_text(
        "health.sh.j2",
        minimum=plan.shm.minimum,
        local=not plan.target_record.private_shm,
        planned=plan.processes,
    )


def _limits(plan: LaunchPlan) -> Mapping[str, object]:
    """Return bytes and counts to compare the container with, and the values to type where it falls short."""
    shm = plan.shm
    return {
        "minimum": shm.minimum,
        "minimum_mib": round_up(shm.minimum, MIB) // MIB,
        "size": max(shm.size.value, shm.minimum),
        "shm_mount": f"{round_up(max(shm.size.value, shm.minimum), MIB) // MIB}m",
        "shm_size": format_size(round_up(max(shm.size.value, shm.minimum), MIB)),
        "need": shm.need,
        "need_mib": round_up(shm.need, MIB) // MIB,
        "per_worker": shm.per_worker,
        "fixed": shm.fixed,
        "without_workers": shm.without_workers,
        "unsized": shm.unsized,
        "unlimited": UNLIMITED,
        "memory": format_size(round_up(shm.need + plan.memory.working_set.value, 512 * MIB)),
        "open_files": plan.open_files,
        "longest_tmpdir": LONGEST_TMPDIR,
        "fewest_cpus": FEWEST_CPUS_FOR_WORKERS,
        "cpus_per_worker": CPUS_PER_WORKER_ON_CPU,
    }


def _loader(plan: LaunchPlan) -> Mapping[str, object]:
    """Return what the DataLoaders get: the values of the first automatic loader, else of the first."""
    loaders = plan.job.data_loader.loaders
    loader = next((each for each in loaders if each.num_workers is None), loaders[0])
    workers = plan.num_workers.value
    auto = plan.auto_workers and workers > 0
    maybe_none = auto and not plan.gpus  # a GPU job keeps at least one worker
    batch = "" if loader.batch_size is None else str(loader.batch_size)
    prefetch = str(loader.prefetch_factor) if workers else ""
    variables = {"num_workers": "workers", "nproc_per_node": "ranks"}
    return {
        "auto": auto,
        "stated": plan.stated_processes,
        "maybe_none": maybe_none,
        "workers": min(workers, MOST_WORKERS_ON_CPU) if maybe_none else workers,
        "batch": batch,
        "prefetch": prefetch,
        "pin": int(loader.pin_memory),
        "persistent": int(loader.persistent_workers) if workers else 0,
        "timeout": loader.timeout if workers else 0,
        "inject": plan.job.data_loader.inject != "off",
        "variables": variables | ({"prefetch_factor": "prefetch"} if maybe_none else {}),
        "constants": {"batch_size": batch, "prefetch_factor": prefetch},
    }


def _job(plan: LaunchPlan) -> Mapping[str, object]:
    job = plan.job
    return {
        "name": job.name,
        "ranks": plan.ranks.value,
        "local": not plan.target_record.starts_container,
        "gpus": bool(plan.gpus),
        "amd": job.resources.gpu_vendor == "amd",
        "written_secrets": [(name, secret_path(name)) for name in written_secrets(plan)],
        "read_secrets": [(name, secret_path(name)) for name in read_secrets(plan)],
        "disks": tuple(_disks(job)),
        "path_variables": tuple(path_variables(plan)),
        "torchrun": job.torchrun is not None,
        "nodes": job.nodes,
        "node_patience": NODE_PATIENCE,
        # torchrun itself hands signals on to the script that it starts.
        "script": job.script is not None and job.torchrun is None,
        "signals": forwarded_signals(job.stop_signal),
        "tokens": _named_by(_TOKEN, job.command or ()),
        "literals": list(_by_two(_named_by(_LITERAL, job.command or ()))),
    }


def _disks(job: JobSpec) -> Iterator[str]:
    """Yield the targets of empty mounts, which are there to be written to."""
    for mount in job.mounts:
        if mount.type in {"scratch", "tmpfs"}:
            yield mount.target


def _named_by(pattern: re.Pattern[str], arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tokens that `arguments` name in the form of `pattern`, in the order of TOKENS."""
    named = {match[1] for each in arguments if (match := pattern.fullmatch(each))}
    return tuple(each for each in TOKENS if each in named)


def _by_two(names: tuple[str, ...]) -> Iterator[tuple[str, str, bool]]:
    """Yield the names two by two, "" after an odd one, and whether they are the last."""
    for at in range(0, len(names), 2):
        yield names[at], "".join(names[at + 1 : at + 2]), at + 2 >= len(names)


def forwarded_signals(stop_signal: str | None) -> tuple[str, ...]:
    """Return the names, as `trap` and `kill -s` take them, of the signals that reach the job through the wrapper."""
    own = (stop_signal or "TERM").upper().removeprefix("SIG")
    return tuple(dict.fromkeys((*FORWARDED, own)))
