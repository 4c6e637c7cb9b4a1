"""Writes a tree of values as YAML in the ways in which people do: indents, quotes, brackets, comments, blank lines."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from trainlaunch.yamltree.emitter import yaml_string

_BARE = re.compile(r"[a-z]{2,}( [a-z]+)*")
_WORDS = {"yes", "no", "on", "off", "true", "false", "null"}


class Writer:
    """One way of writing, drawn by chance; comments are numbered, so that a lost one has a name."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311
        self._step = self._chance.choice([2, 2, 4, 3])
        self._dash = self._chance.choice([0, self._step])
        self._comments = self._chance.choice([0, 0.2, 0.5])
        self._flow = self._chance.choice([0, 0.1, 0.4])
        self._number = 0

    def text(self, *documents: Any) -> str:
        """Return documents as a text whose lines end in either way, with a byte order mark or without."""
        parts = ["\n".join(self._document(each)) for each in documents]
        text = "\n---\n".join(parts) + "\n" * self._chance.choice([0, 1, 1, 2])
        if self._chance.random() < 0.2:
            text = f"---{self._trailing()}\n{text}"
        if self._chance.random() < 0.2:
            text = text.replace("\n", "\r\n")
        return "\ufeff" * (self._chance.random() < 0.1) + text

    def _document(self, value: Any) -> list[str]:
        lines = [f"# header {self._next()}"] * (self._chance.random() < self._comments)
        return lines + self._block(value, 0)

    def _next(self) -> str:
        self._number += 1
        return f"c{self._number}."

    def _trailing(self) -> str:
        return f"  # {self._next()}" if self._chance.random() < self._comments else ""

    def _between(self, indent: int) -> list[str]:
        lines = []
        while self._chance.random() < self._comments / 2:
            lines.append(self._chance.choice(["", f"{' ' * indent}# {self._next()}"]))
        return lines

    def _block(self, value: Any, indent: int) -> list[str]:
        """Return the lines of a value from column `indent` on."""
        if not isinstance(value, (dict, list)) or not value or self._chance.random() < self._flow:
            head, *more = self._inline(value, indent)
            return [" " * indent + head, *more]
        lines: list[str] = []
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            lines += self._between(indent)
            start = f"{' ' * indent}{self._scalar(key)}:" if isinstance(value, dict) else f"{' ' * indent}-"
            if key in ("alias", "merged"):
                lines += self._repeated(start, key, indent)
                continue
            start += " &base" * (key == "base")
            lines += self._part(start, item, indent, listed=isinstance(value, list))
        return lines

    def _repeated(self, start: str, key: str, indent: int) -> list[str]:
        """Return what repeats the value of the key `base`, which stands above: as it is, or merged with `own: 1`."""
        if key == "alias":
            return [f"{start} *base{self._trailing()}"]
        inner = " " * (indent + self._step)
        return [f"{start}{self._trailing()}", f"{inner}<<: *base{self._trailing()}", f"{inner}own: 1"]

    def _part(self, start: str, item: Any, indent: int, *, listed: bool) -> list[str]:
        if isinstance(item, (dict, list)) and item and self._chance.random() >= self._flow:
            step = 2 if listed else self._step if isinstance(item, dict) else self._dash
            lines = self._block(item, indent + step)
            compact = listed and lines[0].strip()[:1] not in ("#", "", "{", "[") and self._chance.random() < 0.8
            if compact:
                return [f"{start} {lines[0].lstrip()}", *lines[1:]]
            lines = lines if lines[0].strip()[:1] not in ("{", "[") or step else [f" {each}" for each in lines]
            return [f"{start}{self._trailing()}", *self._between(indent + step), *lines]
        if item is None and self._chance.random() < 0.5:
            return [f"{start}{self._trailing()}"]
        head, *more = self._inline(item, indent + (2 if listed else self._step))
        if head[0] not in "|>" and self._chance.random() < 0.1:
            return [f"{start}{self._trailing()}", f"{' ' * indent}  {head}", *more]
        return [f"{start} {head}", *more]

    def _inline(self, value: Any, indent: int) -> list[str]:
        """Return a value that starts on a line which has something before it, a comment after it among it."""
        lines = value.split("\n") if isinstance(value, str) else []
        if len(lines) > 1 and lines[0].strip(" ") and lines[0][0] != " " and self._chance.random() < 0.7:
            keep = len(lines) - len(value.rstrip("\n").split("\n"))
            chomp = "-" if not keep else "+" if keep > 1 else ""
            content = lines[: len(lines) - bool(keep)]
            if all(re.fullmatch("[ -~]*", each) for each in lines):
                return [f"|{chomp}{self._trailing()}", *(" " * indent + each if each else "" for each in content)]
        return [f"{self._in_brackets(value)}{self._trailing()}"]

    def _in_brackets(self, value: Any) -> str:
        comma = self._chance.choice([", ", ",", " , "])
        if isinstance(value, dict):
            parts = comma.join(f"{self._scalar(key)}: {self._in_brackets(item)}" for key, item in value.items())
            return self._chance.choice(["{%s}", "{ %s }"]) % parts
        if isinstance(value, list):
            return self._chance.choice(["[%s]", "[ %s ]"]) % comma.join(map(self._in_brackets, value))
        return self._scalar(value)

    def _scalar(self, value: Any) -> str:
        if not isinstance(value, str):
            return json.dumps(value)
        if _BARE.fullmatch(value) and value not in _WORDS and self._chance.random() < 0.6:
            return value
        if value.isprintable() and self._chance.random() < 0.4:
            return "'" + value.replace("'", "''") + "'"
        return yaml_string(value)
