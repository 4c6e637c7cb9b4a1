"""A ConfigMap, a Secret or a key that a pod refers to and its namespace lacks, by the kubelet's words about it.

As a variable it stands in the container's status, as a mount only in events, while the status says ContainerCreating
for ever. Neither passes by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from trainlaunch.job.spec import JobSpec

_ABSENT = re.compile(r'\b(?P<kind>secret|configmap) "(?P<name>[^"]+)" not found', re.I)
_NO_KEY = re.compile(r"couldn't find key (?P<key>\S+) in (?P<kind>Secret|ConfigMap) [^\s/]+/(?P<name>[^\s,;]+)")
_NO_KEY_OF_MOUNT = re.compile(r"references non-existent (?P<kind>secret|config) key: (?P<key>[-._a-zA-Z0-9]+)")
_VOLUME = re.compile(r'MountVolume\.SetUp failed for volume "([^"]+)"')


class MissingSource(NamedTuple):
    """What is missing: `kind` is secret or configmap; the key of one that is there, or else all of `name`.

    `volume` is the pod's, for one that is mounted; with a key the kubelet then doesn't say the name.
    """

    kind: str
    name: str = ""
    key: str = ""
    volume: str = ""


def missing_source(words: str) -> MissingSource | None:
    """Return what the kubelet says is missing; None where its words are about something else."""
    volume = _VOLUME.search(words)
    mounted = volume[1] if volume else ""
    found = _ABSENT.search(words) or _NO_KEY.search(words)
    if found is not None:
        known = found.groupdict()
        return MissingSource(known["kind"].lower(), known["name"], known.get("key", ""), mounted)
    key = _NO_KEY_OF_MOUNT.search(words)
    if key is None:
        return None
    return MissingSource("secret" if key["kind"] == "secret" else "configmap", "", key["key"], mounted)


def field_of_source(job: JobSpec, missing: MissingSource) -> str:
    """Return the job's field that refers to what is missing; empty where none does, as for one that a patch added."""
    return next(_fields(job, missing), "")


def _fields(job: JobSpec, missing: MissingSource) -> Iterator[str]:
    volume = re.fullmatch(r"(mount|secret)-(\d+)", missing.volume)
    if volume is not None:
        mounts = [f"mounts.{index}" for index in range(len(job.mounts))]
        secrets = [f"secrets.{name}" for name, each in job.secrets.items() if each.as_file]
        yield from (mounts if volume[1] == "mount" else secrets)[int(volume[2]) :][:1]
    for name, secret in job.secrets.items():
        source, _, key = (secret.kubernetes or "").partition("/")
        if missing.kind == "secret" and missing.name == source and missing.key in {"", key}:
            yield f"secrets.{name}"
    for index, each in enumerate(job.mounts):
        if missing.kind == "configmap" and each.type == "config" and each.source == missing.name:
            yield f"mounts.{index}"
