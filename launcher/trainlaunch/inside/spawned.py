"""What is against workers that begin as new Pythons: those import the script, and get the dataset pickled."""

from __future__ import annotations

import ast
import multiprocessing
import pickle
import sys
import time
from multiprocessing import context
from multiprocessing.reduction import ForkingPickler
from typing import Any

MAX_TENSORS = 1 << 20  # bytes of a dataset that may move unplanned
MAX_SECONDS = 10  # each worker's start takes as long
HANDED = ("dataset", "collate_fn")


def against_spawned(arguments: dict[str, Any], planned: int) -> str:
    """Return what is against spawned workers of a loader; `planned` bytes of its tensors may move to /dev/shm."""
    if not _is_guarded():
        return 'the script has no `if __name__ == "__main__":` around it'
    tensors = arrays = 0
    for name in HANDED:
        trial, problem = _trial(arguments.get(name))
        if problem is not None:
            seconds = 0 if isinstance(problem, TimeoutError) else MAX_SECONDS
            path, value = _culprit(arguments[name], name, time.monotonic() + seconds)
            return f"{path} ({_named(value)}) can't be pickled: {' '.join(str(problem).split())[:200]}"
        tensors += trial.tensors
        arrays += trial.arrays
    if tensors > max(MAX_TENSORS, planned):
        return f"{tensors >> 20} MiB of tensors in its dataset would move to /dev/shm, unplanned; let probe measure it"
    if arrays >> 30:
        return f"each would copy {arrays >> 20} MiB of arrays in its dataset"
    return ""


def _is_guarded() -> bool:
    """Whether a new Python that imports the main module doesn't come here: this one did, or its line is guarded."""
    main: Any = sys.modules.get("__main__")
    if multiprocessing.parent_process() is not None:
        return "__mp_main__" in sys.modules
    frame: Any = sys._getframe(1)
    while frame is not None and not (frame.f_globals is main.__dict__ and frame.f_code.co_name == "<module>"):
        frame = frame.f_back
    try:
        with open(main.__file__, "rb") as file:
            statements = ast.parse(file.read()).body
    except Exception:
        return False  # python -c, a thread's stack, a notebook
    at = frame.f_lineno if frame is not None else 0
    own = (each for each in statements if isinstance(each, ast.If) and _asks_for_name(each.test))
    return any(each.body[0].lineno <= at <= (each.body[-1].end_lineno or 0) for each in own)


def _asks_for_name(test: ast.expr) -> bool:
    words = {getattr(each, "id", None) or getattr(each, "value", None) for each in ast.walk(test)}
    return "__name__" in words and "__mp_main__" not in words


class _Nowhere:
    """Where a trial's bytes go. Raises TimeoutError."""

    def __init__(self) -> None:
        self.until = time.monotonic() + MAX_SECONDS

    def write(self, data: Any) -> int:
        if time.monotonic() > self.until:
            raise TimeoutError(f"it took more than {MAX_SECONDS} s")
        return len(data)


class _Popen:
    """A process in the making, which semaphores and connections ask for."""

    DupFd = int
    duplicate_for_child = staticmethod(int)


class _Trial(ForkingPickler):
    """Pickles as a start of a worker does, but copies no array and moves no tensor; it counts their bytes."""

    def __init__(self) -> None:
        super().__init__(_Nowhere(), pickle.HIGHEST_PROTOCOL)
        self.tensors = self.arrays = 0

    def reducer_override(self, value: Any) -> Any:
        torch = sys.modules["torch"]
        dense = isinstance(value, torch.Tensor) and value.layout is torch.strided
        if dense and (value.is_leaf or not value.requires_grad):
            if value.device.type == "cpu" and not value.is_shared():
                self.tensors += value.element_size() * value.nelement()
            return int, ()
        objects = getattr(getattr(value, "dtype", None), "hasobject", True)
        if objects or type(value).__module__ != "numpy":
            return NotImplemented
        self.arrays += value.nbytes
        return int, ()


def _trial(value: Any) -> tuple[_Trial, BaseException | None]:
    trial, before = _Trial(), context.get_spawning_popen()
    context.set_spawning_popen(_Popen())  # type: ignore[arg-type]
    try:
        trial.dump(value)
    except Exception as problem:
        return trial, problem
    finally:
        context.set_spawning_popen(before)
    return trial, None


def _culprit(value: Any, path: str, until: float) -> tuple[str, Any]:
    """Return the innermost object that can't be pickled, and where it is, if found in time."""
    parts: Any
    if isinstance(value, dict):
        form, parts = "[{!r}]", value.items()
    elif isinstance(value, (list, tuple)):
        form, parts = "[{}]", enumerate(value)
    else:
        form, parts = ".{}", getattr(value, "__dict__", {}).items()
    for key, part in parts if path.count(".") + path.count("[") < 8 else ():
        if time.monotonic() > until:
            break
        if _trial(part)[1] is not None:
            return _culprit(part, path + form.format(key), until)
    return path, value


def _named(value: Any) -> str:
    return str(getattr(value, "__qualname__", type(value).__qualname__))
