"""Asks an image once for its Python and its torch."""

from __future__ import annotations

import re

from trainlaunch.errors import TargetUnavailable
from trainlaunch.job.reading.lock_reader import RELEASE
from trainlaunch.run.docker.client import Engine

_ASKS = """\
import platform
from importlib import metadata
try: torch = metadata.version("torch")
except Exception: torch = ""
print(platform.python_version(), torch)
"""
_SHELL = 'command -v python >/dev/null && exec python -c "$0"; exec python3 -c "$0"'
_ANSWER_SECONDS = 60  # a cold image's first files come slowly


def ask_versions(engine: Engine, image: str) -> tuple[str, str]:
    """Return the versions of Python and torch that an image starts, empty for what it doesn't have.

    Its container has no network and is removed.
    """
    try:
        with engine.attempting(f"ask image {image} for its Python") as client:
            made = client.create_container(
                image, entrypoint=["/bin/sh", "-c"], command=[_SHELL, _ASKS], network_disabled=True
            )
            try:
                client.start(made["Id"])
                client.wait(made["Id"], timeout=_ANSWER_SECONDS)
                said: bytes = client.logs(made["Id"], stdout=True, stderr=False)
            finally:
                client.remove_container(made["Id"], force=True)
    except TargetUnavailable:  # no shell, or no answer
        return "", ""
    words = said.decode(errors="replace").split()[:2]
    python, torch = (word if re.fullmatch(RELEASE, word) else "" for word in (*words, "", "")[:2])
    return python, torch if python else ""
