"""What a logout does to runs of this user: logind may remove files in /dev/shm, and may kill what has no terminal."""

from __future__ import annotations

import os
import pwd
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

RUNTIME = Path("/run/systemd/users")
LINGERING = Path("/var/lib/systemd/linger")
PROPERTIES = ("RemoveIPC", "KillUserProcesses", "KillOnlyUsers", "KillExcludeUsers")
FIRST_UID = 1000  # logind leaves the files of system users alone
_ASK = ("busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
_ASK_SECONDS = 5


class Logout(NamedTuple):
    """What happens when this user's last session ends: `removes_shm`, and whether processes are killed."""

    removes_shm: bool = False
    kills: bool = False

    def words(self, *, uses_hosts_shm: bool) -> tuple[str, ...]:
        """Return what to do about it, a sentence each; `uses_hosts_shm`: the run's /dev/shm is the host's."""
        said = []
        if self.kills:
            said.append(
                "logind kills this user's processes at logout (KillUserProcesses): start it with "
                "`loginctl enable-linger`, then `systemd-run --user --scope trainlaunch up …`"
            )
        if self.removes_shm and uses_hosts_shm:
            said.append(
                "logind removes this user's files in /dev/shm after the last logout (RemoveIPC), and the job's with "
                "them: `loginctl enable-linger` keeps them"
            )
        return tuple(said)


def at_logout(runtime: Path = RUNTIME, lingering: Path = LINGERING) -> Logout:
    """Return what this user's logout does; nothing where logind doesn't know the user, or doesn't answer."""
    uid = os.getuid()
    if not (runtime / str(uid)).exists():
        return Logout()
    try:
        name = pwd.getpwuid(uid).pw_name
        asked = subprocess.run([*_ASK, *PROPERTIES], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False)
    except (KeyError, OSError, subprocess.TimeoutExpired):
        return Logout()
    return outcome(asked.stdout, name, system_user=uid < FIRST_UID, lingers=(lingering / name).exists())


def outcome(answer: str, user: str, *, system_user: bool, lingers: bool) -> Logout:
    """Return what `busctl get-property` answers for PROPERTIES means for a user."""
    values = [shlex.split(line)[1:] for line in answer.splitlines()]
    if len(values) != len(PROPERTIES):
        return Logout()
    known = dict(zip(PROPERTIES, values, strict=True))
    only, spared = known["KillOnlyUsers"][1:], known["KillExcludeUsers"][1:]
    kills = known["KillUserProcesses"] == ["true"] and user not in spared and (not only or user in only)
    return Logout(removes_shm=known["RemoveIPC"] == ["true"] and not system_user and not lingers, kills=kills)
