"""What a local run, or a shell like it, starts, and what of this host it needs before.

It is the same preflight, and the same variables, as in a container, with this host's paths and programs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from trainlaunch.container.job_variables import attempt_variables, shutdown_variables
from trainlaunch.container.paths import absolute_bind, absolute_source
from trainlaunch.container.preflight import plan_variables, wrapper_words
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.job.host_paths import host_path
from trainlaunch.job.spec import path_variable, secret_path
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.ranks import torchrun_prefix
from trainlaunch.run.base.caller_terminal import NO_STREAMS, CallerStreams
from trainlaunch.run.base.host_cpus import cpus_here
from trainlaunch.run.base.host_gpus import NO_GPU, amd_findings, gpu_nodes, gpu_variables
from trainlaunch.run.base.secret_values import environment, file_contents, secret_findings, secret_value, values_here
from trainlaunch.run.base.shm_reading import SHM
from trainlaunch.run.base.slurm import slurm_task
from trainlaunch.run.docker.checks import mount_findings
from trainlaunch.run.local.processes import RUN_MARK
from trainlaunch.run.local.shm_room import shm_findings
from trainlaunch.run.local.state import RunFolder
from trainlaunch.units import counted, format_cpus, format_size, human_size

OWN_PREFIX = "TRAINLAUNCH_"
_PACKAGE = Path(__file__).resolve().parents[3]
# Isolated: neither the current folder nor PYTHONPATH may put another module in the place of the standard library's.
_OWN = "import sys; sys.path.insert(0, sys.argv[1]); import trainlaunch; del sys.path[0]; "
_KEEPER = f"{_OWN}from trainlaunch.run.local.keeper import main; main(sys.argv[2])"


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A process to start. `env` is whole and holds secrets; `files` are contents, by the variable for their path.

    `secrets` are the values that no log may hold, by name.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    files: Mapping[str, str]
    secrets: Mapping[str, str]
    streams: CallerStreams = NO_STREAMS


def process_spec(
    plan: LaunchPlan, *, run_id: str, attempt: int, folder: Path, caller: CallerStreams | None = None
) -> ProcessSpec:
    """Return what to start for a plan; `run_id` is unique on this host, `folder` marks the run's processes.

    With the streams of a `caller` it is that shell's own command: its programs and its GPUs, and no others.
    """
    env = _environment(plan, run_id=run_id, attempt=attempt, folder=folder, as_shell=caller is not None)
    return ProcessSpec(
        argv=(*wrapper_words(plan), *_arguments(plan, env, as_shell=caller is not None)),
        env=env,
        cwd=working_dir(plan),
        files={path_variable(name): value for name, value in file_contents(plan).items()},
        secrets=values_here(plan),
        streams=caller or NO_STREAMS,
    )


def working_dir(plan: LaunchPlan) -> str:
    """Return the job's folder on this host: working_dir, mapped where it is below a bind, else the job file's own."""
    if plan.job.working_dir is None:
        return str(Path(plan.job.path).absolute().parent)
    return host_path(plan.job.working_dir, _binds(plan))


def _binds(plan: LaunchPlan) -> dict[str, str]:
    binds = {each.target: absolute_bind(plan, each) for each in plan.job.mounts if each.type == "bind"}
    return binds | {secret_path(name): path for name, path in _secret_files(plan).items()}


def _secret_files(plan: LaunchPlan) -> dict[str, str]:
    """Return, by name, this host's own paths of secrets that the job sees as files."""
    secrets = plan.job.secrets.items()
    return {name: absolute_source(plan, each.file) for name, each in secrets if each.as_file and each.file is not None}


def _arguments(plan: LaunchPlan, env: Mapping[str, str], *, as_shell: bool) -> tuple[str, ...]:
    if plan.job.command is None:
        return plan.argv
    own = len(torchrun_prefix(plan.job, plan.ranks.value))
    command = [host_path(each, _binds(plan)) for each in plan.argv[own:]]
    if command[0] == "python" and not as_shell and shutil.which("python", path=env.get("PATH", "")) is None:
        command[0] = sys.executable
    return (*plan.argv[:own], *command)


def _environment(plan: LaunchPlan, *, run_id: str, attempt: int, folder: Path, as_shell: bool) -> dict[str, str]:
    """Return the shell's variables, ours, the job's, its secrets; each wins over those before it.

    A variable of the shell that the job shall see as a file is none of the job's.
    """
    secrets = plan.job.secrets.items()
    hidden = {each.env for _, each in secrets if each.as_file}
    inherited = {
        name: value for name, value in environment().items() if not name.startswith(OWN_PREFIX) and name not in hidden
    }
    if not as_shell:
        # Last on PATH: `python` and `torchrun` of trainlaunch's own environment, where no other has them.
        inherited["PATH"] = os.pathsep.join(filter(None, [inherited.get("PATH", os.defpath), _own_programs()]))
    return {
        **dict(shutdown_variables(plan)),  # a shell that sets it means it
        **inherited,
        **({} if as_shell else gpu_variables(plan, inherited)),
        f"{OWN_PREFIX}RUN_ID": run_id,
        f"{OWN_PREFIX}CPUS": str(cpus_here()),
        **attempt_variables(plan, attempt),
        **plan.job.env,
        **{name: secret_value(plan, name) for name, each in secrets if not each.as_file},
        **{path_variable(name): path for name, path in _secret_files(plan).items()},
        **plan_variables(plan),
        **({f"{OWN_PREFIX}CLEAN_SHM": "0"} if slurm_task() else {}),  # other tasks' batches are there too
        RUN_MARK: str(folder),
    }


def _own_programs() -> str:
    return str(Path(sys.executable).parent) if sys.executable else ""


def start_keeper(folder: RunFolder, spec: ProcessSpec) -> str:
    """Start the supervisor, and the job by it; return what kept either from starting, empty where both run."""
    try:
        keeper = subprocess.run(
            [sys.executable, "-I", "-c", _KEEPER, str(_PACKAGE), str(folder.path)],
            input=json.dumps(asdict(spec)).encode(),
            capture_output=True,
            start_new_session=True,
            pass_fds=spec.streams.passed,
            check=False,
        )
    except OSError as refused:
        return str(refused)
    problem = (keeper.stdout + keeper.stderr).decode(errors="replace").strip()
    return problem or (f"its supervisor ended with {keeper.returncode}" if keeper.returncode else "")


def local_findings(plan: LaunchPlan) -> tuple[Diagnostic, ...]:
    """Return all that stops `plan` on this host; what changes, as free memory, is left to the preflight."""
    if not sys.platform.startswith("linux"):
        return (_other_system(),)
    gpus = _gpus(plan) if plan.job.resources.gpu_vendor == "nvidia" else amd_findings(plan)
    return (
        *secret_findings(plan),
        *gpus,
        *mount_findings(plan),
        *_working_dir(plan),
        *shm_findings(plan, task.tasks_here if (task := slurm_task()) else 1),
    )


def comparison(plan: LaunchPlan) -> str:
    """Return one sentence: what this host has, beside what the job sets; nothing here enforces it."""
    asked = plan.job.resources
    shm = os.statvfs(SHM)
    parts = [
        _beside(counted(cpus_here(), "CPU"), "resources.cpus", asked.cpus and format_cpus(asked.cpus)),
        _beside(
            f"{human_size(memory_here())} of memory", "resources.memory", asked.memory and format_size(asked.memory)
        ),
        _beside(f"/dev/shm of {human_size(shm.f_blocks * shm.f_frsize)}", "shm_size", format_size(plan.shm.size.value)),
    ]
    short = [
        name
        for name, there, wanted in (
            ("resources.cpus", cpus_here() * 1000, asked.cpus or 0),
            ("resources.memory", memory_here(), asked.memory or 0),
        )
        if wanted > there
    ]
    place = "this task of Slurm's" if slurm_task() else "this host"
    return f"{place} has {', '.join(parts)}" + f"; that is less than {' and '.join(short)}" * bool(short)


def _beside(there: str, field: str, asked: str | int | None) -> str:
    return f"{there} ({field} {asked})" if asked else there


def memory_here() -> int:
    """Return the bytes of memory that a job may use here: this host's, or a task's share of an allocation."""
    task = slurm_task()
    return (task.memory if task else None) or host_memory()


def host_memory() -> int:
    """Return the bytes of memory that this host has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _gpus(plan: LaunchPlan) -> Iterator[Diagnostic]:
    there = gpu_nodes()
    wanted = 1 if plan.gpus.all else plan.gpus.count
    if there is not None and wanted > there:
        asked = ALL_GPUS if plan.gpus.all else wanted
        fix = f"add `--set resources.gpus={there}`, or run it where they are"
        yield Diagnostic(
            code=NO_GPU,
            message=f"resources.gpus is {asked} and this host has {counted(there, 'GPU device')}",
            why="each NVIDIA GPU has a device node, /dev/nvidia0 and on",
            fix=fix if there else f"install the NVIDIA driver until `nvidia-smi` lists a GPU, or {fix}",
            span=plan.job.span("resources.gpus"),
            field="resources.gpus",
        )


def _working_dir(plan: LaunchPlan) -> Iterator[Diagnostic]:
    folder = working_dir(plan)
    if not Path(folder).is_dir():
        yield Diagnostic(
            code="TL513",
            message=f"working_dir {plan.job.working_dir} is not a folder of this host"
            + f": it is {folder} here" * (folder != plan.job.working_dir),
            why="a container gets its working directory made; on a host it must be there",
            fix="write target_overrides.local.working_dir with a folder of this host, or null for the job file's",
            span=plan.job.span("working_dir"),
            field="working_dir",
        )


def _other_system() -> Diagnostic:
    return Diagnostic(
        code="TL512",
        message=f"target local needs Linux, and this is {sys.platform}",
        why="/dev/shm and /proc are Linux's own",
        fix="run it with `--target docker`, whose engine brings a Linux",
    )
