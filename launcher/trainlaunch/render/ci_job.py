"""What a job of CI runs in its container: guards of its secrets, its code in place, then the preflight and the command.

A runner clones the repository into the container after it has made it, so a folder of it can't be mounted: a link leads
to it from where the job expects it.
"""

from __future__ import annotations

import posixpath

from trainlaunch.container.container import container_of
from trainlaunch.container.paths import Checkout, checkouts
from trainlaunch.container.secret_delivery import passed_secrets
from trainlaunch.exit_codes import EXIT_BEFORE_START, EXIT_FILES_WRONG
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.templating.quoting import sh_variable, sh_word, sh_words


def step(plan: LaunchPlan, *, clone: str, renames: bool = False) -> str:
    """Return the shell text that ends as the job.

    `clone` is the runner's variable for the folder of the repository. `renames`: CI gives the container each secret
    under the name of its source.
    """
    container = container_of(plan)
    return (
        "\n".join(
            (*before(plan, clone=clone, renames=renames), f"exec {sh_words((*container.entrypoint, *container.args))}")
        )
        + "\n"
    )


def before(plan: LaunchPlan, *, clone: str, renames: bool = False) -> list[str]:
    """Return the lines before the job's own: a missing secret is 125, a place that is taken 78."""
    lines = [
        f"export {name}={sh_variable(str(each.env))}"
        for name, each in passed_secrets(plan)
        if renames and name != each.env
    ]
    lines += [_guard(name) for name, _ in passed_secrets(plan)]
    lines += [_link(each, clone) for each in checkouts(plan)]
    if plan.job.working_dir is not None:
        lines.append(f"cd -- {sh_word(plan.job.working_dir)}")
    return lines


def _guard(name: str) -> str:
    message = sh_word(f"secret {name}: its variable is not set, or CI has no secret of that name")
    return f'if [ -z "${{{name}:-}}" ]; then echo {message} >&2; exit {EXIT_BEFORE_START}; fi'


def _link(checkout: Checkout, clone: str) -> str:
    """Return the line that puts a link to a part of the clone where the job expects it; an empty folder makes room."""
    target = sh_word(checkout.target)
    source = f'"${clone}"' + ("" if checkout.path == "." else sh_word(f"/{checkout.path}"))
    message = sh_word(f"{checkout.target} is taken in the image, or its user can't make a link there")
    parent = sh_word(posixpath.dirname(checkout.target) or "/")
    made = f"mkdir -p -- {parent} && ln -s -- {source} {target}"
    return f"rmdir -- {target} 2>/dev/null || :; {{ {made}; }} || {{ echo {message} >&2; exit {EXIT_FILES_WRONG}; }}"
