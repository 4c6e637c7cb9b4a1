"""Hashes of samples and of generators of random numbers, to tell whether two are equal."""

from __future__ import annotations

import hashlib
import pickle
import random
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

from trainlaunch.inside.code_places import is_made_by_script
from trainlaunch.inside.probe.base.dataset_objects import of_function, parts, reachable_objects

_DEPTH, _PARTS = 8, 8


def digest(sample: Any) -> str:
    """Return a hash of a sample's content: of tensors, arrays, images, containers and objects of those."""
    found = hashlib.blake2b(digest_size=12)
    for each in _parts(sample, _DEPTH):
        found.update(each)
    return found.hexdigest()


def parts_of(sample: Any) -> list[str]:
    """Return a text for each of the parts of a sample, equal where the parts are: `#` and a number, else a hash."""
    return [_text(each) for _, each in parts(sample)[:_PARTS]]


def _text(value: Any) -> str:
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    return f"#{value + 0}" if isinstance(value, (int, float)) else digest(value)


def states(*roots: Any) -> dict[str, str]:
    """Return class and hash of the state of each generator, by its path: those that `roots` hold, and the global ones.

    `roots` are a dataset and a collate_fn.
    """
    found = {}
    for path, generator in _generators(roots):
        state = _state(generator) if path not in found else None
        if state is not None:
            found[path] = f"{_name(generator)} {hashlib.blake2b(state, digest_size=12).hexdigest()}"
    return found


def _parts(value: Any, depth: int) -> Iterator[bytes]:
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    yield type(value).__name__.encode()
    if depth == 0:
        return
    if isinstance(value, torch.Tensor):
        yield from _tensor(value)
    elif numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        yield f"{value.dtype}{value.shape}".encode()
        yield repr(value.tolist()).encode() if value.dtype.hasobject else value.tobytes()
    elif isinstance(value, (str, bytes, bytearray, int, float, complex, type(None))):
        yield repr(value).encode()
    elif isinstance(value, dict):
        for key, each in value.items():
            yield repr(key).encode() if isinstance(key, (str, int, tuple)) else type(key).__name__.encode()
            yield from _parts(each, depth - 1)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _parts(each, depth - 1)
    elif callable(getattr(value, "tobytes", None)) and not isinstance(value, type):  # an image of PIL
        yield repr(getattr(value, "size", "")).encode() + value.tobytes()
    else:
        yield from _parts(getattr(value, "__dict__", None), depth - 1)


def _tensor(value: Any) -> Iterator[bytes]:
    yield f"{value.dtype}{tuple(value.shape)}".encode()
    if value.layout is not sys.modules["torch"].strided:
        value = value.to_dense()
    flat = value.detach().cpu().contiguous().reshape(-1).view(sys.modules["torch"].uint8)
    yield flat.numpy().tobytes() if "numpy" in sys.modules else bytes(flat.tolist())


def _generators(roots: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield generators and their paths: of objects, of their classes, and of the modules that those stand in."""
    modules: list[str] = []
    for name, root in zip(("dataset", "collate_fn"), roots):
        for each in reachable_objects(root, name):
            yield each.path, each.value
            function, own = isinstance(each.value, (types.FunctionType, type)), getattr(each.value, "__dict__", {})
            for owner in (each.value,) if function else type(each.value).__mro__:
                modules.append(getattr(owner, "__module__", None) or "")
                if not function:
                    yield from _of_class(each.path, owner, own)
    modules += [name for name, module in list(sys.modules.items()) if module and is_made_by_script(module)]
    for module in dict.fromkeys(modules):
        if module.split(".")[0] not in ("torch", "numpy", "random", "builtins"):
            found = getattr(sys.modules.get(module), "__dict__", {})
            yield from ((f"{module}.{key}", value) for key, value in list(found.items()))
    yield from (("random", random), ("numpy.random", getattr(sys.modules.get("numpy"), "random", None)))
    yield "torch", sys.modules["torch"].default_generator


def _of_class(path: str, owner: type, own: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what a class holds, and what its methods close over or have as defaults."""
    for key, value in vars(owner).items():
        if key not in own:
            yield f"{path}.{key}", value
        if isinstance(value, types.FunctionType):
            yield from ((f"{path}.{key}{suffix}", each) for suffix, each in of_function(value))


def _name(generator: Any) -> str:
    if isinstance(generator, types.ModuleType):
        return generator.__name__
    if isinstance(generator, random.Random):
        return "random.Random"
    module, name = type(generator).__module__, type(generator).__name__
    return f"{'numpy.random' if module.startswith('numpy') else 'torch'}.{name}"


def _state(generator: Any) -> Any:
    """Return a generator's state as bytes, None for any other object."""
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    if generator is random or (isinstance(generator, random.Random) and not isinstance(generator, random.SystemRandom)):
        return pickle.dumps(generator.getstate())
    if isinstance(generator, torch.Generator):
        return bytes(generator.get_state().tolist()) if generator.device.type == "cpu" else None
    if numpy is None:
        return None
    if generator is numpy.random or isinstance(generator, numpy.random.RandomState):
        return pickle.dumps(generator.get_state())
    if isinstance(generator, numpy.random.Generator):
        return pickle.dumps(generator.bit_generator.state)
    return None
