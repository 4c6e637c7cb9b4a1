"""Who else takes /dev/shm because the script starts it: Ray with a store of its own size, vLLM on several GPUs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainlaunch.least_shm import RAY_ROOM
from trainlaunch.script.frameworks import Calls
from trainlaunch.script.program import Program
from trainlaunch.script.script_facts import ScriptOwner
from trainlaunch.units import MIB, format_size, round_up

_MANY = 2**12  # beyond which no size is written as a power
_MOST = 2**63  # bytes; Python itself refuses to print what has thousands of digits
# The name of each, the beginning and ends of the call, and the keyword that sizes it.
_OWNERS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("ray", "ray.", ("ray.init",), "object_store_memory"),
    ("vllm", "vllm.", (".LLM", "EngineArgs"), "tensor_parallel_size"),
)


def shm_owners_of(program: Program) -> Iterator[ScriptOwner]:
    """Yield the first call each that starts Ray with a store of its own size, or vLLM on several GPUs."""
    for name, begins, ends, keyword in _OWNERS:
        for call, source in Calls(program).named(*ends, of=(begins,)):
            stated = next((each.value for each in call.keywords if each.arg == keyword), None)
            if stated is not None and not (isinstance(stated, ast.Constant) and stated.value is None):
                number = _folded(stated)
                yield ScriptOwner(name, source.place(call), number if number and number < _MOST else None)
                break


def object_store(owners: Iterable[ScriptOwner]) -> tuple[str, ...]:
    """Return the note of a script that sizes Ray's object store, which lies in /dev/shm."""
    more, of = RAY_ROOM
    words = "Ray's object store lies in /dev/shm beside the loaders' batches"
    return tuple(
        f"{each.place}: {words}: shm_extra: [{{name: ray, size: "
        f"{format_size(round_up(each.number * more // of, MIB)) if each.number else '…'}}}]."
        for each in owners
        if each.name == "ray"
    )


def _folded(node: ast.expr) -> int | None:
    """Return the whole number that a product of numbers makes, as sizes are written: `20 * 2**30`, `8 << 30`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value < 2**50:
        return int(node.value)
    if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.func, ast.Name) and node.func.id == "int":
        return _folded(node.args[0])
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _folded(node.left), _folded(node.right)
    if left is None or right is None or right < 0:
        return None
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.Pow | ast.LShift) and left <= _MANY and right <= _MANY:
        return left**right if isinstance(node.op, ast.Pow) else left << right
    return None
