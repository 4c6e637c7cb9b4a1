"""Values and mounts of a line's flags with their places, and what they make of /dev/shm."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from trainlaunch.diagnostics import Span
from trainlaunch.formats import workload as of
from trainlaunch.formats.docker.flags import takes_shm
from trainlaunch.formats.docker.line import ParsedFlag
from trainlaunch.formats.docker.shell_lexer import Word
from trainlaunch.formats.docker.values import TRUE, csv_fields, is_path, mount_key
from trainlaunch.formats.quantities import engine_bytes, kernel_bytes, tmpfs_of
from trainlaunch.formats.workload import Known, MountPoint, ShmSetting, Unknown, Value, stated

T = TypeVar("T")

_OWN_IPC = frozenset({"", "private", "shareable"})
UNREAD = "unknown"  # the type of a mount of which only the text is known


class PlacedText:
    """A text with the places of its lines."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self._starts = [0]
        for line in text.split("\n")[:-1]:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def span(self, start: int, end: int) -> Span:
        """Return the place of the characters from `start` to `end`."""
        first, last = bisect_right(self._starts, start), bisect_right(self._starts, end)
        return Span(self.file, first, start - self._starts[first - 1] + 1, last, end - self._starts[last - 1] + 1)

    def value(self, value: T, start: int, end: int) -> Known[T]:
        """Return a value that stands there."""
        return Known(value, self.text[start:end], self.span(start, end))

    def unknown(self, start: int, end: int) -> Unknown:
        """Return what is decided elsewhere than there."""
        return Unknown(self.text[start:end], self.span(start, end))

    def word(self, word: Word) -> Known[str] | Unknown:
        """Return a whole word."""
        if not word.known:
            return self.unknown(word.start, word.end)
        return self.value(word.text, word.start, word.end)

    def words(self, words: tuple[Word, ...]) -> Known[tuple[str, ...]] | Unknown:
        """Return several words as one value."""
        start, end = words[0].start, words[-1].end
        if all(each.known for each in words):
            return self.value(tuple(each.text for each in words), start, end)
        return self.unknown(start, end)

    def given(
        self, given: ParsedFlag, parse: Callable[[str], T | None], first: int = 0, last: int | None = None
    ) -> Known[T] | Unknown:
        """Return what `parse` makes of a flag's value, or of its characters `first` to `last`.

        What `parse` makes None of is unknown, as what only a shell can work out.
        """
        text = given.value or ""
        last = len(text) if last is None else last
        start, end, known = given.word.part(given.first + first, given.first + last)
        read = parse(text[first:last]) if known else None
        return self.unknown(start, end) if read is None else self.value(read, start, end)

    def is_known(self, given: ParsedFlag, first: int = 0, last: int | None = None) -> bool:
        """Return whether the text itself decides a flag's value, or its characters `first` to `last`."""
        last = len(given.value or "") if last is None else last
        return given.word.part(given.first + first, given.first + last)[2]


def mounts_of(flags: Mapping[str, Sequence[ParsedFlag]], source: PlacedText) -> Iterator[MountPoint]:
    """Yield the mounts in the order in which one on the same place hides those before it."""
    yield from (_tmpfs(each, source) for each in flags.get("tmpfs", ()))
    yield from (_volume(each, source) for each in flags.get("volume", ()))
    yield from (_mount(each, source) for each in flags.get("mount", ()))


def _tmpfs(given: ParsedFlag, source: PlacedText) -> MountPoint:
    if not source.is_known(given):
        return _unread(given, source, (given.value or "").find(":"))
    value = given.value or ""
    read = tmpfs_of(value)
    size: Value[int] = None
    if read.size is not None:
        at = value.rindex("size=" + read.size) + len("size=")
        size = source.given(given, kernel_bytes, at, at + len(read.size))
    target = source.given(given, str, 0, len(read.target))
    return MountPoint("tmpfs", None, target, size=size, options=read.options)


def _volume(given: ParsedFlag, source: PlacedText) -> MountPoint:
    value = given.value or ""
    ends = [index for index, each in enumerate(value) if each == ":" and source.is_known(given, index, index + 1)]
    if ends and ends[0] == 1 and is_path(value):
        ends = ends[1:]  # the drive of a path of Windows
    if not ends:
        return MountPoint("scratch", None, source.given(given, str))
    last = ends[1] if len(ends) > 1 else len(value)
    options = value[last + 1 :].split(",")
    mounted = value[: ends[0]]
    kind = "bind" if is_path(mounted) or "/" in mounted else "volume"
    if kind == "volume" and not source.is_known(given, 0, ends[0]):
        kind = UNREAD
    return MountPoint(
        kind,
        source.given(given, str, 0, ends[0]),
        source.given(given, str, ends[0] + 1, last),
        "ro" in options or "readonly" in options,
        options=",".join(each for each in options if each not in {"ro", "rw", "readonly", ""}),
    )


def _mount(given: ParsedFlag, source: PlacedText) -> MountPoint:
    try:
        fields = csv_fields(given.value or "")
    except ValueError:
        return _unread(given, source, -1)
    values: dict[str, Known[str] | Unknown] = {}
    size: Value[int] = None
    read_only, others = False, []
    for field in fields:
        key = mount_key(field)
        whole = (given.value or "")[field.first : field.last] if field.value is None else f"{key}={field.value}"
        if key in {"type", "source", "target"} and field.value is not None and key not in values:
            values[key] = source.given(given, _unquoted, field.first, field.last)
        elif key == "tmpfs-size" and field.value is not None and size is None:
            size = source.given(given, engine_bytes, field.first, field.last)
        elif key == "readonly" and not read_only:
            read_only = field.value is None or field.value in TRUE
        else:
            others.append(whole)
    kind = values.get("type")
    named = stated(kind) or (UNREAD if isinstance(kind, Unknown) else "volume")
    if named == "volume" and "source" not in values:
        named = "scratch"
    return MountPoint(named, values.get("source"), values.get("target"), read_only, size, ",".join(others))


def _unquoted(text: str) -> str:
    """Return a part of a CSV field, in which a quotation mark stands twice."""
    return text.replace('""', '"')


def _unread(given: ParsedFlag, source: PlacedText, end: int) -> MountPoint:
    """Return a mount whose value can't be taken apart; its target is what stands before character `end`."""
    target = source.given(given, str, 0, end if end >= 0 else None)
    if end < 0 and isinstance(target, Known):
        target = Unknown(target.text, target.span)
    return MountPoint(UNREAD if given.name == "mount" else given.name, None, target)


def shm_of(
    flags: Mapping[str, Sequence[ParsedFlag]], mounts: Sequence[MountPoint], source: PlacedText, *, podman: bool
) -> ShmSetting:
    """Return what /dev/shm is. A mount there wins over the ipc mode, and both over --shm-size."""
    given = flags.get("shm-size")
    size = source.given(given[-1], engine_bytes) if given else None
    there = [each for each in mounts if isinstance(each.target, Known) and takes_shm(each.target.value.lstrip("/"))]
    if there:
        return _mounted(there[-1])._replace(declared=size)
    mode = (flags.get("ipc") or flags.get("pod") if podman else flags.get("ipc")) or ()
    if mode and not (mode[-1].name == "ipc" and source.is_known(mode[-1]) and mode[-1].value in _OWN_IPC):
        value = source.given(mode[-1], str)
        if isinstance(value, Unknown):
            return ShmSetting(of.SIZE, value, value.span, size)
        shared = mode[-1].name == "pod"  # a pod's containers have the /dev/shm of its first one
        kind = of.CONTAINER if shared else {"host": of.HOST, "none": of.NONE}.get(value.value, of.CONTAINER)
        return ShmSetting(kind, None, value.span, size)
    if size is None:
        return ShmSetting(of.ABSENT)
    if stated(size) == 0:  # Docker's default of 64 MiB, and no limit in Podman
        return ShmSetting(of.UNSIZED if podman else of.ABSENT, None, size.span, size)
    return ShmSetting(of.SIZE, size, size.span)


def _mounted(mount: MountPoint) -> ShmSetting:
    span = None if mount.target is None else mount.target.span
    if mount.type == "tmpfs":
        unlimited = mount.size is None or stated(mount.size) == 0
        return ShmSetting(of.UNSIZED, None, span) if unlimited else ShmSetting(of.TMPFS, mount.size, span)
    if mount.type == UNREAD and mount.source is not None:
        return ShmSetting(of.SIZE, Unknown(mount.source.text, mount.source.span), span)
    return ShmSetting(of.BIND if mount.type == "bind" else of.DISK, None, span)
