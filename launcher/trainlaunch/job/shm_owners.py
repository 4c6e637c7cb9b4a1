"""What else takes /dev/shm by a law of its own: an entry of shm_extra that is called so needs no size.

Each law is that of the owner's source, and a bound: what it may take at most. Options and variables are read where the
job sets them; a rule says what a script passes from inside.

ray     python/ray/_private/utils.py and ray_constants.py: an object store of 30 % of the memory, at most 200 GB. It is
        made in /dev/shm only where as much as the store is free there; else it is in /tmp, or refused above 10 GB. One
        of Ray's own size takes at most 95 % of what is free, where that is more than 10 GB.
vllm    v1/executor/multiproc_executor.py, distributed/device_communicators/shm_broadcast.py: with several workers a
        ring of 10 chunks to all of them, one of 10 × 24 MiB back from each, and one of 6 × 4 MiB for each group of
        tensor parallel workers. tmpfs gives pages as messages fill them, so mostly it takes much less; a worker that
        gets none dies of SIGBUS.
nccl    src/transport/shm.cc: 9,637,892 bytes a segment between two ranks, for some channels; fails with "failed to
        extend /dev/shm/nccl-…".
"""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from trainlaunch.least_shm import RAY_ROOM
from trainlaunch.units import MIB, human_size, round_up

RAY, VLLM, NCCL = "ray", "vllm", "nccl"
WITH_LAW = (RAY, VLLM, NCCL)
NCCL_ON_ONE_NODE = 128 * MIB  # per rank, an estimate: SHM segments of NCCL's channels
NCCL_BETWEEN_NODES = 40 * MIB  # per rank: the proxy pool of the network transport
_RAY_SHARE, _RAY_MOST = 0.3, 200 * 10**9
STORE = ("--object-store-memory",)
TENSOR, _PIPELINE = ("--tensor-parallel-size", "-tp"), ("--pipeline-parallel-size", "-pp")
_DATA = ("--data-parallel-size-local", "-dpl", "--data-parallel-size", "-dp")
_CHUNKS, _BACK, _OF_GROUP = 10, 24 * MIB, 6 * 4 * MIB
_RING = 16  # MiB a chunk, VLLM_MQ_MAX_CHUNK_BYTES_MB
_VLLM_MODULE = r"vllm(?:\..+)?"
_VLLM_IMAGE = re.compile(r"(?:^|/)vllm-openai(?:[:@].*)?$")

Commands = Sequence[tuple[str, ...]]


class Surroundings(NamedTuple):
    """What the laws ask of a job: commands, variables, memory (None: no limit), and its GPUs, ranks and nodes."""

    commands: Commands
    env: Mapping[str, str]
    memory: int | None
    gpus: int
    ranks: int
    nodes: int


class OwnerLaw(NamedTuple):
    """The most bytes that an owner takes, and how that is counted. `needed`: it has to have them, or is slow."""

    size: int
    derivation: str
    needed: bool = False


def law_of(owner: str, job: Surroundings) -> OwnerLaw | None:
    """Return the law of an owner in a job; None where it has none, or the job doesn't set what it asks for."""
    laws = {RAY: _ray, VLLM: vllm_law, NCCL: _nccl}
    return laws[owner](job) if owner in laws else None


def _ray(job: Surroundings) -> OwnerLaw | None:
    stated = _option(job.commands, STORE)
    store = _number(stated) or _number(_overrides(job.commands).get("object_store_memory", ""))
    told = f"object store {human_size(store or 0)}, as it is set"
    if store is None:
        if job.memory is None:
            return None
        share = _fraction(job.env.get("RAY_DEFAULT_OBJECT_STORE_MEMORY_PROPORTION", "")) or _RAY_SHARE
        most = _number(job.env.get("RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES", "")) or _RAY_MOST
        store = min(int(job.memory * share), most)
        told = f"object store of {100 * share:g} % of resources.memory, at most {human_size(most)}"
    more, of = RAY_ROOM
    return OwnerLaw(
        round_up(store * more // of, MIB), f"{told}, and a tenth: it is on disk where less than the store is free", True
    )


def vllm_law(job: Surroundings) -> OwnerLaw:
    """Return what vLLM's queues take: nothing for a single worker."""
    serves = any(is_vllm(each) for each in job.commands)
    tensor = _number(_option(job.commands, TENSOR)) or (1 if serves else max(1, job.gpus))
    pipeline = _number(_option(job.commands, _PIPELINE)) or 1
    engines = _number(_option(job.commands, _DATA)) or 1
    workers = tensor * pipeline
    if workers == 1:
        return OwnerLaw(0, "one worker, which has no queues")
    ring = (_number(job.env.get("VLLM_MQ_MAX_CHUNK_BYTES_MB", "")) or _RING) * MIB * _CHUNKS
    one = ring + workers * _BACK * _CHUNKS + pipeline * _OF_GROUP * (tensor > 1)
    back, group = human_size(_BACK * _CHUNKS), f" + {human_size(pipeline * _OF_GROUP)}" * (tensor > 1)
    several = f"{engines} engines × " if engines > 1 else ""
    told = f"{several}({human_size(ring)} to {workers} workers + {workers} × {back} back{group}) of queues, at most"
    return OwnerLaw(round_up(engines * one, MIB), told)


def _nccl(job: Surroundings) -> OwnerLaw:
    of_rank = (job.ranks > 1) * NCCL_ON_ONE_NODE + (job.nodes > 1) * NCCL_BETWEEN_NODES
    return OwnerLaw(job.ranks * of_rank, f"{job.ranks} ranks × {human_size(of_rank)}, an estimate")


def is_vllm(words: Sequence[str]) -> bool:
    """Whether a command starts vLLM's server: its program, or its module."""
    for at, word in enumerate(words):
        if posixpath.basename(word) == VLLM and words[at + 1 : at + 2] == ("serve",):
            return True
        if word == "-m" and at + 1 < len(words) and re.fullmatch(_VLLM_MODULE, words[at + 1]):
            return True
    return False


def as_started(image: str | None, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command as vLLM's image starts it, whose ENTRYPOINT is `vllm serve`: options alone stand behind it."""
    served = image and _VLLM_IMAGE.search(image) and words and words[0].startswith("-")
    return (VLLM, "serve", *words) if served else words


def starts_ray(words: Sequence[str]) -> bool:
    """Whether a command starts Ray on its machine: `ray start`; `ray job submit` asks one that runs elsewhere."""
    return any(posixpath.basename(one) == RAY and other == "start" for one, other in itertools.pairwise(words))


def _option(commands: Iterable[Sequence[str]], names: Sequence[str]) -> str:
    """Return the value of the first of these options that a command has, joined by `=` or as its next word."""
    for name in names:
        for words in commands:
            for at, word in enumerate(words):
                option, equals, value = word.partition("=")
                if option.replace("_", "-") == name:
                    return value if equals else next(iter(words[at + 1 : at + 2]), "")
    return ""


def _overrides(commands: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return settings like `ray_init.object_store_memory=1000`, by their last name."""
    pairs = (word.lstrip("+").partition("=") for words in commands for word in words if not word.startswith("-"))
    return {name.rpartition(".")[2]: value for name, equals, value in pairs if equals}


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[1-9]\d{0,17}", text) else None


def _fraction(text: str) -> float | None:
    return float(text) if re.fullmatch(r"0?\.\d+|1(?:\.0*)?", text) and float(text) else None
