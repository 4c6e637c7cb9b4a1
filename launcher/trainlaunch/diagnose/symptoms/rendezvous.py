from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Story, of_stories
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL655"
NAME = "rendezvous"
_LISTEN = LogPattern(
    "rror", r"server socket has failed to (?:listen|bind)|EADDRINUSE|errno: 98 - Address already in use|\[Errno 98\]"
)
_UNSET = LogPattern("rror", r"env:// rendezvous: environment variable (?P<name>\w+) expected, but not set")
_JOINED = LogPattern("rror", r"waiting for clients\. (?P<joined>\d+)/(?P<all>\d+) clients joined")
_NAME = LogPattern(
    "rror",
    r"(?:Rendezvous|DistNetwork|DistStore|gaierror|Runtime)\w*(?:Error)?: .*(?:Name or service not known|"
    r"Temporary failure in name resolution|nodename nor servname|getaddrinfo failed)",
)
_LOCALHOST = LogPattern(
    "imed out",
    r"client socket has timed out after \d+ ?(?:ms|milliseconds) while trying to connect to "
    r"\((?:localhost|127\.0\.0\.1), ",
)
_ERROR = LogPattern("rror", r"\bRendezvous(?:Connection|Timeout|State)?Error\b|RendezvousClosedError")
_CLIENT = LogPattern("imed out", r"client socket has timed out after \d+ ?(?:ms|milliseconds) while trying to connect")
_CLIENT_FAILED = LogPattern(
    "rror", r"client socket has failed to connect to .* (?:after|Connection refused)|DistNetworkError: .*connect"
)
_STORE = LogPattern("rror", r"(?:TCPStore|DistStoreError).*[Tt]imed out after \d+ seconds waiting for clients")
_TOGETHER = (
    "start all nodes at the same time; on Kubernetes node 0's Service needs publishNotReadyAddresses: true; "
    "where images are pulled for long, pass `--rdzv-conf join_timeout=1800`"
)

diagnose = of_stories(
    CODE,
    NAME,
    (
        Story(
            (_LISTEN,),
            "the port that the ranks meet at is taken by another process",
            "set torchrun.rdzv_port to a free port (`torchrun --master-port`, or --standalone on one node), and give "
            "each "
            "run of a shared host its own",
        ),
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
            (_ERROR, _CLIENT, _CLIENT_FAILED, _STORE),
            "the nodes did not find each other in time: node 0 was not reachable by that name and port",
            _TOGETHER,
        ),
    ),
)
