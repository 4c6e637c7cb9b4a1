"""Exit 125 without a container that ran: the engine refused to start the job.

**What you see**: exit code 125 and the engine's own words, like `cannot set shmsize when running in the {host } IPC
Namespace`.
**Why**: docker and podman use 125 for their own failures; no line of training ran. A job may also end with 125
itself.
**Way out**: change the setting that the engine names; trying again unchanged gives the same answer.
**References**: docs.docker.com/engine/reference/run, section Exit status.
"""

from __future__ import annotations

from launcher.diagnose.diagnosis import LIKELY, Diagnosis, line_with
from launcher.diagnose.evidence import Evidence
from launcher.errors import EXIT_BEFORE_START

CODE = "TL602"
NAME = "engine-refused"
_WORDS = r"^(docker: )?Error( response from daemon)?: "


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match 125: by the engine's words where there are any, else as the job's own code."""
    if evidence.exit_code != EXIT_BEFORE_START or not evidence.where.on_this_machine:
        return None  # a cluster's own reasons are symptoms of their own
    saw = evidence.error or line_with(evidence.log, _WORDS)
    if saw:
        sentence = "the engine refused to start the container; no line of training ran"
        return Diagnosis(CODE, NAME, sentence, saw, "change the setting that the engine names; retrying does not help")
    sentence = "the job itself ended with 125, the code that engines use for a container that could not start"
    saw = "the container ran and its first process returned 125"
    return Diagnosis(CODE, NAME, sentence, saw, "look at the job's own last lines", LIKELY)
