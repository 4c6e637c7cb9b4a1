"""A size of /dev/shm is stated where Docker Swarm doesn't take one.

**Why it matters**: `docker service create` has no `--shm-size` (`unknown flag: --shm-size`, exit 125), and `docker
stack deploy` leaves shm_size out (`Ignoring unsupported options: shm_size`). A tmpfs mount at /dev/shm is taken.

**Example**:

```shell
docker service create --name train --shm-size 8g trainer:1 python train.py
```

**Use instead**:

```shell
docker service create --name train --mount type=tmpfs,target=/dev/shm,tmpfs-size=8589934592 trainer:1 python train.py
```

**Fix**: none by itself: `docker compose` reads the same file and does take shm_size.

**References**: docker service create; Docker's documentation of compose files for swarm.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import SIZE
from launcher.rules.written.model import COMPOSE, DEFECTS, Finding, WrittenFile, at, text_at

CODE = "TL347"
NAME = "shm-size-in-swarm"
SEVERITY = Severity.INFO
GROUP = DEFECTS
_SWARMS = ("placement", "update_config", "rollback_config", "endpoint_mode")
_VERBS = (["create"], ["update"])


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each size of `docker service`, and an info for one of a service that swarm's keys place."""
    yield from _of_commands(file)
    for written in file.containers if file.kind == COMPOSE else ():
        shm, deploy = written.workload.shm, at(written.own, "deploy")
        key = next((each for each in _SWARMS if at(deploy, each) is not None), None)
        if text_at(deploy, "mode") == "global":
            key = "mode: global"
        if shm.kind != SIZE or shm.span is None or key is None:
            continue
        yield Finding(
            Diagnostic(
                CODE,
                f"docker stack deploy, for which deploy.{key} is, leaves shm_size out",
                "mount a tmpfs at /dev/shm instead: type tmpfs, target /dev/shm, tmpfs.size in bytes",
                why="swarm's services have no such option; docker compose has",
                severity=SEVERITY,
                span=shm.span,
                field=written.workload.place,
            ),
            NAME,
        )


def _of_commands(file: WrittenFile) -> Iterator[Finding]:
    for command in file.commands:
        words = [each.text for each in command]
        at_service = next((index for index, each in enumerate(words[:4]) if each == "service"), 0)
        if not at_service or "docker" not in words[:at_service] or words[at_service + 1 : at_service + 2] not in _VERBS:
            continue
        for word in command[at_service + 2 :]:
            if word.known and word.text.partition("=")[0] == "--shm-size":
                yield Finding(
                    Diagnostic(
                        CODE,
                        "docker service has no flag --shm-size",
                        "write --mount type=tmpfs,target=/dev/shm,tmpfs-size=BYTES",
                        why="docker stops with `unknown flag: --shm-size`, exit 125",
                        severity=Severity.ERROR,
                        span=file.source.span(word.start, word.end),
                    ),
                    NAME,
                )
