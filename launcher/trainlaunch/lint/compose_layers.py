"""Files of Compose that belong together: an override, what is extended, and those that users lay over by `-f`."""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path

from trainlaunch.formats.compose.read import read_documents
from trainlaunch.formats.workload import ABSENT, Workload
from trainlaunch.repository.regular_files import read_regular
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.yamltree.text_file import MAX_BYTES
from trainlaunch.yamltree.tolerant import Documents, documents

_BASES = frozenset({"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"})


def overridden(found: Documents, name: str) -> Documents:
    """Return the documents of a file over which Compose lays its override without being asked, and those of that."""
    path = Path(name)
    if path.name not in _BASES:
        return found
    stem = path.name.rpartition(".")[0]
    for suffix in (".yml", ".yaml"):
        over = _documents_of(path.with_name(f"{stem}.override{suffix}"), path)
        if over is not None:
            return found._replace(nodes=(*found.nodes, *over.nodes))
    return found


def extended(first: str, path: str, named_by: str) -> Documents | None:
    """Return the documents of a file that another one extends, its path relative to that one, as Compose takes it.

    `first` is the file that is read with all of them, from which none may lead away.
    """
    named = Path(posixpath.normpath(posixpath.join(posixpath.dirname(named_by), path)))
    return _documents_of(named, Path(first))


def is_laid_over(text: Path, service: str) -> bool:
    """Return whether another file of Compose beside a text has a service, and may say more of it; empty for any."""
    return any(not service or services is None or service in services for services in _beside(text))


def sizes_beside(text: Path) -> frozenset[str]:
    """Return the services whose /dev/shm another file of Compose beside a text sets, one that can't run alone."""
    return frozenset(name for services in _beside(text) for name, sized in (services or {}).items() if sized)


def _beside(text: Path) -> Iterator[Mapping[str, bool] | None]:
    others = (each for each in text.parent.glob("*compose*") if each.suffix in {".yml", ".yaml"})
    yield from (_services_of(each) for each in others if each.name != text.name and ITS_OWN.holds(each, text))


@functools.lru_cache(maxsize=4096)  # of which each text beside it asks for the same
def _services_of(path: Path) -> Mapping[str, bool] | None:
    """Return the services of a file, each with whether it only adds a size of /dev/shm; None where it can't be read."""
    found = _documents_of(path, path)
    if found is None:
        return None
    return {each.place.removeprefix("services."): _only_sizes(each) for each in read_documents(found)}


def _only_sizes(service: Workload) -> bool:
    """Return whether a service sizes its /dev/shm, and has no image of its own to run."""
    built = any(each.partition(".build")[0] == "service" for each in service.rest)
    return service.image is None and not built and service.shm.kind != ABSENT


def _documents_of(path: Path, named_by: Path) -> Documents | None:
    """Return the documents of a file of the same repository; None where there is none that can be read."""
    try:
        text = read_regular(path, MAX_BYTES).decode() if ITS_OWN.holds(path, named_by) else ""
    except (OSError, ValueError):
        return None
    found = documents(text, str(path)) if text else None
    return found if found is not None and found.broken is None else None
