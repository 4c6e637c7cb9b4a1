"""What the code that reads samples names: which attributes it uses, sets, and whether it asks which process it is."""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from trainlaunch.inside.code_places import is_made_by_script
from trainlaunch.inside.probe.base.dataset_objects import Held, held

READS = ("__getitem__", "__getitems__", "__iter__", "__next__")
_LIFECYCLE = {"__init__", "__new__", "__del__", "__enter__", "__exit__", "__getstate__", "__setstate__", "__reduce__"}
_LIFECYCLE |= {"__reduce_ex__", "__repr__", "__str__", "close", "__init_subclass__"}
_PROCESS = {"getpid", "get_worker_info", "current_process", "_getpid"}


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


def beside(root: Any) -> Iterator[Held]:
    """Yield what the script's own classes and functions that `root` holds use of their class and of their module.

    The holder is the object that uses it; the path is `Class.name`, or a name of the module. `root` may be a function.
    """
    done: set[int] = set()
    for each in list(held(root)):
        function = isinstance(each.value, types.FunctionType)
        owner: Any = each.value if function else type(each.value)
        if id(owner) in done or not is_made_by_script(owner):
            continue
        done.add(id(owner))
        used = (names_of_function(each.value) if function else names_of_holder(each.value)).used
        own = getattr(each.value, "__dict__", {})
        for kind in () if function else owner.__mro__:
            named = used & set(vars(kind)) - set(own) if is_made_by_script(kind) else ()
            yield from (Held(f"{kind.__name__}.{name}", vars(kind)[name], each.value, name) for name in sorted(named))
        known = vars(sys.modules[owner.__module__])
        yield from (Held(name, known[name], each.value, name) for name in sorted(used & set(known)))


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
