"""Training processes per container, and the argv that starts them."""

from __future__ import annotations

from trainlaunch.job.spec import JobSpec, Torchrun
from trainlaunch.job.tokens import has_token
from trainlaunch.plan.launch_plan import Derived

# The name that a script sees as $0; it stands in usage errors of the shell itself.
SCRIPT_ARGV = ("/bin/sh", "-eu", "-c")
SCRIPT_NAME = "script"


def ranks_of(job: JobSpec) -> Derived:
    """Return ranks per container: ranks_per_container, else what torchrun or the command sets, else GPUs, else 1."""
    if job.ranks_per_container is not None:
        return Derived(job.ranks_per_container, "set", str(job.origin("ranks_per_container")))
    if job.torchrun and job.torchrun.nproc_per_node is not None:
        return Derived(
            job.torchrun.nproc_per_node, "torchrun.nproc_per_node", str(job.origin("torchrun.nproc_per_node"))
        )
    starter = job.starter
    if starter is not None and isinstance(starter.count, int):
        return Derived(starter.count, starter.words, str(job.origin(starter.field)))
    if job.resources.gpus.count:
        return Derived(job.resources.gpus.count, "one per GPU", str(job.origin("resources.gpus")))
    return Derived(1, "no GPU and no " + ("torchrun.nproc_per_node" if job.torchrun else "torchrun"), "default")


def argv_of(job: JobSpec, ranks: int) -> tuple[str, ...]:
    """Return the argv that the preflight ends in: torchrun's own part, then the command with its tokens unreplaced."""
    own = job.command if job.command is not None else (*SCRIPT_ARGV, script_text(job), SCRIPT_NAME)
    return (*torchrun_prefix(job, ranks), *own)


def script_text(job: JobSpec) -> str:
    """Return the job's script after a line that lets its shell outlive a signal until its children have ended.

    A shell without traps ends at once, and its container with it, while the training process still saves its work. A
    trap runs when the child in the foreground has ended; `exit` then gives that child's code.
    """
    own = (job.stop_signal or "TERM").upper().removeprefix("SIG")
    ending = dict.fromkeys(("TERM", "INT", "HUP", "QUIT", own))
    going_on = [each for each in ("USR1", "USR2") if each != own]
    text = f"trap 'set -- $?; wait; exit $1' {' '.join(ending)}; trap : {' '.join(going_on)}\n{job.script or ''}"
    return f"{text}\n" if has_token(text) else text  # a text that ends as a token does is none


def torchrun_prefix(job: JobSpec, ranks: int) -> tuple[str, ...]:
    """Return torchrun's own argv, empty without the block."""
    torchrun = job.torchrun
    if torchrun is None:
        return ()
    return (
        "torchrun",
        f"--nnodes={torchrun.nnodes}",
        f"--nproc-per-node={ranks}",
        f"--max-restarts={torchrun.max_restarts}",
        f"--rdzv-backend={torchrun.rdzv_backend}",
        *_own_endpoint(job, torchrun),
        f"--rdzv-id={job.name}",
        "--no-python",
    )


def _own_endpoint(job: JobSpec, torchrun: Torchrun) -> tuple[str, ...]:
    """Return the rendezvous of a single node. Where several meet is the target's to say, in PET_RDZV_ENDPOINT."""
    if torchrun.nnodes > 1:
        return ()
    # On one node nobody else must find the rendezvous: port 0 lets two jobs share a host's network.
    port = torchrun.rdzv_port if "torchrun.rdzv_port" in job.origins else 0
    return (f"--rdzv-endpoint=localhost:{port}",)
