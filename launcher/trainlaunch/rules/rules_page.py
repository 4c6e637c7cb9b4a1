"""Writes docs/rules.md from the manuals of the rules of written texts, so that the two can't differ."""

from __future__ import annotations

from trainlaunch.manuals import manuals
from trainlaunch.rules.base.text_rule import TextRule
from trainlaunch.rules.text_findings import RULES

_INTRODUCTION = """\
# The rules of `trainlaunch lint`

<!-- written from trainlaunch/manuals/ by `python -m trainlaunch.rules.rules_page`; edit those -->

What `lint` says of texts that people wrote, with why, an example, what to write instead, and what `--fix` does.
[lint.md](lint.md) has the verb. Rules of the group `defects` are asked unless `--select` says otherwise, those of
`practice` with `--select practice` or `all`. The severity is a rule's usual one; its manual says where it differs.
A code that is not 3xx is a job file's too, and has its manual in [codes.md](codes.md).

"""


def rules_markdown() -> str:
    """Return the page: a table of all rules by code, then each whose code is of written texts alone."""
    rules = sorted(RULES, key=lambda rule: rule.code)
    rows = "".join(f"| {_link(each)} | {each.group} | {each.severity.value} | {_fix(each)} |\n" for each in rules)
    table = f"| rule | group | severity | `--fix` |\n|---|---|---|---|\n{rows}"
    return _INTRODUCTION + table + "".join(_section(each.code) for each in rules if is_of_texts_alone(each.code))


def is_of_texts_alone(code: str) -> bool:
    """Whether a rule's code is one of written texts, and so has its manual here."""
    return code.startswith("TL3")


def _link(rule: TextRule) -> str:
    page = "" if is_of_texts_alone(rule.code) else "codes.md"
    return f"[{rule.code} {rule.name}]({page}#{rule.code.lower()}-{rule.name})"


def _fix(rule: TextRule) -> str:
    """Return whether the manual says that `--fix` edits something."""
    return "yes" if "`--fix`" in manuals()[rule.code].sections.partition("**Fix**")[2] else ""


def _section(code: str) -> str:
    _, name, title, sections, _ = manuals()[code]
    sections = sections.replace("**Why**: ", "**Why it matters**: ", 1).replace(
        "**Write instead**:", "**Use instead**:"
    )
    return f"\n## {code} {name}\n\n{title}\n\n{sections}"


if __name__ == "__main__":
    import sys

    sys.stdout.write(rules_markdown())
