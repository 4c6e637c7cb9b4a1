"""What a dataset holds, and which of it the code that reads samples names: walks bounded in objects and time."""

from __future__ import annotations

import collections
import dataclasses
import dis
import functools
import itertools
import logging
import sys
import time
import types
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from trainlaunch.inside.code_places import is_made_by_script

OBJECTS, ITEMS, SECONDS, DEPTH = 20_000, 256, 2.0, 12
_LEAVES = (str, bytes, bytearray, int, float, complex, type(None), type, types.ModuleType, logging.Logger)
READS = ("__getitem__", "__getitems__", "__iter__", "__next__")
_LIFECYCLE = {"__init__", "__new__", "__del__", "__enter__", "__exit__", "__getstate__", "__setstate__", "__reduce__"}
_LIFECYCLE |= {"__reduce_ex__", "__repr__", "__str__", "close", "__init_subclass__"}
_PROCESS = {"getpid", "get_worker_info", "current_process", "_getpid"}


class ReachableObject(NamedTuple):
    """One object that a dataset holds: its path (`dataset.reader.file`), whose attribute it is, and that name."""

    path: str
    value: Any
    holder: Any
    name: str


def reachable_objects(root: Any, path: str = "dataset") -> Iterator[ReachableObject]:
    """Yield what `root` holds, nearest first and each once; `root` itself first. Stops at the bounds above."""
    seen = {id(root)}
    waiting = collections.deque([(ReachableObject(path, root, None, ""), 0)])
    deadline = time.monotonic() + SECONDS
    while waiting and len(seen) < OBJECTS and time.monotonic() < deadline:
        each, depth = waiting.popleft()
        yield each
        if depth >= DEPTH:
            continue
        for suffix, value in children(each.value):
            if id(value) in seen or isinstance(value, _LEAVES):
                continue
            seen.add(id(value))
            named = suffix.startswith(".")
            holder, name = (each.value, suffix[1:]) if named else (each.holder, each.name)
            waiting.append((ReachableObject(each.path + suffix, value, holder, name), depth + 1))


def children(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (path suffix, object) of what one object holds itself; of long lists the first items."""
    if isinstance(value, _LEAVES) or is_array(value) or is_frame(value):
        return
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", each) for key, each in _first(value.items()))
    elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        yield from ((f"[{index}]", each) for index, each in enumerate(_first(value)))
    elif isinstance(value, functools.partial):
        yield ".func", value.func
        yield from ((f".args[{index}]", each) for index, each in enumerate(value.args))
        yield from ((f".keywords[{key!r}]", each) for key, each in value.keywords.items())
    elif isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
    elif isinstance(value, types.FunctionType):
        yield from of_function(value)
    yield from attributes(value)


def of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield (`.<name>`, object) of what a function closes over, and of the defaults of its arguments."""
    code, defaults = function.__code__, function.__defaults__ or ()
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        if _is_set(cell):
            yield f".<{name}>", cell.cell_contents
    positional = code.co_varnames[: code.co_argcount]
    yield from ((f".<{name}>", each) for name, each in zip(positional[len(positional) - len(defaults) :], defaults))
    yield from ((f".<{name}>", each) for name, each in (function.__kwdefaults__ or {}).items())


def attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (`.name`, object) of an object's own attributes, slots too; nothing is computed for it."""
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict):
        yield from ((f".{name}", each) for name, each in _first(own.items()) if isinstance(name, str))
    for owner in type(value).__mro__:
        for name in _slots(owner):
            found = getattr(value, name, None)
            if found is not None:
                yield f".{name}", found


def parts(value: Any) -> list[tuple[str, Any]]:
    """Return (path suffix, object) of what a sample or a batch is made of; nothing for a tensor, a number, a text."""
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", each) for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        return [(f"[{index}]", each) for index, each in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{each.name}", getattr(value, each.name, None)) for each in dataclasses.fields(value)]
    return []


def is_array(value: Any) -> bool:
    """Whether it is a tensor or a NumPy array, whose items are no objects that are walked."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return True
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def is_frame(value: Any) -> bool:
    """Whether it is a table or a column of pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, (pandas.DataFrame, pandas.Series, pandas.Index))


def _slots(owner: type) -> tuple[str, ...]:
    slots = owner.__dict__.get("__slots__", ())
    if not (sys.modules.get(owner.__module__) and isinstance(slots, (str, tuple, list))):
        return ()
    return tuple(
        each
        for each in ((slots,) if isinstance(slots, str) else slots)
        if isinstance(owner.__dict__.get(each), types.MemberDescriptorType)
    )


def _first(items: Any) -> Iterator[Any]:
    """Return the first items; a container that another thread changes meanwhile gives what it gave so far."""
    try:
        yield from list(itertools.islice(items, ITEMS))
    except RuntimeError:
        return


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


class Names(NamedTuple):
    """Names in code: all that it mentions, those it assigns as attributes, and whether it asks for its process."""

    used: set[str]
    stored: set[str]
    knows_process: bool
    whole: bool  # False where a part is not Python, or builds names while it runs


def names_of_holder(holder: Any) -> Names:
    """Return the names in what reads from an object: of a dataset its reading, of a part of one all its methods."""
    return names_of_reading(holder) if any(hasattr(type(holder), each) for each in READS) else names_of_methods(holder)


def names_of_reading(dataset: Any) -> Names:
    """Return the names in `__getitem__`, its like, and in the methods of the class that they call."""
    return _names(dataset, READS)


def names_of_methods(value: Any) -> Names:
    """Return the names in all methods of an object's class but those that make, pickle, close or print it."""
    own = [name for owner in type(value).__mro__ if owner is not object for name in vars(owner)]
    return _names(value, [name for name in own if name not in _LIFECYCLE])


def names_of_function(function: Any) -> Names:
    """Return the names in one function, as worker_init_fn is; a partial's function counts."""
    function = getattr(function, "func", function)
    function = getattr(function, "__func__", function)
    found = Names(set(), set(), False, True)
    code = getattr(function, "__code__", None)
    return _with(found, code) if code is not None else found._replace(whole=False)


def _names(value: Any, start: Any) -> Names:
    found = Names(set(), set(), False, True)
    waiting, done = list(start), set()
    while waiting:
        name = waiting.pop()
        if name in done or name in _LIFECYCLE:
            continue
        done.add(name)
        for function in _functions(type(value), name):
            code = getattr(function, "__code__", None)
            if code is None:
                found = found._replace(whole=False)
                continue
            found = _with(found, code)
        for function in _helpers(type(value), name):
            found = _with(found, function.__code__)._replace(whole=found.whole)  # what it builds is its own
        waiting += [each for each in found.used if each not in done]
    return found


def beside(root: Any) -> Iterator[ReachableObject]:
    """Yield what the script's own classes and functions that `root` holds use of their class and of their module.

    The holder is the object that uses it; the path is `Class.name`, or a name of the module. `root` may be a function.
    """
    done: set[int] = set()
    for each in list(reachable_objects(root)):
        function = isinstance(each.value, types.FunctionType)
        owner: Any = each.value if function else type(each.value)
        if id(owner) in done or not is_made_by_script(owner):
            continue
        done.add(id(owner))
        used = (names_of_function(each.value) if function else names_of_holder(each.value)).used
        own = getattr(each.value, "__dict__", {})
        for kind in () if function else owner.__mro__:
            named = used & set(vars(kind)) - set(own) if is_made_by_script(kind) else ()
            yield from (
                ReachableObject(f"{kind.__name__}.{name}", vars(kind)[name], each.value, name) for name in sorted(named)
            )
        known = vars(sys.modules[owner.__module__])
        yield from (ReachableObject(name, known[name], each.value, name) for name in sorted(used & set(known)))


def _helpers(owner: type, name: str) -> Iterator[Any]:
    """Yield the function of the class's module that has this name, if it is the script's own."""
    module = sys.modules.get(owner.__module__)
    value = vars(module).get(name) if module is not None and is_made_by_script(module) else None
    if isinstance(value, types.FunctionType) and is_made_by_script(value):
        yield value


def _functions(owner: type, name: str) -> Iterator[Any]:
    """Yield the functions behind a name of a class: a method's, a property's getter, what a decorator wraps."""
    for each in owner.__mro__:
        if each is object or name not in vars(each):
            continue
        value = vars(each)[name]
        value = (
            getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", None) or value
        )
        value = getattr(value, "__wrapped__", value)
        if callable(value) and not isinstance(value, type):
            yield value


def _with(found: Names, code: types.CodeType) -> Names:
    used, stored = set(code.co_names), set()
    for each in dis.get_instructions(code):
        if each.opname == "STORE_ATTR":
            stored.add(str(each.argval))
    used |= {each for each in code.co_consts if isinstance(each, str)} & {"__dict__"}
    found = Names(
        found.used | used,
        found.stored | stored,
        found.knows_process or bool(_PROCESS & used),
        found.whole and not {"getattr", "__dict__", "vars"} & used,
    )
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            found = _with(found, each)
    return found
