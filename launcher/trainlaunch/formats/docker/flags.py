"""Flags as a job's patch lists them, one word or two each, by the table of flags."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from trainlaunch.diagnostics import Report, Span
from trainlaunch.did_you_mean import closest
from trainlaunch.formats.docker.table import ALIASES, FLAGS, SHORT, SWITCHES
from trainlaunch.formats.docker.values import mount_fields
from trainlaunch.yamltree.strict import ScalarNode, SequenceNode


class Flag(NamedTuple):
    """One flag by its long name without dashes; `value` is None for a bare switch. `at` is the index of its word."""

    name: str
    value: str | None
    at: int
    span: Span

    @property
    def words(self) -> tuple[str, ...]:
        """The flag as words of a command line."""
        if self.value is None:
            return (f"--{self.name}",)
        return (f"--{self.name}={self.value}",) if self.name in SWITCHES else (f"--{self.name}", self.value)

    @property
    def mount_target(self) -> str | None:
        """Where --mount, --volume or --tmpfs mounts something; None for any other flag."""
        value = self.value or ""
        if self.name == "tmpfs":
            return value.partition(":")[0]
        if self.name == "volume":
            parts = value.split(":")
            return parts[1] if len(parts) > 1 else parts[0]
        return self.mount_fields.get("target", "") if self.name == "mount" else None

    @property
    def mount_fields(self) -> dict[str, str]:
        """The fields of a --mount; none for any other flag, and where docker couldn't read them."""
        try:
            return mount_fields(self.value or "") if self.name == "mount" else {}
        except ValueError:
            return {}


def takes_shm(target: str) -> bool:
    """Return whether something mounted at `target` hides /dev/shm."""
    return posixpath.normpath(f"/{target}").replace("//", "/") in {"/", "/dev", "/dev/shm"}


def flags_of(node: SequenceNode, report: Report | None) -> Iterator[Flag]:
    """Yield the flags of a list of words; what is not a docker run flag is put in `report`, if there is one."""
    words = [each for each in node.items if isinstance(each, ScalarNode)]
    left = iter(enumerate(words))
    for index, word in left:
        name, value = flag_name(word.text)
        if name is None or name not in FLAGS:
            if report is not None:
                _refuse(report, word, name)
            return
        if value is None and name not in SWITCHES:
            following = next(left, None)
            if following is None:
                if report is not None:
                    report.add(
                        "TL145",
                        word,
                        message=f"{word.text} stands without its value",
                        fix="add its value as the next element of extra_args",
                    )
                return
            value = following[1].text
        yield Flag(name, value, index, word.span)


def flag_name(word: str) -> tuple[str | None, str | None]:
    """Return the long name that a word starts with, and the value in it; no name for what is no flag."""
    long = re.fullmatch(r"--([a-z0-9][-a-z0-9]*)(?:=([\s\S]*))?", word)
    if long:
        return ALIASES.get(long[1], long[1]), long[2]
    short = re.fullmatch(r"-([A-Za-z])(?:=?([\s\S]+))?", word)
    flag = SHORT.get(short[1]) if short else None
    if short and flag and (short[2] is None or flag.name not in SWITCHES):
        return flag.name, short[2]
    return None, None


def _refuse(report: Report, word: ScalarNode, name: str | None) -> None:
    shown = word.text if len(word.text) <= 60 and word.text.isprintable() else ascii(word.text[:59])
    free = sorted(each.name for each in FLAGS.values() if each.job_field is None)
    close = closest(name, free, cutoff=0.7) if name else ""
    parted = re.fullmatch(r"(--[a-z0-9-]+) (.+)", word.text)
    if parted:
        fix = f'write two elements, "{parted[1]}" and "{parted[2]}"'
    elif close:
        fix = f"write --{close}"
    else:
        fix = "write flags of docker run with their values, as in [--cap-add, SYS_PTRACE]"
    report.add(
        "TL145",
        word,
        message=f"{shown} is not a docker run flag",
        why="docker would take the first word that is not a flag for the image",
        fix=fix,
        field="patches.docker.extra_args",
    )
