"""Health checks that trainlaunch makes where no engine does."""

from __future__ import annotations

from trainlaunch.run.base.shm_reading import OwnChecks


def test_a_check_is_due_once_an_interval() -> None:
    """Each run has its own time."""
    now = [0.0]
    checks = OwnChecks(lambda: now[0])
    assert [checks.due("a", 30), checks.due("a", 30), checks.due("b", 30)] == [True, False, True]
    now[0] = 29.9
    assert not checks.due("a", 30)
    now[0] = 30.0
    assert checks.due("a", 30)


def test_failures_in_a_row_count() -> None:
    """One that passes between them begins anew."""
    checks = OwnChecks()
    results = [True, True, False, True, True, True, True]
    assert [checks.unhealthy("a", failed=each, retries=3) for each in results] == [False] * 5 + [True] * 2
    assert not checks.unhealthy("b", failed=True, retries=3)
