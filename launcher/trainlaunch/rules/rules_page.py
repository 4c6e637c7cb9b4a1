"""Writes docs/rules.md from the manuals of the rules of written texts, so that the two can't differ."""

from __future__ import annotations

from trainlaunch.manuals import manuals
from trainlaunch.rules.base.text_rule import TextRule
from trainlaunch.rules.text_findings import RULES

_INTRODUCTION = """\
# The rules of `trainlaunch lint`

<!-- written from trainlaunch/manuals/ by `python -m trainlaunch.rules.rules_page`; edit those -->

Each rule's page says why it exists, shows an example and what to write instead, and what `--fix` does.
[lint.md](lint.md) describes the command. Rules of the group `defects` run by default; those of `practice` run with
`--select practice` or `--select all`. The severity is the usual one; a rule's page says where it differs. A code that
is not 3xx applies to job files too.

"""


def rules_markdown() -> str:
    """Return the page: a table of all rules by code."""
    rules = sorted(RULES, key=lambda rule: rule.code)
    rows = "".join(f"| {_link(each)} | {each.group} | {each.severity.value} | {_fix(each)} |\n" for each in rules)
    return f"{_INTRODUCTION}| rule | group | severity | `--fix` |\n|---|---|---|---|\n{rows}"


def _link(rule: TextRule) -> str:
    return f"[{rule.code} {rule.name}](codes/{rule.code}.md)"


def _fix(rule: TextRule) -> str:
    """Return whether the manual says that `--fix` edits something."""
    return "yes" if "`--fix`" in manuals()[rule.code].sections.partition("**Fix**")[2] else ""


if __name__ == "__main__":
    import sys

    sys.stdout.write(rules_markdown())
