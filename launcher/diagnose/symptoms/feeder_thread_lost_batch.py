"""A worker's feeder thread could not put a batch into /dev/shm: the batch is lost and the job waits for it for ever.

**What you see**: a traceback through `multiprocessing/queues.py … _feed` that ends in `unable to allocate shared
memory`, then nothing more; the container runs on, the GPUs idle.
**Why**: with a collate function that returns ordinary tensors, torch 2.10 and later copy the batch in a thread of
the worker. The error is printed there and dropped; without `DataLoader(timeout=…)` the main process waits for ever.
**Way out**: end the run, enlarge /dev/shm, and give data_loader.timeout so that the next time is an error.
**References**: pytorch/pytorch#161910; CPython Lib/multiprocessing/queues.py, Queue._feed.
"""

from __future__ import annotations

import re

from launcher.diagnose.diagnosis import Diagnosis, line_with, shm_place
from launcher.diagnose.evidence import Evidence
from launcher.diagnose.shm_advice import larger_shm

CODE = "TL603"
NAME = "feeder-thread-lost-batch"
_FEED = re.compile(r"multiprocessing/queues\.py.*_feed")
_FULL = r"unable to (allocate shared memory|write to file </torch_)|No space left on device"


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match the feeder thread's traceback with a full /dev/shm at its end."""
    found = list(_FEED.finditer(evidence.log))
    saw = line_with(evidence.log[found[-1].start() :], _FULL) if found else ""
    if not saw:
        return None
    hung = "the run is hung and will not end by itself" if evidence.exit_code is None else "the job then waited for it"
    sentence = f"{shm_place(evidence)} is full, and a DataLoader worker lost a batch: {hung}"
    first = "end the run, then " if evidence.exit_code is None else ""
    return Diagnosis(CODE, NAME, sentence, saw, f"{first}{larger_shm(evidence)}; data_loader.timeout makes it an error")
