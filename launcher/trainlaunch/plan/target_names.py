"""Names that fit their target: a Job's name becomes a label of its pods, and labels hold 63 characters."""

from __future__ import annotations

from trainlaunch.kinds import Kind

MAX_NAME_LENGTH = 63
HASH_DIGITS = 8
JOB_SUFFIX = 1 + HASH_DIGITS  # "-" and a hash of what is immutable, unless the name is fixed


def longest_cluster_name(kind: Kind, nodes: int, *, fixed: bool) -> int:
    """Return how long a job's name may be on Kubernetes, so that the names made from it still fit."""
    hashed = bool(kind.immutable) and not fixed
    return MAX_NAME_LENGTH - len(kind.longest_suffix(nodes)) - (JOB_SUFFIX if hashed else 0)


def node_names(name: str, nodes: int) -> tuple[str, ...]:
    """Return the name of each node's container, which is its host name too: `name` itself where there is one."""
    if nodes == 1:
        return (name,)
    suffixes = [f"-{node}" for node in range(nodes)]
    return tuple(shortened(name, MAX_NAME_LENGTH - len(suffixes[-1])) + each for each in suffixes)


def shortened(name: str, longest: int) -> str:
    """Return `name`, or its start and 8 hex digits of its hash where it is longer than `longest` characters."""
    if len(name) <= longest:
        return name
    import hashlib  # few names are that long

    digest = hashlib.sha256(name.encode()).hexdigest()[:HASH_DIGITS]
    return name[: longest - HASH_DIGITS - 1].rstrip("-.") + "-" + digest
