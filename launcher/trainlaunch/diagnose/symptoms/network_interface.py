from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Story, of_stories
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL656"
NAME = "network-interface"
_NONE = LogPattern(
    "NCCL", r"Bootstrap : no socket interface found|[Nn]o (?:socket )?interface found|NCCL_SOCKET_IFNAME .*not found"
)
_GLOO = LogPattern(
    "rror",
    r"Unable to find address for: \S+|connectFullMesh failed|ifa != nullptr\. Unable to find|interface.*not found",
)
_ROUTE = LogPattern("NCCL", r"[sS]ocket\w{0,40}: (?:connect|Connect).*(?:No route to host|Network is unreachable)")
_ROUTE_ERROR = LogPattern(
    "NCCL", r"Call to connect (?:to \S+ )?(?:failed|returned).*(?:No route to host|Network is unreachable)"
)

_LINK_LOCAL = LogPattern("169.254.", r"(?:Connect to|connect to|connecting to address) 169\.254\.\d+\.\d+")
_COMPLETION = LogPattern("rror", r"Got completion (?:from peer \S+ )?with (?:status=)?(?:error )?12\b")
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

diagnose = of_stories(
    CODE,
    NAME,
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
            (_NONE, _GLOO, _ROUTE, _ROUTE_ERROR),
            "the ranks talk over a network interface that does not lead to the others",
            f"{_NAMES}, or unset both where they name one that is not there",
            LIKELY,
            _LOOK,
        ),
    ),
)
