"""What somebody's text starts, whatever its format: one container's values, each with its place in the text.

Every reader of this package gives Workloads, of our own rendered files and of text that nobody here wrote. Nothing is
guessed: a value that a variable or a template decides is Unknown, and what a text leaves out is None.
"""

from collections.abc import Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from trainlaunch.diagnostics import Placed, Span

T = TypeVar("T")


class Known(Generic[T]):
    """A value that the text sets. `text` is its source spelling, which `span` cuts out of the file exactly.

    A value that several places make together (an argv, an env list) has the span from the first to the last of them.
    Lines and columns are counted when someone asks for the span, since most values only get compared.
    """

    __slots__ = ("_at", "text", "value")

    def __init__(self, value: T, text: str, at: Placed) -> None:
        self.value = value
        self.text = text
        self._at = at

    @property
    def span(self) -> Span:
        """The place of `text`."""
        return self._at.span

    def __repr__(self) -> str:
        return f"Known({self.value!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and self.value == other.value

    def __hash__(self) -> int:
        return hash(repr(self.value))


class Unknown(NamedTuple):
    """A value that the text leaves to something else: a variable of a shell, a template, a file that isn't here.

    Also one that the format's own reader would refuse, as docker does `--shm-size=2Gi`; `rest` then says so.
    """

    text: str
    span: Span


Value = Known[T] | Unknown | None  # None: the text doesn't set it

# What /dev/shm is. SIZE: the runtime's own mount with a size that is set, or a Memory emptyDir with a sizeLimit.
# UNSIZED: a Memory emptyDir or tmpfs without a size. TMPFS: a tmpfs that the text itself mounts there, with its size.
# DISK: an emptyDir without Memory, a PVC, a named volume. BIND: a folder of the host.
# HOST, CONTAINER, NONE: ipc mode. ABSENT: nothing is said, so the runtime's default of 64 MiB.
ABSENT, SIZE, UNSIZED, HOST, CONTAINER, NONE, BIND, TMPFS, DISK = (
    *("absent", "size", "unsized", "host", "container", "none"),
    *("bind", "tmpfs", "disk"),
)


class ShmSetting(NamedTuple):
    """/dev/shm of a container: one of the kinds above, its size in bytes where the kind has one, where it is said.

    `declared` is a size that the text sets and that is not in effect, as with `--ipc=host --shm-size=1g`.
    """

    kind: str
    size: Value[int] = None
    span: Span | None = None
    declared: Value[int] = None


class GpuRequest(NamedTuple):
    """GPUs asked for: a `count`, device `ids`, or `all`; `resource` is Kubernetes' name of them, else empty."""

    number: int = 0
    ids: tuple[str, ...] = ()
    all: bool = False
    resource: str = ""


class MountPoint(NamedTuple):
    """One mount. `type` is bind, volume, tmpfs, scratch, pvc, config, secret, image … as the format means it.

    `options` are what the other fields don't say, empty for a mount as `render` writes it.
    """

    type: str
    source: Value[str]
    target: Value[str]
    read_only: bool = False
    size: Value[int] = None
    options: str = ""


class Workload(NamedTuple):
    """One container of a text.

    `format` is docker_run, compose or kubernetes; `place` says which of several it is (`services.train`,
    `Job/train containers[0]`), `span` is the place to point at for what is missing: its name, or the word `run`.
    Sizes are bytes, CPUs thousandths, durations seconds. The process is entrypoint + command where both are set.
    `secrets` are variables by the source of their values. `rest` is all else that the text says of it, by dotted path,
    so that two readings can be compared whole.
    """

    format: str
    place: str
    span: Span
    name: Value[str] = None
    image: Value[str] = None
    pull_policy: Value[str] = None
    entrypoint: Value[tuple[str, ...]] = None
    command: Value[tuple[str, ...]] = None
    env: Mapping[str, Value[str]] = {}
    secrets: Mapping[str, str] = {}
    labels: Mapping[str, Value[str]] = {}
    shm: ShmSetting = ShmSetting(ABSENT)
    memory: Value[int] = None
    cpus: Value[int] = None
    gpus: Value[GpuRequest] = None
    devices: Mapping[str, str] = {}
    mounts: tuple[MountPoint, ...] = ()
    health: Value[str] = None
    health_times: Mapping[str, Value[int]] = {}
    user: Value[str] = None
    groups: tuple[str, ...] = ()
    working_dir: Value[str] = None
    read_only: Value[bool] = None
    stop_signal: Value[str] = None
    stop_timeout: Value[int] = None
    ulimits: Mapping[str, tuple[int, int]] = {}
    rest: Mapping[str, object] = {}


def stated(value: Value[T]) -> T | None:
    """Return the value that a text sets, None where it is unknown or absent."""
    return value.value if isinstance(value, Known) else None


def flat(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield each leaf of Python values with its dotted path; empty lists and mappings say nothing."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from flat(item, f"{path}.{index}")
    else:
        yield path, value


def cut(text: str, span: Span) -> str:
    """Return the part of `text` at `span`; lines end at \\n alone, columns count characters."""
    lines = text.split("\n")[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    return "\n".join(lines)
