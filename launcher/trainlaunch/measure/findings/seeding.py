"""What to type so that a generator of random numbers differs between workers and between epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def seeding(generator: str, kind: str) -> str:
    """Return the line of a worker_init_fn that seeds a generator of that class differently in each worker and epoch."""
    if generator in {"numpy.random", "random"}:
        module = "np.random" if generator == "numpy.random" else generator
        return f"{module}.seed(torch.initial_seed() % 2**32)"
    if generator == "torch":
        return "drop the call of torch.manual_seed: torch has seeded each worker"
    own = f"torch.utils.data.get_worker_info().{generator}" if generator.startswith("dataset.") else generator
    made = {
        "numpy.random.Generator": f"{own} = np.random.default_rng(torch.initial_seed() % 2**32)",
        "numpy.random.RandomState": f"{own}.seed(torch.initial_seed() % 2**32)",
        "random.Random": f"{own}.seed(torch.initial_seed())",
        "torch.Generator": f"{own}.manual_seed(torch.initial_seed())",
    }
    return made[kind]


def more(facts: Mapping[str, Any]) -> str:
    """Return which `others` repeat beside the generator that is named; empty where none does."""
    others = [str(each) for each in facts.get("others", ())]
    return f", and from {', '.join(others)}" if others else ""
