"""What a policy asks of a job, as the job carries it: ceilings and demands, each with its place in the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from launcher.diagnostics import Span


class Limit(NamedTuple):
    """A ceiling and its place."""

    value: int
    span: Span


class Policy(NamedTuple):
    """What a policy asks of a job. `given` are its defaults that are in effect, by field, as a job file spells them.

    `option` says that --policy named it and nothing else would, `fixed` that it was named by an absolute path, which is
    the same wherever the job's folder lies. Spans are None for what it doesn't ask.
    """

    path: str
    option: bool
    fixed: bool
    max: Mapping[str, Limit]
    required_labels: tuple[tuple[str, str, Span], ...]
    allowed_registries: tuple[str, ...]
    registries_span: Span | None
    digest_span: Span | None
    given: tuple[tuple[str, str], ...] = ()
