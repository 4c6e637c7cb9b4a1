"""A rank waited in vain for another rank, which is slow, stuck or dead: an echo of what happened there.

**What you see**: `Watchdog caught collective operation timeout`, `Timed out waiting 1800000ms for recv operation`,
`Connection closed by peer`, `NCCL communicator was aborted`, `remote process exited or there was a network error`.
**Why**: a collective needs every rank. When one dies or waits for its data, all others report a timeout of their own,
10 or 30 minutes later.
**Way out**: look for the rank that says something else, or nothing, before these lines.
**References**: pytorch.org/docs/stable/distributed.html; TORCH_NCCL_TRACE_BUFFER_SIZE.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import LIKELY, Diagnosis, seen
from launcher.diagnose.texts import Text

CODE = "TL654"
NAME = "dist-timeout-secondary"
_WATCHDOG = Text("imed out", r"(?:NCCL|collective) operation(?:s have failed or|.*) timed out|have failed or timed out")
_CAUGHT = Text("NCCL", r"Watchdog caught collective operation timeout")
_COLLECTIVE = Text("NCCL", r"collective operation timeout: WorkNCCL")
_GLOO = Text(
    "rror",
    r"Timed out waiting \d+ms for (?:recv|send|peer)|Connection closed by peer|Read error \[.*\]: Connection reset",
)
_ABORTED = Text("NCCL", r"NCCL communicator (?:was|has been) aborted|ncclRemoteError|ncclInternalError.*remote")
_REMOTE = Text("rror", r"remote process exited or there was a network error|ncclRemoteError")
_HEARTBEAT = Text("NCCL", r"ProcessGroupNCCL's watchdog got stuck|HeartbeatMonitor|monitored.*heartbeat.*NCCL")
_BARRIER = Text("rror", r"(?:monitoredBarrier|store->get\('.*'\) got error|wait timeout after \d+ms, keys)")


def diagnose(case: Case) -> Diagnosis | None:
    """Match the texts of NCCL's watchdog, gloo and the store."""
    hit = case.first(_CAUGHT, _COLLECTIVE, _WATCHDOG, _GLOO, _ABORTED, _REMOTE, _HEARTBEAT, _BARRIER)
    if hit is None:
        return None
    sentence = "a rank waited for another rank that did not come: the cause is what that rank did before"
    fix = (
        "look for the rank that reports something else, or nothing, before this line; a longer "
        "timeout only waits longer"
    )
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix, LIKELY)
