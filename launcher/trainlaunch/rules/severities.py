"""How much findings matter under a policy: its severities in place of the rules' own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.job.ceilings import Policy

# Codes of rules that are gone, which policies may still name: a code is never given to another rule.
RETIRED = frozenset({"TL403"})


def apply_severities(found: Iterable[Diagnostic], policy: Policy | None) -> tuple[Diagnostic, ...]:
    """Return findings as severe as the policies in force make them, without those that they turn off."""
    weights = policy.severities if policy else {}
    stated = ((each, weights[each.code].severity if each.code in weights else each.severity) for each in found)
    return tuple(each._replace(severity=severity) for each, severity in stated if severity is not None)


def not_applicable(policy: Policy, known: Set[str], errors: Set[str]) -> Iterator[Diagnostic]:
    """Yield an error at each severity that can't be in effect: of an unknown code, or lower than an error's."""
    for code, (severity, span) in policy.severities.items():
        if code in RETIRED:
            continue
        if code not in known:
            said, fix = f"severities names {code}, which no rule has", "write a code of docs/codes.md, like TL206"
        elif code in errors and severity is not Severity.ERROR:
            asked = severity.value if severity else "off"
            said, fix = f"severities makes {code} {asked}, which is an error of every plan", f"delete {code} there"
        else:
            continue
        why = "an error of plan says that the job can't start or would die, wherever it runs"
        yield Diagnostic("TL154", said, fix, why=why, span=span, field=f"severities.{code}")
