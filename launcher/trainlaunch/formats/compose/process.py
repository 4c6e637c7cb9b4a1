"""What a Compose service says of its running process: health check and resource limits of the shell's `ulimit`."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.formats.compose.layers import Layers, items_of
from trainlaunch.formats.compose.values import known, read_int, read_string, read_with
from trainlaunch.formats.engine_values import engine_seconds
from trainlaunch.formats.workload import Known, Value, stated
from trainlaunch.yamltree.documents import Mapping, Node, Scalar

_TIMES = frozenset({"interval", "timeout", "start_period", "start_interval"})


class Health(NamedTuple):
    """A health check; `rest` has what is no shell command and no time: another form of `test`, `disable`."""

    command: Value[str]
    times: dict[str, Value[int]]
    rest: dict[str, object]


def read_health(check: Layers) -> Health:
    """Return the health check. Times are whole seconds, `retries` a count."""
    node = check.get("test")
    items = items_of(node)
    form = None if isinstance(node, Scalar) or not items else stated(read_string(items[0]))
    command: Value[str] = None
    if isinstance(node, Scalar):
        command = read_string(node)
    elif form == "CMD-SHELL" and len(items) == 2:
        command = read_string(items[1])
    elif node is not None and form == "CMD":
        words = [stated(read_string(each)) for each in items[1:]]
        command = known(" ".join(map(str, words)), node)
    times = {each: read_seconds(found) for each in check.names() if each in _TIMES and (found := check.get(each))}
    retries = check.get("retries")
    if retries is not None:
        times["retries"] = read_int(retries)
    shell = isinstance(node, Scalar) or form == "CMD-SHELL"
    rest = {each: check.value(each) for each in check.names() if each not in times and not (each == "test" and shell)}
    return Health(command, times, rest)


def read_seconds(node: Node) -> Value[int]:
    """Return the seconds of a duration; Unknown for no whole number of them."""
    return read_with(node, engine_seconds)


def read_ulimits(limits: Layers) -> tuple[dict[str, tuple[int, int]], dict[str, object]]:
    """Return the soft and hard limits by name, and what can't be read as such."""
    found: dict[str, tuple[int, int]] = {}
    rest: dict[str, object] = {}
    for name in limits.names():
        node = limits.get(name)
        both = Layers((node,)) if isinstance(node, Mapping) else None
        soft, hard = (both.get("soft"), both.get("hard")) if both else (node, node)
        numbers = [read_int(each) for each in (soft, hard) if each is not None]
        values = [each.value for each in numbers if isinstance(each, Known)]
        if len(values) == 2 and (both is None or set(both.names()) == {"soft", "hard"}):
            found[name] = (values[0], values[1])
        else:
            rest[name] = limits.value(name)
    return found, rest
