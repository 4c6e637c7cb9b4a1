"""The nodes did not find each other at the start.

**What you see**: `RendezvousConnectionError`, `RendezvousTimeoutError`, `The client socket has timed out after 60000ms
while trying to connect to (host, port)`, or `The server socket has failed to listen … Address already in use`.
**Why**: the first node's name is known to DNS only once its pod runs (unless its Service publishes not-ready
addresses), its image is still pulled, the port is taken or closed, or the number of nodes is not what was asked for.
Lines about IPv6 addresses are harmless.
**Way out**: start all nodes at the same time, state publishNotReadyAddresses, raise join_timeout in rdzv_conf.
**References**: pytorch.org/docs/stable/elastic/rendezvous.html.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis, seen
from launcher.diagnose.texts import Text

CODE = "TL655"
NAME = "rendezvous"
_ERROR = Text("rror", r"\bRendezvous(?:Connection|Timeout|State)?Error\b|RendezvousClosedError")
_CLIENT = Text("imed out", r"client socket has timed out after \d+ ?(?:ms|milliseconds) while trying to connect")
_CLIENT_FAILED = Text(
    "rror", r"client socket has failed to connect to .* (?:after|Connection refused)|DistNetworkError: .*connect"
)
_LISTEN = Text("rror", r"server socket has failed to (?:listen|bind)|EADDRINUSE|errno: 98 - Address already in use")
_STORE = Text("rror", r"(?:TCPStore|DistStoreError).*[Tt]imed out after \d+ seconds waiting for clients")


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
