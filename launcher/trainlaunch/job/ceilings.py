"""What the policies in force ask of a job, as the job carries it: limits, allow-lists and demands, each with its
place in the file that sets it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from trainlaunch.diagnostics import Severity, Span

if TYPE_CHECKING:
    from fractions import Fraction


class Ceiling(NamedTuple):
    """A limit and its place."""

    value: int
    span: Span


class Allowed(NamedTuple):
    """One file's allow-list and its place."""

    values: tuple[str, ...]
    span: Span


class SeverityOverride(NamedTuple):
    """The severity that a policy gives to a code, None for off, and its place."""

    severity: Severity | None
    span: Span


class PolicyValue(NamedTuple):
    """A value that a policy gives to the job: its field, as a job file spells the value, and where it came from.

    `profile` is the name of the profile that it is of, None for a default.
    """

    field: str
    value: str
    file: str
    profile: str | None


class Policy(NamedTuple):
    """What the policies in force ask of a job, all of them together.

    `files` are theirs, the nearest first; `option` is that of --policy where nothing else would name it. `fixed` are
    those named by an absolute path, which is the same wherever the job's folder lies. `allowed` has by field the lists
    that a value must be in, every one of them. Spans are None for what none of them asks. `render_path` and
    `render_targets` are the nearest file's: where rendered files of many jobs belong, and for which targets they are.
    `shm_share` is the part of a memory limit that a cluster's repair gives to /dev/shm.
    """

    files: tuple[str, ...]
    option: str | None
    fixed: frozenset[str]
    max: Mapping[str, Ceiling]
    allowed: Mapping[str, tuple[Allowed, ...]]
    required: tuple[tuple[str, Span], ...]
    required_labels: tuple[tuple[str, str, Span], ...]
    severities: Mapping[str, SeverityOverride]
    digest_span: Span | None
    token_span: Span | None
    render_path: tuple[str, Span] | None
    render_targets: tuple[str, ...]
    given: tuple[PolicyValue, ...] = ()
    shm_share: "Fraction | None" = None
