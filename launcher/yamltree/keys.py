"""Keys of a mapping: none may stand twice."""

from __future__ import annotations

from launcher.diagnostics import Explanation, Placed, Report

TL103 = Explanation(
    "TL103",
    "key-twice",
    "One mapping holds the same key twice.",
    """\
**Why**: YAML readers keep the last one silently, so the first would be a line without effect.

**Example**:

```yaml
env: {MODE: offline}
env: {LEVEL: debug}
```

**Write instead**:

```yaml
env: {MODE: offline, LEVEL: debug}
```
""",
)


def refuse_second(text: str, key: Placed, first: Placed, report: Report) -> None:
    """Put in `report` that the key `text` stands in the mapping already, at `first`."""
    name = text if len(text) <= 60 else f"{text[:59]}…"
    one, two = first.span.line, key.span.line
    same = one == two
    report.add(
        TL103.code,
        key,
        message=f"the key {name} stands twice in one mapping, on line{f' {one}' if same else f's {one} and {two}'}",
        why="most readers of YAML keep the last one and say nothing",
        fix="delete one of them" if same else f"delete line {one} or line {two}",
    )
