"""A rule of a plan: a function that yields what is wrong, under the code by which it is explained and allowed."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from trainlaunch.diagnostics import Diagnostic, Edit, Severity, Span
from trainlaunch.plan.launch_plan import LaunchPlan


class Problem(NamedTuple):
    """What a rule says, as severe as the rule unless it says otherwise.

    Without a span it stands at its field, or, of a written text, at its container; `about` is that container's place
    where it has no field, `group` the one it is of where that isn't the rule's. `edits` carry the fix out.
    """

    message: str
    fix: str
    why: str = ""
    field: str = ""
    span: Span | None = None
    severity: Severity | None = None
    edits: tuple[Edit, ...] = ()
    safe: bool = True
    about: str = ""
    group: str = ""


class PlanRule(NamedTuple):
    """One rule of a plan; `problems` knows of no other rule."""

    code: str
    name: str
    severity: Severity
    problems: Callable[[LaunchPlan], Iterator[Problem]]

    def check(self, plan: LaunchPlan) -> Iterator[Diagnostic]:
        """Yield what it says of a plan."""
        for problem in self.problems(plan):
            message, fix, why, field, span, severity, *_ = problem
            span = span or (plan.job.span(field) if field else None)
            yield Diagnostic(self.code, message, fix, why, severity or self.severity, span, field)


def plan_rule(code: str, severity: Severity) -> Callable[[Callable[[LaunchPlan], Iterator[Problem]]], PlanRule]:
    """Make a rule of a function; its name is the rule's, with underscores."""
    return lambda problems: PlanRule(code, rule_name(problems), severity, problems)


def rule_name(problems: Callable[..., Iterator[Problem]]) -> str:
    """Return the name that a function gives its rule."""
    return problems.__name__.replace("_", "-")
