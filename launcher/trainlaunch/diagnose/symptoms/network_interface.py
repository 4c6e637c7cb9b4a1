from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, of_one_text
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

diagnose = of_one_text(
    CODE,
    NAME,
    (_NONE, _GLOO, _ROUTE, _ROUTE_ERROR),
    "the ranks talk over a network interface that does not lead to the others",
    "set env: {NCCL_SOCKET_IFNAME: …, GLOO_SOCKET_IFNAME: …} to the interface that the nodes share (`ip -br addr` "
    "inside), or unset both where they name one that is not there",
    LIKELY,
    commands=("ip -br addr",),
)
