from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL655"
NAME = "rendezvous"
_ERROR = LogPattern("rror", r"\bRendezvous(?:Connection|Timeout|State)?Error\b|RendezvousClosedError")
_CLIENT = LogPattern("imed out", r"client socket has timed out after \d+ ?(?:ms|milliseconds) while trying to connect")
_CLIENT_FAILED = LogPattern(
    "rror", r"client socket has failed to connect to .* (?:after|Connection refused)|DistNetworkError: .*connect"
)
_LISTEN = LogPattern(
    "rror", r"server socket has failed to (?:listen|bind)|EADDRINUSE|errno: 98 - Address already in use"
)
_STORE = LogPattern("rror", r"(?:TCPStore|DistStoreError).*[Tt]imed out after \d+ seconds waiting for clients")


def diagnose(case: Case) -> Diagnosis | None:
    """Match torchrun's and the store's texts."""
    hit = case.first(_LISTEN) or case.first(_ERROR, _CLIENT, _CLIENT_FAILED, _STORE)
    if hit is None:
        return None
    if _LISTEN.found_in(hit.text):
        sentence = "the port that the ranks meet at is taken by another process"
        fix = "set torchrun.rdzv_port to a free port, and give each run of a shared host its own"
    else:
        sentence = "the nodes did not find each other in time: node 0 was not reachable by that name and port"
        fix = (
            "start all nodes at the same time; on Kubernetes its Service needs publishNotReadyAddresses: true; "
            "where images are pulled for long, pass `--rdzv-conf join_timeout=1800`"
        )
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix)
