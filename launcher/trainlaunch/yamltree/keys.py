"""Keys of a mapping: none may stand twice."""

from __future__ import annotations

from trainlaunch.diagnostics import Placed, Report


def refuse_second(text: str, key: Placed, first: Placed, report: Report) -> None:
    """Put in `report` that the key `text` stands in the mapping already, at `first`."""
    name = text if len(text) <= 60 else f"{text[:59]}…"
    one, two = first.span.line, key.span.line
    same = one == two
    report.add(
        "TL103",
        key,
        message=f"the key {name} stands twice in one mapping, on line{f' {one}' if same else f's {one} and {two}'}",
        why="most readers of YAML keep the last one and say nothing",
        fix="delete one of them" if same else f"delete line {one} or line {two}",
    )
