"""A Python that has imported torch and starts one script after the other from here, each in a process of its own.

It is the sitecustomize of `python train.py` in a container: while that Python still starts, it waits here for requests,
one line of JSON each. For every one it forks. The forked process takes the request's variables and path, runs the
sitecustomize that the request delivers, and returns: Python goes on with its start and runs train.py as it always does,
with the same frames, the same `__main__` and the same end. Only what was there before the script is not taken down with
it: torch's modules and its static objects, which take four times as long as an ordinary script.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import random
import select
import sys
import time
from types import ModuleType
from typing import Any

from pristine import Container, end_processes

HERE = "/server"
PRELOADED = ("numpy", "numpy.random", "torch", "torch._dynamo", "torch.distributed", "torch.utils.data")
LARGE = ("/usr/local/lib/python3.11/dist-packages", "/usr/share", "/var/lib/dpkg")


def serve() -> None:
    """Answer requests; returns in each forked process, which is a script's."""
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    os.close(0)
    os.open(os.devnull, os.O_RDONLY)  # as 0, the lowest that is free
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    container = Container(*LARGE)
    before, brought = set(sys.modules), dict[str, Any]()
    atexit.register(_leave, brought)  # the first one is the last to run: those of the modules need them yet
    for module in PRELOADED:
        __import__(module)
    brought.update({name: module for name, module in sys.modules.items() if name not in before})
    _end_without_destructors()
    container.restore()  # torch makes a folder for what it compiles
    gc.freeze()  # a script's garbage collection touches, and so copies, none of what stands here
    pending = b""
    os.write(answers, b'{"ready": true}\n')
    while chunk := os.read(requests, 65536):
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            request = json.loads(line)
            (out, to_out), (err, to_err) = os.pipe(), os.pipe()
            process = os.fork()
            if process == 0:
                for each in (requests, answers, out, err):
                    os.close(each)
                _become(request, {**own, **request["env"]}, to_out, to_err)
                return
            os.close(to_out)
            os.close(to_err)
            answer = _followed(container, process, out, err, request["seconds"])
            os.write(answers, json.dumps(answer).encode() + b"\n")
    os._exit(0)


def _end_without_destructors() -> None:
    """Let exit() of C, after Python's own end, flush and leave at once with its code, in each forked process too."""
    c = ctypes.CDLL(None)
    c.on_exit(c._exit, None)
    c.__cxa_atexit(ctypes.cast(c.fflush, ctypes.c_void_p), None, None)


def _leave(modules: dict[str, Any]) -> None:
    """Keep modules from being taken apart: Python forgets their names, as it does itself next, and never frees them."""
    for name, module in modules.items():
        if sys.modules.get(name) is module:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
            sys.modules[name] = None  # type: ignore[assignment]


def _become(request: dict[str, Any], env: dict[str, str], to_out: int, to_err: int) -> None:
    """Make this process what a fresh container's first one is, and run what the request delivers."""
    os.setsid()
    for target, source in ((1, to_out), (2, to_err)):
        os.dup2(source, target)
        os.close(source)
    if request["command"]:
        os.execvpe(request["command"][0], request["command"], env)  # noqa: S606
    os.environ.clear()
    os.environ.update(env)
    at = sys.path.index(HERE)
    sys.path[at : at + 1] = env["PYTHONPATH"].split(os.pathsep)
    sys.path_importer_cache.clear()
    for module in ("sitecustomize", "pristine"):
        del sys.modules[module]
    frozen, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    vars(sys.modules["__main__"]).update(vars(frozen))  # what is frozen would outlive the script's objects
    random.seed()
    sys.modules["numpy.random"].seed()  # type: ignore[attr-defined]
    __import__("sitecustomize")
    for path, value in request["values"].items():
        module, _, name = path.rpartition(".")
        setattr(importlib.import_module(f"trainlaunch_inside.{module}"), name, value)


def _followed(container: Container, process: int, out: int, err: int, seconds: float) -> dict[str, Any]:
    """Return how a script ended; whatever it started ends with it, as in a container of its own."""
    ended, deadline = os.pidfd_open(process), time.monotonic() + seconds
    texts = {out: b"", err: b""}
    watched = {ended, out, err}
    code = None
    while watched:
        ready = select.select(watched, (), (), max(0.0, deadline - time.monotonic()) if code is None else None)[0]
        if not ready or ended in ready:
            end_processes()
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            watched -= {ended}
            if not ready:
                code = f"killed after {seconds:g} s"
        for each in {out, err}.intersection(ready):
            text = os.read(each, 65536)
            texts[each] += text
            if not text:
                watched.remove(each)
    for each in (ended, out, err):
        os.close(each)
    left, differs = container.restore()
    if isinstance(code, int) and code < 0:
        code = 128 - code  # as a container's
    return {
        "code": code,
        "out": texts[out].decode(errors="replace"),
        "err": texts[err].decode(errors="replace"),
        "left": left,
        "differs": differs,
    }


if __name__ == "sitecustomize":
    serve()
