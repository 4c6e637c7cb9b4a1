"""Ranks that do not find, or lose, each other."""

from __future__ import annotations

from trainlaunch.diagnose.base.account import is_echo
from trainlaunch.diagnose.base.case import (
    LIKELY,
    POSSIBLE,
    Case,
    EvidenceLine,
    Story,
    Symptom,
    Told,
    of_one_text,
    of_stories,
    seen,
)
from trainlaunch.diagnose.base.container_snapshot import IDLE, LONG, ContainerSnapshot, Process, duration, place, slept
from trainlaunch.diagnose.base.log_patterns import LogPattern

_NONE = LogPattern(
    "NCCL", r"Bootstrap : no socket interface found|[Nn]o (?:socket )?interface found|NCCL_SOCKET_IFNAME .*not found"
)
_NETWORK_INTERFACE_GLOO = LogPattern(
    "rror",
    r"Unable to find address for: \S+|connectFullMesh failed|ifa != nullptr\. Unable to find|interface.*not found",
)
_ROUTE = LogPattern("NCCL", r"[sS]ocket\w{0,40}: (?:connect|Connect).*(?:No route to host|Network is unreachable)")
_ROUTE_ERROR = LogPattern(
    "NCCL", r"Call to connect (?:to \S+ )?(?:failed|returned).*(?:No route to host|Network is unreachable)"
)

_LINK_LOCAL = LogPattern("NCCL", r"(?:Connect to|connect to|connecting to address) 169\.254\.\d+\.\d+")
_COMPLETION = LogPattern("NCCL", r"Got completion (?:from peer \S+ )?with (?:status=)?(?:\w+\(|error )?12\b")
_QUEUE_PAIR = LogPattern("ibv_", r"Call to ibv_modify_qp failed|ibv_modify_qp failed with")
_EFA = LogPattern(
    "NCCL",
    r"NET/OFI (?:OFI )?fi_getinfo\(\) call failed|NET/OFI.{0,60}(?:No eligible providers|Could not find any optimal)",
)
_NAMES = (
    "set env: {NCCL_SOCKET_IFNAME: …, GLOO_SOCKET_IFNAME: …} to the interface that the nodes share (`ip "
    "-br addr` inside)"
)
_LOOK = ("ip -br addr",)
_RDMA = (
    "let both ends use the same GID: set env: {NCCL_IB_GID_INDEX: '3'} (RoCE v2; `show_gids` lists them), NCCL_IB_HCA "
    "to the "
    "devices that reach each other, NCCL_CROSS_NIC: '0' on rails; NCCL_IB_DISABLE: '1' shows whether it is RDMA; "
    "neither "
    "memlock nor /dev/shm is it"
)

_network_interface = of_stories(
    "TL656",
    "network-interface",
    (
        Story(
            (_COMPLETION,),
            "an RDMA transfer got no answer until its retries were over (completion error 12): the two devices don't "
            "reach each other, or the other rank had ended before",
            f"where no rank ended before, {_RDMA}",
            LIKELY,
            ("ibv_devinfo", "show_gids"),
        ),
        Story(
            (_QUEUE_PAIR,),
            "two RDMA devices can't reach each other: the queue pair between them could not be set up",
            _RDMA,
            LIKELY,
            ("ibv_devinfo", "show_gids"),
        ),
        Story(
            (_EFA,),
            "NCCL's libfabric plugin finds no EFA device in the container",
            "give the container the devices (/dev/infiniband; on Kubernetes the resource vpc.amazonaws.com/efa) and "
            "memlock -1, and look with `fi_info -p efa` inside; env: {FI_PROVIDER: tcp} goes without",
            LIKELY,
            ("fi_info -p efa",),
        ),
        Story(
            (_LINK_LOCAL,),
            "NCCL chose an interface whose address (169.254…) leads to nobody but this host",
            _NAMES,
            LIKELY,
            _LOOK,
        ),
        Story(
            (_NONE, _NETWORK_INTERFACE_GLOO, _ROUTE, _ROUTE_ERROR),
            "the ranks talk over a network interface that does not lead to the others",
            f"{_NAMES}, or unset both where they name one that is not there",
            LIKELY,
            _LOOK,
        ),
    ),
)


_LISTEN = LogPattern(
    "rror", r"server socket has failed to (?:listen|bind)|EADDRINUSE|errno: 98 - Address already in use"
)
_IN_USE = LogPattern("rror: [Errno", r"\[Errno 98\]")
_UNSET = LogPattern("rror", r"env:// rendezvous: environment variable (?P<name>\w+) expected, but not set")
_JOINED = LogPattern("rror", r"waiting for clients\. (?P<joined>\d+)/(?P<all>\d+) clients joined")
_NAME = LogPattern(
    "rror",
    r"(?:Rendezvous|DistNetwork|DistStore|gaierror|Runtime)\w{0,12}: .*(?:Name or service not known|"
    r"Temporary failure in name resolution|nodename nor servname|getaddrinfo failed)",
)
_LOCALHOST = LogPattern(
    "imed out",
    r"client socket has timed out after \d+ ?(?:ms|milliseconds) while trying to connect to "
    r"\((?:localhost|127\.0\.0\.1), ",
)
_ERROR = LogPattern("rror", r"(?<!of type )\bRendezvous(?:Connection|Timeout|State)?Error\b|RendezvousClosedError")
_CLIENT = LogPattern("imed out", r"client socket has timed out after \d+ ?(?:ms|milliseconds) while trying to connect")
_CLIENT_FAILED = LogPattern(
    "rror", r"client socket has failed to connect to .* (?:after|Connection refused)|DistNetworkError: .*connect"
)
_RENDEZVOUS_STORE = LogPattern(
    "rror", r"(?:TCPStore|DistStoreError).*[Tt]imed out after \d+ seconds waiting for clients"
)
_TOGETHER = (
    "start all nodes at the same time; on Kubernetes node 0's Service needs publishNotReadyAddresses: true; "
    "where images are pulled for long, pass `--rdzv-conf join_timeout=1800`"
)

_TAKEN = (
    "the port that the ranks meet at is taken by another process",
    "set torchrun.rdzv_port to a free port (`torchrun --master-port`, or --standalone on one node), and give each "
    "run of a shared host its own",
)
_rendezvous = of_stories(
    "TL655",
    "rendezvous",
    (
        Story((_LISTEN,), *_TAKEN),
        Story((_IN_USE,), *_TAKEN, within=r"torch/distributed|rendezvous|TCPStore"),
        Story(
            (_UNSET,),
            "the script waits for other ranks, and nobody started it as one: <name> is not set",
            "start it with torchrun (the torchrun block, or `torchrun --standalone --nproc-per-node N train.py`), or "
            "without its distributed mode; srun and mpirun set other variables, which the script has to read",
        ),
        Story(
            (_JOINED,),
            "only <joined> of <all> processes came to where the ranks meet in time: the others did not start, or can't "
            "reach it",
            "look at the logs of the others for their own error first; then whether MASTER_ADDR and MASTER_PORT are "
            "the "
            "same for all and reachable from each (no firewall, `network: host` or one network), and the number of "
            "ranks",
        ),
        Story(
            (_LOCALHOST,),
            "the ranks look for the first one at localhost, where it is not: each node but the first then asks itself",
            "set MASTER_ADDR (or --rdzv-endpoint) to the name of the first node for all; a script that falls back to "
            "localhost (`|| echo localhost`) hides that the name was not found",
            LIKELY,
        ),
        Story(
            (_NAME,),
            "the name of the first node could not be resolved",
            "use a name that every node knows; on Kubernetes that is POD.SERVICE of a headless Service with "
            "publishNotReadyAddresses: true and the pods' subdomain, on Slurm `scontrol show hostnames | head -1`",
        ),
        Story(
            (_ERROR, _CLIENT, _CLIENT_FAILED, _RENDEZVOUS_STORE),
            "the nodes did not find each other in time: node 0 was not reachable by that name and port",
            _TOGETHER,
        ),
    ),
)


_WATCHDOG = LogPattern("imed out", r"(?:NCCL|collective) operation.* timed out|have failed or timed out")
_CAUGHT = LogPattern("NCCL", r"Watchdog caught collective operation timeout")
_COLLECTIVE = LogPattern("NCCL", r"collective operation timeout: WorkNCCL")
_DIST_TIMEOUT_SECONDARY_GLOO = LogPattern(
    "rror",
    r"Timed out waiting \d+ms for (?:recv|send|peer)|Application timeout caused pair closure|Connection closed by peer"
    r"|Read error \[.*\]: Connection reset",
)
_ABORTED = LogPattern("NCCL", r"NCCL communicator (?:was|has been) aborted|ncclRemoteError|ncclInternalError.*remote")
_REMOTE = LogPattern("rror", r"remote process exited or there was a network error|ncclRemoteError")
_HEARTBEAT = LogPattern(
    "NCCL",
    r"ProcessGroupNCCL(?:'s watchdog got stuck| watchdog hang)|HeartbeatMonitor|monitored.*heartbeat.*NCCL",
)
_DIST_TIMEOUT_SECONDARY_STORE = LogPattern(
    "rror", r"DistNetworkError: (?:failed to recv|Broken pipe)|DistNetworkError: .*Connection (?:reset|closed)"
)
WATCHDOG = (_CAUGHT, _COLLECTIVE, _HEARTBEAT)
_BARRIER = LogPattern("rror", r"monitoredBarrier|store->get\('.*'\) got error|wait timeout after \d+ms, keys")

_dist_timeout_secondary = of_one_text(
    "TL654",
    "dist-timeout-secondary",
    (
        _CAUGHT,
        _COLLECTIVE,
        _WATCHDOG,
        _DIST_TIMEOUT_SECONDARY_GLOO,
        _ABORTED,
        _REMOTE,
        _HEARTBEAT,
        _DIST_TIMEOUT_SECONDARY_STORE,
        _BARRIER,
    ),
    "a rank waited for another rank that did not come: the cause is what that rank did before",
    "look for the rank that reports something else, or nothing, before this line; a longer timeout only waits longer",
    LIKELY,
)


def _dist_timeout_secondary_live(case: Case, look: ContainerSnapshot) -> Told | None:
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
        return Told(
            f"{who}, and local rank {', '.join(map(str, gone))} of {world} does not run any more",
            (shown,),
            "look for that rank's own error in the log: it is the cause; end the run, which waits for ever",
            LIKELY if first.collective else POSSIBLE,
        )
    if first.collective and others:
        return Told(
            f"{who} for rank {others[0].rank}, which has been {place(others[0])}{duration(others[0])}",
            (shown,),
            "look at what that rank waits for there",
            LIKELY,
        )
    if first.collective and len(waiting) == len(ranks) and slept(first) >= 6 * LONG:
        return Told(
            f"{who}{duration(first)}: all ranks of this container do, so one elsewhere has not come",
            (shown,),
            "look at the ranks of the other nodes",
            POSSIBLE,
        )
    return None


def _does_nothing(process: Process) -> bool:
    return process.cpu is not None and process.cpu < IDLE and slept(process) >= LONG


def _rank_ended(case: Case) -> Told | None:
    """Match torchrun's summary where the rank's own words are missing; a signal is another symptom's."""
    failed, raised = case.account.failed, case.raised
    if failed is None or failed.code <= 0 or (raised is not None and not is_echo(raised)):
        return None
    return Told(
        f"rank {failed.rank} ended first, by itself with exit code {failed.code}; what it said is not in this log",
        seen(EvidenceLine("log", failed.line, failed.text.strip())),
        "look at that rank's own output: start torchrun with `--tee 3 --log-dir DIR` (or look into its --log-dir), or "
        "put "
        "`@record` of torch.distributed.elastic.multiprocessing.errors on main(); the other ranks' errors are its "
        "echoes",
        LIKELY,
    )


SYMPTOMS = (
    _network_interface,
    _rendezvous,
    _dist_timeout_secondary._replace(tell_live=_dist_timeout_secondary_live),
    Symptom("TL672", "rank-ended", _rank_ended),
)
