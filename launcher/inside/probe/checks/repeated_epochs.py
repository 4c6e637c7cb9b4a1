"""Workers that start anew each epoch draw the numbers of the epoch before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from launcher.inside.probe.draws import draws
from launcher.inside.probe.seen import Seen


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield each generator that begins every epoch where it began the first; not of workers that live on."""
    if seen.iterable or not seen.trained or seen.persistent_workers:
        return
    found = draws(seen)
    first, second = (epoch[0] for epoch in found.epochs)
    for path in found.advancing():
        if second.get(path) == first[path]:
            kind = first[path][0].split(" ")[0]
            yield {"generator": path, "class": kind, "num_workers": seen.num_workers}
