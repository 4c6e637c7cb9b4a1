"""Files of Compose that belong together: an override, what is extended, and those that users lay over by `-f`."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

from trainlaunch.formats.compose.read import read_documents
from trainlaunch.formats.workload import ABSENT, NONE, Known, Workload
from trainlaunch.least_shm import LEAST_SHM
from trainlaunch.repository.own_files import own_text
from trainlaunch.repository.regular_files import read_regular
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.yamltree.text_file import MAX_BYTES
from trainlaunch.yamltree.tolerant import Documents, documents

_BASES = frozenset({"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"})
_NAMED = re.compile(r"(?=(?:[^/]*[-_.])?compose[-_.])[^/]*\.ya?ml")


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
    others = (services for name, services in _files_in(text.parent) if name != text.name)
    return any(not service or services is None or service in services for services in others)


def sizes_beside(text: Path) -> frozenset[str]:
    """Return the services to whose /dev/shm a file adds a size that is called like the text, and more: a.gpu.yml."""
    names = tuple(f"{text.stem}{each}" for each in ".-_")
    over = (services or {} for name, services in _files_in(text.parent) if name.startswith(names) and name != text.name)
    return frozenset(service for services in over for service, only_sizes in services.items() if only_sizes)


@functools.lru_cache(maxsize=64)  # of which each text in it asks for the same
def _files_in(folder: Path) -> tuple[tuple[str, Mapping[str, bool] | None], ...]:
    """Return the files of Compose in a folder, each with its services, as `_services_of` has them."""
    found = sorted(each for each in folder.glob("*compose*") if _NAMED.fullmatch(each.name))
    return tuple((each.name, _services_of(each)) for each in found if ITS_OWN.holds(each, folder / "compose.yaml"))


def _services_of(path: Path) -> Mapping[str, bool] | None:
    """Return the services of a file, each with whether it only adds a size; None where the file can't be opened."""
    try:
        text = read_regular(path, MAX_BYTES).decode(errors="replace")
    except (OSError, ValueError):
        return None
    read = read_documents(documents(text, str(path))) if "services" in text else ()  # none of what Compose refuses
    return {each.place.removeprefix("services."): _only_sizes(each) for each in read}


def _only_sizes(service: Workload) -> bool:
    """Return whether a service sizes its /dev/shm, beyond what it has anyway, and has no image of its own to run."""
    size = service.shm.size
    enough = not isinstance(size, Known) or size.value > LEAST_SHM
    return service.image is None and not is_built(service) and service.shm.kind not in {ABSENT, NONE} and enough


def is_built(service: Workload) -> bool:
    """Return whether a service of Compose has its image built."""
    return any(each == "service.build" or each.startswith("service.build.") for each in service.rest)


def _documents_of(path: Path, named_by: Path) -> Documents | None:
    """Return the documents of a file of the same repository; None where there is none that can be read."""
    text = own_text(path, named_by)
    found = documents(text, str(path)) if text else None
    return found if found is not None and found.broken is None else None
