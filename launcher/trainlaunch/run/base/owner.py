"""Whose a run on this machine is: it says so in a label, or in the record of a local run, and in no rendering.

A name keeps people on one engine from ending each other's runs by accident. It is no lock: who may use an engine's
socket may do anything on it.
"""

from __future__ import annotations

import os

OWNER_VARIABLE = "TRAINLAUNCH_OWNER"
OWNER_KEY = "owner"  # of the label, after its prefix, and of a local run's record
MEASURES = "measures"  # of the job that a run of `probe` or `tune` measures, as the owner's
ANYONE = "any"  # what --owner takes for the runs of all


def own_name() -> str:
    """Return the name that runs started from here carry: $TRAINLAUNCH_OWNER, else user@host by the process's uid."""
    stated = os.environ.get(OWNER_VARIABLE, "").strip()
    return stated or f"{_user()}@{os.uname().nodename}"


def is_mine(owner: str) -> bool:
    """Whether a run on this machine is the caller's own; one without an owner was started by hand and is anybody's."""
    return owner in {"", own_name()}


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a uid without an account
        return str(os.getuid())
