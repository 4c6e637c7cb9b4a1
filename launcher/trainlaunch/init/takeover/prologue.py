"""The numbers that a rendered file's preflight carries: what is left of a plan in its text."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trainlaunch.container.preflight import SCRIPT_MARK
from trainlaunch.formats.workload import Known, Workload, stated
from trainlaunch.job.reserved import LABEL_PREFIX, PLAN_VARIABLE
from trainlaunch.plan.instrumentation import DATA_WAIT, PAGES, SETTING
from trainlaunch.plan.shared_memory import PAGE

_INJECTED = re.compile(rf"\bexport {SETTING}='([^']*)'")
_ASSIGNED = re.compile(r"(?:tl_)?([a-z]+)=(.*)", re.DOTALL)


class Wrapped(NamedTuple):
    """The process of a rendered file: the image's ENTRYPOINT, the text of the plan's numbers, those, the job's argv.

    `numbers` are the preflight's variables by their names without `tl_`.
    """

    entrypoint: tuple[str, ...]
    text: str
    numbers: dict[str, str]
    argv: tuple[str, ...]

    @property
    def begins_script(self) -> bool:
        """Whether the numbers begin the preflight's text, as in rendered files before format 3."""
        return "\n" in self.text

    def number(self, name: str) -> int:
        """Return a variable that is a whole number, 0 where it is none."""
        value = self.numbers.get(name, "")
        return int(value) if re.fullmatch(r"\d{1,18}", value) else 0

    def lines(self, name: str) -> tuple[tuple[int, int], ...]:
        """Return the pairs A:B of a variable."""
        pairs = (each.partition(":") for each in self.numbers.get(name, "").split())
        return tuple((int(one), int(other)) for one, _, other in pairs if re.fullmatch(r"\d+", one) and _is_int(other))

    def names(self, name: str) -> frozenset[str]:
        """Return the words of a variable."""
        return frozenset(self.numbers.get(name, "").split())

    def injected(self) -> list[dict[str, Any]]:
        """Return the job's loaders as the module has them that gives them workers; none where it is not delivered."""
        found = _INJECTED.search(self.text)
        with contextlib.suppress(ValueError):
            loaders = json.loads(found[1]) if found else []
            return [each for each in loaders if isinstance(each, dict)] if isinstance(loaders, list) else []
        return []

    def without_own_files(self) -> Wrapped:
        """Return it with numbers of the job alone: without the room in /dev/shm that files of trainlaunch take."""
        if not self.numbers.get("parts"):
            return self
        own = PAGES * PAGE
        lines: dict[str, str] = {
            key: " ".join(f"{slope}:{rest - own}" for slope, rest in self.lines(key))
            for key in ("first", "every")
            if key in self.numbers
        }
        needs: dict[str, str] = {key: str(self.number(key) - own) for key in ("need", "without") if key in self.numbers}
        return self._replace(numbers={**self.numbers, **lines, **needs})


def _is_int(text: str) -> bool:
    return re.fullmatch(r"-?\d+", text) is not None


def wrapped(workload: Workload) -> Wrapped | None:
    """Return the process of a container that a rendered file of ours starts; None for any other."""
    entrypoint, command = workload.entrypoint, workload.command
    words = (
        *(entrypoint.value if isinstance(entrypoint, Known) else ()),
        *(command.value if isinstance(command, Known) else ()),
    )
    found = wrapped_words(words, stated(workload.env.get(PLAN_VARIABLE)) or "")
    if found is None or LABEL_PREFIX + "run" not in workload.labels:
        return found
    parts = found.numbers.get("parts", "").split()  # `up` adds one to the job's own
    return found._replace(numbers={**found.numbers, "parts": " ".join(each for each in parts if each != DATA_WAIT)})


def wrapped_words(words: tuple[str, ...], plan: str) -> Wrapped | None:
    """Return what `wrapped` does, of an argv and the plan's variable; before format 3 the script began with both."""
    for at in range(len(words) - 3):
        shell, script, name = words[at : at + 2], words[at + 2], words[at + 3]
        if shell != ("/bin/sh", "-c") or name != "trainlaunch":
            continue
        if script.startswith(SCRIPT_MARK) and "need" in (numbers := dict(_assigned(plan))):
            unpacked = bool(numbers.get("parts"))
            return Wrapped(words[:at], plan, {**_usual(numbers), **numbers}, words[at + 4 + unpacked :])
        if script.startswith("tl_ranks="):
            return Wrapped(words[:at], script, dict(_assigned(script)), words[at + 4 :])
    return None


def _usual(numbers: Mapping[str, str]) -> dict[str, str]:
    """Return what a plan's variable leaves out since it is usual."""
    given = (numbers.get(name, usual) for name, usual in (("ranks", "1"), ("workers", "0")))
    ranks, workers = (int(each) if re.fullmatch(r"\d{1,9}", each) else 0 for each in given)
    return {"ranks": "1", "prefetch": "2" if workers else "", "stated": str(ranks * workers)}


def _assigned(text: str) -> Iterable[tuple[str, str]]:
    """Yield the variables that a preflight begins with."""
    reader = shlex.shlex(text, posix=True, punctuation_chars=False)
    reader.whitespace_split, reader.commenters = True, "#"
    try:
        for token in reader:
            match = _ASSIGNED.fullmatch(token.removesuffix(";"))
            if match is None:
                return
            yield match[1], match[2]
    except ValueError:  # a quotation mark that nobody closes: a text that was changed
        return
