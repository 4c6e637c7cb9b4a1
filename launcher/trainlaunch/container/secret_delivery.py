"""How each secret reaches the job on the plan's target: as a variable, as a file, or by way of the preflight.

An engine can pass a variable and mount a file. A file made of a variable lies in a tmpfs, where the preflight writes
it; Compose, which does not support a variable with a file's content, mounts the file and the preflight reads it.
"""

from __future__ import annotations

from trainlaunch.job.spec import Mount, Secret, path_variable, secret_path
from trainlaunch.plan.launch_plan import LaunchPlan


def passed_secrets(plan: LaunchPlan) -> tuple[tuple[str, Secret], ...]:
    """Return the secrets that are variables of the container when it starts."""
    mounted = plan.target_record.mounted_secrets
    return tuple((name, each) for name, each in plan.job.secrets.items() if _way(plan, each) not in mounted)


def _way(plan: LaunchPlan, secret: Secret) -> tuple[str, str]:
    """Return where a secret comes from on the plan's target, and as what the job sees it."""
    sources = plan.target_record.secret_sources
    source = next((each for each in sources if getattr(secret, each) is not None), sources[0])
    return source, "file" if secret.as_file else "variable"


def mounted_secrets(plan: LaunchPlan) -> tuple[tuple[str, Secret], ...]:
    """Return the secrets that are mounted as files."""
    passed = dict(passed_secrets(plan))
    return tuple((name, each) for name, each in plan.job.secrets.items() if name not in passed)


def secret_mounts(plan: LaunchPlan) -> tuple[Mount, ...]:
    """Return the binds by which an engine mounts files of this host as secrets."""
    return tuple(Mount("bind", each.file, secret_path(name), True) for name, each in mounted_secrets(plan))


def written_secrets(plan: LaunchPlan) -> tuple[str, ...]:
    """Return the names of those that an engine passes as variables and the preflight makes files of."""
    if not plan.target_record.starts_container:
        return ()
    return tuple(name for name, each in passed_secrets(plan) if each.as_file)


def read_secrets(plan: LaunchPlan) -> tuple[str, ...]:
    """Return the names of those that are mounted as files and the preflight makes variables of."""
    return tuple(name for name, each in mounted_secrets(plan) if not each.as_file)


def path_variables(plan: LaunchPlan) -> dict[str, str]:
    """Return the variables that tell a container's job where its secrets lie that are files."""
    secrets = plan.job.secrets.items()
    return {path_variable(name): secret_path(name) for name, each in secrets if each.as_file}


def secrets_of_files(plan: LaunchPlan) -> tuple[tuple[str, Secret], ...]:
    """Return the secrets that come from a file of this host, as a variable or as a file."""
    return tuple((name, each) for name, each in plan.job.secrets.items() if _way(plan, each)[0] == "file")
