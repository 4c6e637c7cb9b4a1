"""A process ran out of file descriptors, often while tensors were passed between processes; /dev/shm is not full.

**What you see**: `received 0 items of ancdata`, or `unable to open shared memory object … Too many open files
(24)`.
**Why**: with the file_descriptor strategy each shared storage costs a descriptor, for as long as a batch is kept.
Files that a dataset opens and never closes use the same limit.
**Way out**: raise ulimits nofile, or copy what is kept of a batch (`.clone()`), or return fewer tensors a batch.
**References**: pytorch/pytorch#973.
"""

from __future__ import annotations

from launcher.diagnose.diagnosis import CERTAIN, LIKELY, Diagnosis, line_with
from launcher.diagnose.evidence import Evidence

CODE = "TL607"
NAME = "open-files-exhausted"
_PASSES_TENSORS = r"items of ancdata|shared memory|multiprocessing/(reductions|reduction|resource_sharer)\.py"


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match the two texts of RLIMIT_NOFILE."""
    saw = line_with(evidence.log, r"received 0 items of ancdata|Too many open files")
    if not saw:
        return None
    own = evidence.where.starts_container
    more = "set ulimits: {nofile: 65536}" if own else "raise nofile in /etc/security/limits.conf"
    if line_with(evidence.log, _PASSES_TENSORS):
        sentence = "a process ran out of file descriptors, one for each tensor that it shares; /dev/shm is not full"
        fix = f"{more}, or keep `.clone()`s instead of the workers' own tensors"
        return Diagnosis(CODE, NAME, sentence, saw, fix, CERTAIN)
    sentence = "a process ran out of file descriptors"
    fix = f"close what is opened for each sample, or {more}"
    return Diagnosis(CODE, NAME, sentence, saw, fix, LIKELY)
