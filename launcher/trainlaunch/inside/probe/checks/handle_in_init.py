"""A dataset holds an open handle when its workers start: a file, a database, a connection, a lock, memory of a GPU."""

from __future__ import annotations

import contextlib
import io
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from trainlaunch.inside.code_places import is_made_by_script
from trainlaunch.inside.probe.base.dataset_objects import (
    ReachableObject,
    beside,
    names_of_function,
    names_of_holder,
    reachable_objects,
)
from trainlaunch.inside.probe.base.loader_facts import start_method
from trainlaunch.inside.probe.base.loader_stats import LoaderStats, noticed
from trainlaunch.inside.probe.base.sampling import samples
from trainlaunch.inside.probe.base.transfer import pickle_error

FILE, LOCK, CUDA, IMAGE = "file", "lock", "CUDA", "image"
# The package of a class, its name, and what users call it. The first that fits any class of an object's counts.
_KINDS: tuple[tuple[str, str, str], ...] = (
    ("h5py", "HLObject", "h5py"),
    ("tables", "File", "PyTables"),
    ("netCDF4", "Dataset", "netCDF4"),
    ("sqlite3", "Connection", "sqlite3"),
    ("sqlite3", "Cursor", "sqlite3"),
    ("socket", "socket", "socket"),
    ("_socket", "socket", "socket"),
    ("ssl", "SSLSocket", "socket"),
    ("http", "HTTPConnection", "socket"),
    ("psycopg2", "connection", "psycopg2"),
    ("psycopg", "Connection", "psycopg"),
    ("pymysql", "Connection", "PyMySQL"),
    ("pymongo", "MongoClient", "PyMongo"),
    ("zipfile", "ZipFile", "zipfile"),
    ("tarfile", "TarFile", "tarfile"),
    ("cv2", "VideoCapture", "cv2.VideoCapture"),
    ("decord", "VideoReader", "decord"),
    ("av", "InputContainer", "PyAV"),
    ("rasterio", "DatasetReader", "rasterio"),
    ("openslide", "OpenSlide", "openslide"),
    ("_gdbm", "gdbm", "dbm"),
    ("_dbm", "dbm", "dbm"),
    ("_io", "_IOBase", FILE),
    ("_thread", "lock", LOCK),
    ("_thread", "RLock", LOCK),
    ("threading", "_RLock", LOCK),
    ("threading", "Condition", LOCK),
    ("threading", "Semaphore", LOCK),
    ("threading", "Event", LOCK),
    ("queue", "Queue", LOCK),
)
_POSITIONS = 8  # samples that are read to see whether a file's position moves


class Handle(NamedTuple):
    """One open handle, the word for its kind, and whether a lock of it is held right now."""

    held: ReachableObject
    kind: str
    locked: bool


def notice_handles(seen: LoaderStats) -> list[Handle]:
    """Return the handles that are open before the first iterator of a loader starts its workers."""
    found: list[Handle] = []
    inside: list[str] = []  # paths of handles, whose own parts are no second finding
    for each in itertools.chain(
        reachable_objects(seen.dataset), reachable_objects(seen.collate_fn, "collate_fn"), _of_classes(seen.dataset)
    ):
        kind = kind_of(each.value)
        if kind == LOCK and not is_made_by_script(type(each.holder)):  # a library knows what its locks are for
            continue
        if kind is not None and not any(each.path.startswith(path) for path in inside):
            inside.append(each.path)
            found.append(Handle(each, kind, _is_locked(each.value)))
    return found


def _of_classes(dataset: Any) -> Iterator[ReachableObject]:
    """Yield what reading uses of classes and modules, and what such an object holds itself; no locks of modules."""
    for each in beside(dataset):
        inner = reachable_objects(each.value, each.path) if is_made_by_script(type(each.value)) else iter([each])
        for one in inner:
            if kind_of(one.value) != LOCK:
                yield one if one.holder is not None else each


def handle_in_init(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield each handle that the workers share, or would share where the loader has none yet."""
    handles: list[Handle] = noticed(seen, "handles") or []
    if start_method(seen) != "fork":  # each worker gets what can be pickled, and makes its own classes and modules
        handles = [each for each in handles if pickle_error(_root(seen, each.held.path)) is not None]
    done: set[tuple[int, str]] = set()  # of a list of handles one is said
    for each in handles:
        variable = (id(each.held.holder), each.held.name)
        if variable in done:
            continue
        if _breaks(seen, each):
            done.add(variable)
            yield {
                "path": each.held.path,
                "kind": each.kind,
                "class": type(each.held.value).__name__,
                "file": file_of(each.held.value),
                "locked": each.locked,
                "num_workers": seen.num_workers,
                "start_method": start_method(seen),
            }


def _root(seen: LoaderStats, path: str) -> Any:
    """Return the part of a loader that a path begins at, None for a name of a module or a class."""
    return {"dataset": seen.dataset, "collate_fn": seen.collate_fn}.get(path.partition(".")[0].partition("[")[0])


def _breaks(seen: LoaderStats, each: Handle) -> bool:
    """Whether a handle is what its workers die of: forked ones by using it, others by not getting it."""
    if start_method(seen) != "fork":
        return pickle_error(each.held.value) is not None
    return _is_used(seen, each.held) and not (each.kind == FILE and _stays_put(seen, each.held.value))


def kind_of(value: Any) -> str | None:
    """Return the word for an open handle, None for anything else: closed ones, files in memory, maps of memory."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return CUDA if value.is_cuda else None
    if torch is not None and isinstance(value, (torch.cuda.Stream, torch.cuda.Event)):
        return CUDA
    names = [(each.__module__.split(".")[0], each.__name__) for each in type(value).__mro__]
    if names[0] in (("builtins", "Environment"), ("lmdb", "Environment")) or names[0] == ("builtins", "Transaction"):
        return "LMDB"
    if any(name == ("PIL", "ImageFile") for name in names) and getattr(value, "fp", None) is not None:
        return IMAGE
    kind = next((kind for package, name, kind in _KINDS if (package, name) in names), None)
    return kind if kind is not None and _is_open(value) else None


def file_of(value: Any) -> str:
    """Return the name of the file behind a handle, empty where it doesn't say."""
    value = getattr(value, "file", value) if type(value).__module__.startswith("h5py") else value
    for name in ("filename", "name", "path"):
        found = getattr(value, name, None)
        with contextlib.suppress(Exception):  # of a foreign object's own method
            found = found() if callable(found) else found
        if isinstance(found, str):
            return found
    return ""


def _is_open(value: Any) -> bool:
    """Whether a handle is in use; one that can't tell is."""
    try:
        if isinstance(value, io.IOBase):
            return not value.closed and value.fileno() > 2  # the process's own streams are for all
        if type(value).__module__.startswith("h5py"):
            return bool(value)
        if type(value).__name__ == "Connection" and type(value).__module__ == "sqlite3":
            return bool(value.total_changes >= 0)
        if type(value).__name__ in ("ZipFile", "TarFile"):
            handle = getattr(value, "fp", None) or getattr(value, "fileobj", None)
            return not getattr(value, "closed", False) and handle is not None and not isinstance(handle, io.BytesIO)
        fileno: Callable[[], int] | None = getattr(value, "fileno", None)
        return fileno is None or fileno() >= 0
    except Exception:  # io.UnsupportedOperation of a file in memory, an error of a closed handle
        return False


def _stays_put(seen: LoaderStats, file: Any) -> bool:
    """Whether reading samples leaves a file's position where it was: they are read without it, by os.pread say."""
    try:
        before = file.tell()
        read = [each.error for each in samples(seen, _POSITIONS)]
        return bool(read) and not any(read) and bool(file.tell() == before)
    except Exception:  # one that has no position
        return False


def _is_locked(value: Any) -> bool:
    locked = getattr(value, "locked", None)
    return bool(locked()) if callable(locked) and type(value).__module__ == "_thread" else False


def _is_used(seen: LoaderStats, each: ReachableObject) -> bool:
    """Whether reading a sample uses the handle as it is, and no worker opens its own."""
    holder = each.holder
    if holder is None or not each.name:
        return True
    names = names_of_holder(holder)
    if names.whole and each.name not in names.used and each.name not in _names_of_others(seen, holder):
        return False
    opens_own = each.name in names.stored and names.knows_process
    return not opens_own and each.name not in names_of_function(seen.worker_init_fn).stored


def _names_of_others(seen: LoaderStats, holder: Any) -> set[str]:
    """Return the names that the script's other objects use: an object without methods is read by whoever holds it."""
    others = {type(each.value): each.value for each in reachable_objects(seen.dataset) if each.value is not holder}
    return set().union(*(names_of_holder(one).used for kind, one in others.items() if is_made_by_script(kind)))
