"""Workers that start anew each epoch draw the numbers of the epoch before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.probe.base.draws import draws
from trainlaunch.inside.probe.base.loader_stats import Seen

MOST = 10  # paths that are named


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield one finding of generators that begin each epoch where they began the first; not of workers that live on."""
    if seen.iterable or not seen.trained or seen.persistent_workers:
        return
    found = draws(seen)
    first, second = (epoch[0] for epoch in found.epochs)
    equal = [path for path in found.advancing() if second.get(path, [])[:3] == first[path][:3]]
    if equal:
        kind = first[equal[0]][0].split(" ")[0]
        facts = {"generator": equal[0], "class": kind, "others": equal[1:MOST]}
        yield {**facts, "num_workers": seen.num_workers}
