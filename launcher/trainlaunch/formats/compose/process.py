"""What a Compose service says of its process: command, variables and labels, health check, resource limits."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.formats.compose.layers import MappingLayers, is_null, items_of, part_of
from trainlaunch.formats.compose.values import (
    known,
    literal,
    read_int,
    read_string,
    read_with,
    required,
    spelled,
    unknown,
)
from trainlaunch.formats.quantities import engine_seconds
from trainlaunch.formats.workload import Known, Value, stated
from trainlaunch.yamltree.tolerant import Mapping, Node, Scalar, Sequence

_TIMES = frozenset({"interval", "timeout", "start_period", "start_interval"})

_ENDS = frozenset(";&|<>")


class Health(NamedTuple):
    """A health check; `rest` has what is no shell command and no time: another form of `test`, `disable`."""

    command: Value[str]
    times: dict[str, Value[int]]
    rest: dict[str, object]


def read_health(check: MappingLayers) -> Health:
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


def read_ulimits(limits: MappingLayers) -> tuple[dict[str, tuple[int, int]], dict[str, object]]:
    """Return the soft and hard limits by name, and what can't be read as such."""
    found: dict[str, tuple[int, int]] = {}
    rest: dict[str, object] = {}
    for name in limits.names():
        node = limits.get(name)
        both = MappingLayers((node,)) if isinstance(node, Mapping) else None
        soft, hard = (both.get("soft"), both.get("hard")) if both else (node, node)
        numbers = [read_int(each) for each in (soft, hard) if each is not None]
        values = [each.value for each in numbers if isinstance(each, Known)]
        if len(values) == 2 and (both is None or set(both.names()) == {"soft", "hard"}):
            found[name] = (values[0], values[1])
        else:
            rest[name] = limits.value(name)
    return found, rest


def read_argv(node: Node | None) -> Value[tuple[str, ...]]:
    """Return the words of a command or entrypoint; Unknown where a variable decides one, or Compose refuses it."""
    if node is None or is_null(node):
        return None
    if isinstance(node, Scalar):
        text = read_string(node)
        words = split_words(text.value) if isinstance(text, Known) else None
    else:
        items = [read_string(each) for each in node.items] if isinstance(node, Sequence) else [None]
        words = tuple(each.value for each in items if isinstance(each, Known))
        words = words if len(words) == len(items) else None
    return unknown(node) if words is None else known(words, node)


def split_words(text: str) -> tuple[str, ...] | None:
    """Return the words of `text`, None where Compose refuses it.

    What stands behind a bare `;`, `&`, `|`, `<` or `>` is dropped, as Compose drops it without a word.
    """
    splitter = _Splitter()
    for character in text:
        if splitter.ended:
            break
        splitter.take(character)
    return splitter.words()


class _Splitter:
    """State of go-shellwords, which Compose splits with, its variables and backticks off."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._word = ""
        self._has_word = False
        self._escaped = False
        self._open: set[str] = set()  # ' " ` and ( of $(; each knows the others only as `_toggles` says
        self._refused = False
        self.ended = False

    def take(self, character: str) -> None:
        """Read one character."""
        if self._escaped:
            self._add(character)
            self._escaped = False
        elif character == "\\" and "'" not in self._open:
            self._escaped = True
        elif character in " \t\r\n" and not self._open:
            self._finish()
        elif character in _ENDS and not self._open:
            if character == ">" and self._word[:1] in set("0123456789"):
                self._word, self._has_word = "", False  # 2>: the number is the redirection's
            self.ended = True
        elif not self._toggles(character):
            self._add(character)

    def _toggles(self, character: str) -> bool:
        """Open or close what a quote or parenthesis opens and closes; False where it is a character as any other."""
        hidden_by = {"'": '"(', '"': "'(", "`": "'\"(", "(": "'\"`", ")": "'\"`"}.get(character)
        if hidden_by is None or self._open & set(hidden_by):
            return False
        if character == "(":
            self._refused = self._refused or "(" in self._open or self._word[-1:] != "$"
        if character in "'\"":
            self._has_word = True
        else:
            self._add(character)
        self._open ^= {character.replace(")", "(")}  # a lone one opens as $( does
        return True

    def _add(self, character: str) -> None:
        self._word += character
        self._has_word = True

    def _finish(self) -> None:
        if self._has_word:
            self._words.append(self._word)
        self._word, self._has_word = "", False

    def words(self) -> tuple[str, ...] | None:
        """Return the words; None where a quote is open, an escape has nothing to escape, or a parenthesis stands."""
        if self._refused or self._escaped or self._open:
            return None
        self._finish()
        return tuple(self._words)


class ServiceEnvironment(NamedTuple):
    """Variables by name; `secrets` are those that name a variable of the shell and stop where it is not set."""

    env: dict[str, Value[str]]
    secrets: dict[str, str]


def read_environment(service: MappingLayers) -> ServiceEnvironment:
    """Return the variables; one without a value has that of the shell, so it is Unknown."""
    env: dict[str, Value[str]] = {}
    secrets: dict[str, str] = {}
    for node in reversed(service.stack("environment")):
        for name, value, scalar in _pairs(node):
            source = None if value is None else required(value)
            secrets.pop(name, None)
            env.pop(name, None)
            if source is not None:
                secrets[name] = source
            else:
                env[name] = unknown(scalar) if value is None else _value(scalar, value)
    return ServiceEnvironment(env, secrets)


def read_labels(service: MappingLayers) -> dict[str, Value[str]]:
    """Return the labels; one without a value is empty."""
    return {
        name: _value(scalar, value or "")
        for node in reversed(service.stack("labels"))
        for name, value, scalar in _pairs(node)
    }


def _pairs(node: Node) -> list[tuple[str, str | None, Node]]:
    """Return each name with its value before interpolation, None where it has none, and the node that says it."""
    if isinstance(node, Mapping):
        return [
            (name, _text(value), node.keys[name] if is_null(value) else value) for name, value in node.items.items()
        ]
    found: list[tuple[str, str | None, Node]] = []
    for item in node.items if isinstance(node, Sequence) else ():
        if isinstance(item, Scalar) and not is_null(item):
            name, equals, value = spelled(item).partition("=")
            found.append((name, value if equals else None, item))
    return found


def _text(value: Node) -> str | None:
    if is_null(value):
        return None
    return spelled(value) if isinstance(value, Scalar) else "${}"  # Compose takes neither


def _value(node: Node, text: str) -> Value[str]:
    """Return a value: all of its node in a mapping, what stands behind the `=` in a list."""
    value = literal(text)
    if value is None or not isinstance(node, Scalar):
        return unknown(node)
    if spelled(node) == text:
        return known(value, node)
    place = part_of(node, text, after="=")
    return known(value, node) if place.text == node.raw else type(place)(value, place.text, place.span)
