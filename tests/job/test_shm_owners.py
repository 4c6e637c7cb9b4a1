"""What other owners of /dev/shm take, by the laws of their sources."""

from __future__ import annotations

from typing import Any

import pytest
from trainlaunch.job.shm_owners import Surroundings, is_vllm, law_of, starts_ray
from trainlaunch.units import GIB, MIB

SERVE = ("vllm", "serve", "org/model")


def around(*command: str, **changed: Any) -> Surroundings:
    """Return a job of one command with 64 GiB and 8 GPUs."""
    return Surroundings((command,), {}, 64 * GIB, 8, 8, 1)._replace(**changed)


def size(owner: str, job: Surroundings) -> int | None:
    law = law_of(owner, job)
    return None if law is None else law.size // MIB


@pytest.mark.parametrize(
    ("options", "mib"),
    [
        ((), 0),
        (("--tensor-parallel-size", "8"), 160 + 8 * 240 + 24),
        (("--tensor-parallel-size=2",), 160 + 2 * 240 + 24),
        (("-tp", "2", "-pp", "2"), 160 + 4 * 240 + 2 * 24),
        (("-pp=2",), 160 + 2 * 240),
        (("-tp", "2", "--data-parallel-size", "2"), 2 * (160 + 2 * 240 + 24)),
        (("--tensor-parallel-size", "{gpus}"), 0),
    ],
)
def test_vllms_queues_follow_its_workers(options: tuple[str, ...], mib: int) -> None:
    """One worker has none; what an option doesn't say in digits isn't guessed."""
    assert size("vllm", around(*SERVE, *options)) == mib


def test_vllm_without_its_server_has_a_worker_a_gpu() -> None:
    """A script states it from inside."""
    assert size("vllm", around("python", "generate.py")) == 160 + 8 * 240 + 24
    assert size("vllm", around(*SERVE, "-tp", "2", env={"VLLM_MQ_MAX_CHUNK_BYTES_MB": "64"})) == 640 + 2 * 240 + 24


def test_rays_store_is_a_share_of_the_memory() -> None:
    """30 %, at most 200 GB, and a tenth; the command's own number, or the share that a variable states, wins."""
    assert size("ray", around("python", "train.py", memory=100 * GIB)) == 33 * 1024
    assert size("ray", around("python", "train.py", memory=2000 * GIB)) == -(-220 * 10**9 // MIB)
    stated = around("ray", "start", "--head", f"--object-store-memory={10 * GIB}", memory=None)
    assert size("ray", stated) == 11 * 1024
    halved = around("python", "train.py", memory=100 * GIB, env={"RAY_DEFAULT_OBJECT_STORE_MEMORY_PROPORTION": "0.5"})
    assert size("ray", halved) == 55 * 1024
    assert size("ray", around("python", "train.py", memory=None)) is None


def test_only_a_store_has_to_have_its_size() -> None:
    """Rings take pages as messages fill them, and NCCL's segments are an estimate."""
    laws = {owner: law_of(owner, around(*SERVE, "-tp", "2")) for owner in ("ray", "vllm", "nccl", "checkpoints")}
    assert {owner: law and law.needed for owner, law in laws.items()} == {
        "ray": True,
        "vllm": False,
        "nccl": False,
        "checkpoints": None,
    }


def test_what_starts_them_is_told_from_what_names_them() -> None:
    """`ray job submit` starts nothing on its machine, and `pip install vllm` serves nothing."""
    assert [is_vllm(each) for each in (SERVE, ("python3", "-m", "vllm.entrypoints.openai.api_server"))] == [True, True]
    assert not any(map(is_vllm, [("pip", "install", "vllm"), ("vllm", "bench"), ("python", "-m", "vllmx")]))
    assert starts_ray(("/usr/bin/ray", "start", "--head"))
    assert not any(map(starts_ray, [("ray", "job", "submit"), ("python", "start")]))
