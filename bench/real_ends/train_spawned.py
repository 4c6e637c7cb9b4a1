"""What mp.spawn starts: a process of two that fails."""

from __future__ import annotations

from train import fail


def run(rank: int, exception: str) -> None:
    """Fail in the first of the processes."""
    print(f"rank {rank} step 1 loss 0.5", flush=True)
    if rank == 0:
        fail(exception)
