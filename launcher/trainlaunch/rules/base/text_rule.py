"""A rule of written texts: a function that yields what is wrong with one container, or with one text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.rules.base.rule import Problem, rule_name
from trainlaunch.rules.sources.source_text import DEFECTS, SourceContainer, SourceText, TextFinding


class TextRule(NamedTuple):
    """One rule of written texts, of the group by which `--select` chooses; `kinds` are those that it reads, () all."""

    code: str
    name: str
    severity: Severity
    group: str
    kinds: tuple[str, ...]
    problems: Callable[[SourceText], Iterator[Problem]]

    def check(self, file: SourceText) -> Iterator[TextFinding]:
        """Yield what it says of a text."""
        for problem in self.problems(file) if not self.kinds or file.kind in self.kinds else ():
            message, fix, why, field, span, severity, edits, safe, about, group = problem
            diagnostic = Diagnostic(self.code, message, fix, why, severity or self.severity, span, field)
            yield TextFinding(diagnostic, self.name, edits, safe and bool(edits), about, group or self.group)


def text_rule(
    code: str, severity: Severity, *kinds: str, group: str = DEFECTS
) -> Callable[[Callable[[SourceText], Iterator[Problem]]], TextRule]:
    """Make a rule of a function that is asked once a text."""
    return lambda problems: TextRule(code, rule_name(problems), severity, group, kinds, problems)


def container_rule(
    code: str, severity: Severity, *formats: str, group: str = DEFECTS, kinds: tuple[str, ...] = ()
) -> Callable[[Callable[[SourceContainer], Iterator[Problem]]], TextRule]:
    """Make a rule of a function that is asked for each container, of these formats alone where some are named."""

    def made(check: Callable[[SourceContainer], Iterator[Problem]]) -> TextRule:
        def problems(file: SourceText) -> Iterator[Problem]:
            for container in file.containers:
                if not formats or container.workload.format in formats:
                    yield from at_container(container, check(container))

        return TextRule(code, rule_name(check), severity, group, kinds, problems)

    return made


def pod_rule(
    code: str, severity: Severity, *, group: str = DEFECTS
) -> Callable[[Callable[[SourceContainer], Iterator[Problem]]], TextRule]:
    """Make a rule of a function that is asked for each container until it says something of the pod."""

    def made(check: Callable[[SourceContainer], Iterator[Problem]]) -> TextRule:
        def problems(file: SourceText) -> Iterator[Problem]:
            told: set[int] = set()
            for container in file.containers:
                if container.pod is None or id(container.pod) not in told:
                    said = list(at_container(container, check(container)))
                    told |= {id(container.pod)} if said else set()
                    yield from said

        return TextRule(code, rule_name(check), severity, group, (), problems)

    return made


def at_container(container: SourceContainer, problems: Iterator[Problem]) -> Iterator[Problem]:
    """Yield problems of a container, each with its field, and at its place where they have none."""
    for problem in problems:
        span, field = problem.span or container.workload.span, problem.field or container.workload.place
        yield problem._replace(span=span, field=field)
