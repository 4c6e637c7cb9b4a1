"""The reference page of the job file, written from the table of fields."""

from __future__ import annotations

from collections.abc import Iterable

from trainlaunch.job.fields.table import rows
from trainlaunch.job.fields.types import Field, Type, spell

_INTRO = """\
# The job file

One YAML mapping. Written by `launcher/trainlaunch/job/reference.py` from the table of fields; don't edit this page.

- **Sizes**: `Ki Mi Gi Ti`, or lower-case `k m g t` with an optional `b`, all binary: `512m` is 512 MiB. `8G`, `8GB`
  and `8M` are errors, since Docker and Kubernetes read them differently, and so are bare integers under 1 MiB.
- **CPUs**: `4`, `1.5`, `500m`. **Durations**: `30s`, `5m`, `1h30m`, `2d`.
- **Strings** (`env`, `labels`, `command` and all other text) take a plain scalar as it is spelled: `no` is "no",
  `1e3` is "1e3", `08` is "08". Integers are plain digits and booleans are `true` or `false`; `"8"`, `0o10`, `1_000`
  and `yes` are errors.
- **`target_overrides.T`** takes any field for one target: mappings merge, lists and scalars replace, null is the
  default.
- **`--set field=value`** lays one value on top of all that, for one invocation: `--set resources.memory=16Gi`,
  `--set mounts.0.source=./data`, `--set 'env.DEBUG="1"'`. A list's length as index appends: `--set command.2=--amp`.
- Precedence: defaults < defaults of policies < `profile` < job < target_overrides < `--set`. The lock (`trainlaunch
  lock`) fills what all of these leave open: the image's digest and `image_entrypoint`. Ceilings of the policy come last
  ([policy.md](policy.md)); [patches](patches.md) change the final text in what the plan does not decide.
- No key stands twice. Anchors, aliases and `<<` work; tags don't. At most 1 MiB and 10,000 values.
"""
_HEAD = "| field | type | default | meaning | docker run | Compose | Kubernetes |\n|---|---|---|---|---|---|---|\n"


def reference_markdown() -> str:
    """Return docs/job-file.md."""
    lines = "".join(_row(path, field) for path, field in rows())
    return f"{_INTRO}\n{_HEAD}{lines}"


def _row(path: str, field: Field) -> str:
    cells = (
        f"`{path}`",
        type_words(field.type),
        field.default_text,
        field.meaning,
        field.docker,
        field.compose,
        field.kubernetes or (f"`{field.pod_key}`" if field.pod_key else ""),
    )
    return table_line(cells)


def table_line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def type_words(type_: Type) -> str:
    """Return a type in words, with its bounds where they say more than the type does."""
    words = _plain_words(type_)
    if type_.auto:
        words = f"auto, {words}"
    return f"{words}, null" if type_.nullable else words


def _plain_words(type_: Type) -> str:
    if type_.kind == "list":
        items = f"list of {type_words(type_.inner)}"
        return f"{items}, or one" if type_.single else items
    if type_.kind == "choice":
        return ", ".join(type_.choices)
    if (
        type_.low
        and type_.kind in {"int", "size", "cpus", "duration"}
        and not (type_.kind == "size" and type_.low == 1)
    ):
        kind = {"int": "integer", "cpus": "CPUs"}.get(type_.kind, type_.kind)
        return f"{kind} ≥ {spell(type_, type_.low)}"
    if type_.instead:
        return ", ".join((*type_.instead, "mapping"))
    return {"int": "integer ≥ 0", "map": "mapping", "object": "mapping", "any": "any"}.get(
        type_.kind, type_.what.removeprefix("an ").removeprefix("a ")
    )
