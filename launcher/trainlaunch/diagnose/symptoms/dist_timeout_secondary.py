from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, POSSIBLE, Case, Diagnosis, EvidenceLine, of_one_text
from trainlaunch.diagnose.base.container_snapshot import IDLE, LONG, ContainerSnapshot, Process, duration, place, slept
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL654"
NAME = "dist-timeout-secondary"
_WATCHDOG = LogPattern("imed out", r"(?:NCCL|collective) operation.* timed out|have failed or timed out")
_CAUGHT = LogPattern("NCCL", r"Watchdog caught collective operation timeout")
_COLLECTIVE = LogPattern("NCCL", r"collective operation timeout: WorkNCCL")
_GLOO = LogPattern(
    "rror",
    r"Timed out waiting \d+ms for (?:recv|send|peer)|Connection closed by peer|Read error \[.*\]: Connection reset",
)
_ABORTED = LogPattern("NCCL", r"NCCL communicator (?:was|has been) aborted|ncclRemoteError|ncclInternalError.*remote")
_REMOTE = LogPattern("rror", r"remote process exited or there was a network error|ncclRemoteError")
_HEARTBEAT = LogPattern(
    "NCCL",
    r"ProcessGroupNCCL(?:'s watchdog got stuck| watchdog hang)|HeartbeatMonitor|monitored.*heartbeat.*NCCL",
)
_STORE = LogPattern(
    "rror", r"DistNetworkError: (?:failed to recv|Broken pipe)|DistNetworkError: .*Connection (?:reset|closed)"
)
WATCHDOG = (_CAUGHT, _COLLECTIVE, _HEARTBEAT)
_BARRIER = LogPattern("rror", r"monitoredBarrier|store->get\('.*'\) got error|wait timeout after \d+ms, keys")

diagnose = of_one_text(
    CODE,
    NAME,
    (_CAUGHT, _COLLECTIVE, _WATCHDOG, _GLOO, _ABORTED, _REMOTE, _HEARTBEAT, _STORE, _BARRIER),
    "a rank waited for another rank that did not come: the cause is what that rank did before",
    "look for the rank that reports something else, or nothing, before this line; a longer timeout only waits longer",
    LIKELY,
)


def diagnose_live(case: Case, look: ContainerSnapshot) -> Diagnosis | None:
    """Match a rank that waits for one that has ended, or that stands elsewhere."""
    ranks = [each for each in look.mains if each.rank is not None and not each.dead]
    waiting = [each for each in ranks if each.collective or (not each.stack and _does_nothing(each))]
    if not waiting:
        return None
    first = waiting[0]
    world = max((each.local_world or 0) for each in ranks)
    gone = sorted(set(range(world)) - {each.local_rank for each in ranks if each.local_rank is not None})
    others = [each for each in ranks if each.stack and not each.collective and slept(each) >= LONG]
    who = f"rank {first.rank} waits" + (f" in {first.collective} {place(first)}" if first.collective else "")
    shown = EvidenceLine("machine", 0, f"pid {first.pid}: in the kernel's {first.kernel or '?'}{duration(first)}")
    if gone:
        return Diagnosis(
            CODE,
            NAME,
            f"{who}, and local rank {', '.join(map(str, gone))} of {world} does not run any more",
            (shown,),
            "look for that rank's own error in the log: it is the cause; end the run, which waits for ever",
            LIKELY if first.collective else POSSIBLE,
        )
    if first.collective and others:
        return Diagnosis(
            CODE,
            NAME,
            f"{who} for rank {others[0].rank}, which has been {place(others[0])}{duration(others[0])}",
            (shown,),
            "look at what that rank waits for there",
            LIKELY,
        )
    if first.collective and len(waiting) == len(ranks) and slept(first) >= 6 * LONG:
        return Diagnosis(
            CODE,
            NAME,
            f"{who}{duration(first)}: all ranks of this container do, so one elsewhere has not come",
            (shown,),
            "look at the ranks of the other nodes",
            POSSIBLE,
        )
    return None


def _does_nothing(process: Process) -> bool:
    return process.cpu is not None and process.cpu < IDLE and slept(process) >= LONG
