"""What a shell of somebody's runs in a container: the job's own preflight, then a shell or a command, marked as theirs.

An engine and a cluster leave a command running when whoever asked for it is gone. So each shell has a line of its own
into the container: a second command that reads until its reader goes, and then ends whatever carries the shell's mark.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from trainlaunch.container.container import container_of
from trainlaunch.plan.launch_plan import LaunchPlan

MARK = "TRAINLAUNCH_SHELL"  # the variable of all processes of a shell: what ends with it
BEATS_SECONDS = 15.0  # between two signs of life: something on the way may drop a connection that is silent
_A_SHELL = "if command -v bash >/dev/null 2>&1; then exec bash; fi; exec sh"
_MARKED = 'export TRAINLAUNCH_SHELL="$1"; [ -z "$2" ] || export TERM="$2"; shift 2; exec "$@"'
# grep's own words are no match of them, by the brackets. An image without grep keeps its container until the deadline.
_HOLD = """\
trap 'exit 0' TERM INT HUP
tl_wait=120
while :; do
  sleep "$tl_wait" & wait "$!"
  grep -lq 'trainlaunch-lifelin[e]' /proc/[0-9]*/cmdline 2>/dev/null; [ "$?" -ne 1 ] || exit 0
  tl_wait=20
done"""
_LIFELINE = """\
while read -r tl_beat; do :; done
for tl_signal in HUP KILL; do
  for tl_process in /proc/[0-9]*; do
    tl_process=${tl_process#/proc/}
    [ "$tl_process" != "$$" ] || continue
    if grep -q "TRAINLAUNCH_SHELL=$1" "/proc/$tl_process/environ"; then kill -s "$tl_signal" "$tl_process"; fi
  done
  [ "$tl_signal" = KILL ] || sleep 2
done 2>/dev/null"""


def new_token() -> str:
    """Return what tells one shell from another."""
    return secrets.token_hex(8)


def shell_plan(plan: LaunchPlan, command: Sequence[str]) -> LaunchPlan:
    """Return a plan of the same container for a shell, or for a command: one container, and no torchrun in front."""
    words = tuple(command) or ("/bin/sh", "-c", _A_SHELL)
    job = plan.job._replace(script=None, command=words, torchrun=None, active_deadline=None, max_attempts=1)
    return plan._replace(job=job, argv=words)


def hold_argv() -> tuple[str, ...]:
    """Return the first process of a container that only exists for a shell: it waits, and ends without a lifeline."""
    return "/bin/sh", "-c", _HOLD, "trainlaunch-shell"


def planned_argv(plan: LaunchPlan) -> tuple[str, ...]:
    """Return a shell plan's own process: the job's ENTRYPOINT, its preflight, the shell."""
    container = container_of(plan)
    return *container.entrypoint, *container.args


def running_argv(command: Sequence[str]) -> tuple[str, ...]:
    """Return the process for a container that runs a job already, whose preflight has passed."""
    return tuple(command) or ("/bin/sh", "-c", _A_SHELL)


def marked_argv(argv: Sequence[str], token: str, *, term: str) -> tuple[str, ...]:
    """Return a process with the shell's mark; `term` is the terminal's kind, empty without one."""
    return "/bin/sh", "-c", _MARKED, "trainlaunch-shell", token, term, *argv


def lifeline_argv(token: str) -> tuple[str, ...]:
    """Return the command that ends what has the mark once nobody can write to it: also a container made for a shell."""
    return "/bin/sh", "-c", _LIFELINE, "trainlaunch-lifeline", token
