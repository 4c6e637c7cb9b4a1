"""Writes docs/rules.md from the manuals of the rules of written texts, so that the two can't differ."""

from __future__ import annotations

from types import ModuleType

from launcher.rules.written.registry import RULES

_INTRODUCTION = """\
# The rules of `trainlaunch lint`

<!-- written from launcher/rules/ by `python -m launcher.rules.written.reference`; edit the modules -->

What `lint` says of texts that people wrote, with why, an example, what to write instead, and what `--fix` does.
[lint.md](lint.md) has the verb. Rules of the group `defects` are asked unless `--select` says otherwise, those of
`practice` with `--select practice` or `all`. The severity is a rule's usual one; its manual says where it differs.
A code that is not 3xx is a job file's too, and has its manual in [codes.md](codes.md).

"""


def rules_markdown() -> str:
    """Return the page: a table of all rules by code, then each whose code is of written texts alone."""
    rules = sorted(RULES, key=lambda each: str(each.CODE))
    rows = "".join(f"| {_link(each)} | {each.GROUP} | {each.SEVERITY.value} | {_fix(each)} |\n" for each in rules)
    table = f"| rule | group | severity | `--fix` |\n|---|---|---|---|\n{rows}"
    return _INTRODUCTION + table + "".join(map(_section, filter(is_of_texts_alone, rules)))


def is_of_texts_alone(rule: ModuleType) -> bool:
    """Whether a rule's code is one of written texts, and so has its manual here."""
    return str(rule.CODE).startswith("TL3")


def _link(rule: ModuleType) -> str:
    page = "" if is_of_texts_alone(rule) else "codes.md"
    return f"[{rule.CODE} {rule.NAME}]({page}#{rule.CODE.lower()}-{rule.NAME})"


def _fix(rule: ModuleType) -> str:
    """Return whether the manual says that `--fix` edits something."""
    return "yes" if "`--fix`" in (rule.__doc__ or "").partition("**Fix**")[2] else ""


def _section(rule: ModuleType) -> str:
    title, _, sections = (rule.__doc__ or "").strip().partition("\n\n")
    return f"\n## {rule.CODE} {rule.NAME}\n\n{' '.join(title.split())}\n\n{sections}\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(rules_markdown())
