"""What a field of the job file is: its type, bounds, default, meaning and spelling per target."""

from collections.abc import Mapping
from typing import NamedTuple

from trainlaunch.units import format_cpus, format_duration, format_size


class Type(NamedTuple):
    """How a value is written. `kind` names the reader; the rest are that reader's bounds.

    Kinds: text, int, bool, size (bytes), cpus (thousandths), duration (seconds), choice, gpus, ulimit, labels, list,
    map, object, any, verbatim.
    `low` and `high` are inclusive, in the kind's unit; for lists and maps `low` counts items. `pattern` is a regular
    expression of the whole string and `what` says it in words. `keys` are the pattern and words of a map's keys.
    `single` takes one bare item for a list of one.
    `by_name` are the `fields` by their names; `instead` are words that stand for a whole object, each with its value.
    `extends`, of a policy's lists, takes `{extend: […]}` too.
    """

    kind: str
    what: str
    low: int | None = None
    high: int | None = None
    pattern: str = ""
    choices: tuple[str, ...] = ()
    auto: bool = False
    nullable: bool = False
    single: bool = False
    item: "Type | None" = None
    fields: tuple["Field", ...] = ()
    keys: tuple[str, str] = ("", "")
    by_name: Mapping[str, "Field"] = {}
    extends: bool = False
    instead: Mapping[str, Mapping[str, object]] = {}

    @property
    def inner(self) -> "Type":
        """The type of a list's or map's items."""
        return self.item or ANYTHING


class Field(NamedTuple):
    """One row of the table of fields.

    `default` is the value of a field that isn't set, None where `shown` says in words what happens then. `example` is
    what to type for a required one.
    `docker`, `compose` and `kubernetes` say where it stands there; `pod_key`, of a field of `kubernetes`, is the key of
    a pod's spec that has its value as it is.
    """

    name: str
    type: Type
    meaning: str
    default: object = None
    shown: str = "none"
    required: bool = False
    example: str = ""
    docker: str = ""
    compose: str = ""
    kubernetes: str = ""
    pod_key: str = ""

    @property
    def default_text(self) -> str:
        """The default as a job file spells it, or in words."""
        if self.default is None:
            return "required" if self.required else self.shown
        if isinstance(self.default, bool):
            return "true" if self.default else "false"
        if isinstance(self.default, (dict, tuple)):
            return "{}" if isinstance(self.default, dict) else "[]"
        return spell(self.type, self.default)


def spell(type_: Type, value: object) -> str:
    """Return a scalar of type `type_` as a job file spells it."""
    if isinstance(value, int) and not isinstance(value, bool):
        writer = {"size": format_size, "cpus": format_cpus, "duration": format_duration}.get(type_.kind)
        return writer(value) if writer else str(value)
    return str(value)


def text(what: str = "a string", pattern: str = "") -> Type:
    """A string; a plain scalar keeps its source spelling."""
    return Type("text", what, pattern=pattern)


def integer(low: int, high: int = 2**31 - 1, *, auto: bool = False, nullable: bool = False) -> Type:
    """A whole number in plain decimal digits."""
    return Type("int", "an integer", low=low, high=high, auto=auto, nullable=nullable)


def size(low: int = 1, *, auto: bool = False) -> Type:
    """Bytes: `512Mi`, `8Gi`, `2g`."""
    return Type("size", "a size", low=low, high=2**60, auto=auto)


def duration(low: int = 0) -> Type:
    """Seconds: `30s`, `5m`, `1h30m`."""
    return Type("duration", "a duration", low=low, high=2**31 - 1)


def choice(*choices: str) -> Type:
    """One of a few words."""
    return Type("choice", f"one of {', '.join(choices)}", choices=choices)


def listing(item: Type, *, low: int = 0, single: bool = False) -> Type:
    """A list; `single` takes one bare item for a list of one."""
    return Type("list", "a list", low=low, item=item, single=single)


def mapping(item: Type, key: str, words: str, *, low: int = 0) -> Type:
    """A mapping with free keys."""
    return Type("map", "a mapping", low=low, item=item, keys=(key, words))


def record(*fields: Field, instead: Mapping[str, Mapping[str, object]] = {}) -> Type:
    """A mapping with known keys; `instead` are words that stand for a whole value, each with that."""
    what = " or ".join(("a mapping", *(f"the word {each}" for each in instead)))
    return Type("object", what, fields=fields, by_name={each.name: each for each in fields}, instead=instead)


BOOL = Type("bool", "true or false")
ANYTHING = Type("any", "a value")
VERBATIM = Type("verbatim", "a value", nullable=True)  # in a target's own language; never merged
STRING = text()
ABSOLUTE_PATH = text("an absolute path", r"/[\s\S]*")
NAME = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"(?=[^/]{{1,253}}(?:/|$)){_LABEL}(?:\.{_LABEL})*"
VARIABLE = (r"[A-Za-z_][A-Za-z0-9_]*", "a variable's name (letters, digits and _, no digit first)")
