"""Threads run in the process when its workers are forked: a lock that one of them holds stays held in the workers."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.code_places import is_of_script, place
from trainlaunch.inside.probe.base.loader_facts import start_method
from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.noticing import noticed

# Packages whose threads hold locks that a forked child waits for, by the names that Linux has of them. Those of BLAS,
# OpenMP, torch's autograd and CUDA are in every training process, and prepare themselves for a fork.
_NATIVE = re.compile(
    r"^(?P<ray>gcs_|raylet|worker\.io|ray[:_.])|^(?P<grpc>grpc|default-executo|resolver-executo|event_engine|timer_manager)"
    r"|^(?P<tensorflow>tf_|TF_)|^(?P<java>GC Thread|G1 |C[12] Compiler|VM Thread)"
)
_PACKAGES = {
    "ray",
    "grpc",
    "tensorflow",
    "pymongo",
    "kafka",
    "confluent_kafka",
    "pyspark",
    "py4j",
    "distributed",
    "dask",
}


def notice(seen: Seen) -> list[dict[str, Any]]:
    """Return the threads beside the calling one: of the script, and of libraries known to break under fork."""
    own = threading.get_ident()
    # Our own frame in here would be a circle, and keep the script's frames below it with the batches that they hold.
    frames = {ident: frame for ident, frame in sys._current_frames().items() if ident != own}
    found = []
    for thread in threading.enumerate():
        if thread.ident != own and thread.ident is not None and thread is not threading.main_thread():
            at = _of_script(thread, frames.get(thread.ident))
            package = _package(thread, frames.get(thread.ident))
            if at or package:
                found.append({"name": thread.name, "at": at, "package": package})
    return found + _native()


def check(seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield the threads that were there when a loader's workers were forked."""
    found = noticed(seen, "threads_before_fork")
    if found and seen.num_workers > 0 and start_method(seen) == "fork":
        yield {"threads": list(found)[:16], "count": len(found), "num_workers": seen.num_workers}


def _of_script(thread: threading.Thread, frame: Any) -> str:
    """Return the place of the script's code that a thread runs; empty where it runs a library's alone."""
    for name in ("_target", "function"):  # a Thread's, a Timer's
        code = getattr(getattr(thread, name, None), "__code__", None)
        if code is not None and is_of_script(code.co_filename):
            return place(code.co_filename, code.co_firstlineno)
    while frame is not None:
        if is_of_script(frame.f_code.co_filename):
            return place(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    run = getattr(type(thread).run, "__code__", None)
    return place(run.co_filename, run.co_firstlineno) if run is not None and is_of_script(run.co_filename) else ""


def _package(thread: threading.Thread, frame: Any) -> str:
    modules = {type(thread).__module__, getattr(getattr(thread, "_target", None), "__module__", None) or ""}
    while frame is not None:
        modules.add(str(frame.f_globals.get("__name__", "")))
        frame = frame.f_back
    return next((each for each in sorted({name.split(".")[0] for name in modules}) if each in _PACKAGES), "")


def _native() -> list[dict[str, Any]]:
    """Return threads that Python didn't start, as /proc/self/task names them; none where that can't be read."""
    known = {getattr(each, "native_id", None) for each in threading.enumerate()}
    found: dict[str, dict[str, Any]] = {}
    try:
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/comm", encoding="utf-8", errors="replace") as file:
                name = file.read().strip()
            match = _NATIVE.match(name)
            if match is not None and int(task) not in known:
                package = str(match.lastgroup)
                found.setdefault(package, {"name": name, "at": "", "package": package})
    except OSError:
        pass
    return list(found.values())
