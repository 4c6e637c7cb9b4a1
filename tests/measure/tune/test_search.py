"""Which settings are timed, in what order, and which is taken."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from trainlaunch.inside.tune.task import ALIKE, Setting, Space, Timed, chosen, medians, next_setting

LADDER = (0, 1, 2, 3, 4, 6, 8, 12, 16)
NONE = Setting(0)
SPACE = Space(LADDER, ((4, 16), (8, 8)), pinning=False, enough=2)


def searched(
    rate: Callable[[Setting], float], space: Space = SPACE, *, first: Setting = NONE, left: int = 99
) -> list[Timed]:
    """Return all that is timed where each setting has this rate."""
    timed = [Timed(first, rate(first))]
    while (setting := next_setting(space, timed, left)) is not None:
        timed.append(Timed(setting, rate(setting)))
        left -= 1
        assert len(timed) < 60
    return timed


def workers(timed: list[Timed]) -> list[int]:
    """Return the numbers of workers in order."""
    return [each.setting.num_workers for each in timed]


def test_more_workers_are_tried_until_two_more_bring_nothing() -> None:
    """A rate that stands still from 3 workers on."""
    timed = searched(lambda setting: min(3, setting.num_workers) + 1.0)
    assert workers(timed)[:6] == [0, 1, 2, 3, 4, 6]
    assert 8 not in workers(timed)
    assert chosen(timed).setting == Setting(3)


def test_one_slower_step_ends_nothing() -> None:
    """One worker is often slower than none, and the CPUs of a rank are filled in any case."""
    rates = {0: 287, 1: 274, 2: 466, 3: 951, 4: 1036, 6: 1400, 8: 2138, 12: 2693, 14: 2858, 16: 2713}
    space = SPACE._replace(prefetch=(), enough=16)
    timed = searched(lambda setting: float(rates.get(setting.num_workers, 0)), space)
    assert workers(timed)[:9] == list(LADDER)
    assert chosen(timed).setting.num_workers == 14  # between the best and its neighbour


def test_more_prefetching_is_tried_as_long_as_it_helps() -> None:
    """8 comes only after 4 was faster, and a factor has the most workers that fit with it."""
    helps = searched(lambda setting: setting.num_workers + setting.prefetch_factor / 2)
    assert [each.setting for each in helps if each.setting.prefetch_factor == 4] != []
    none = searched(lambda setting: float(min(4, setting.num_workers) + 1))
    assert {each.setting.prefetch_factor for each in none} == {2, 4}
    tight = searched(
        lambda setting: setting.num_workers + setting.prefetch_factor / 2, SPACE._replace(prefetch=((4, 1),))
    )
    assert {each.setting.prefetch_factor for each in tight} == {2}


def test_pinning_is_tried_with_the_best_setting_only_on_gpus() -> None:
    """The other one than the script's."""
    first = Setting(2, 2, True)
    timed = searched(
        lambda setting: 10.0 - 5 * (setting.pin_memory is False), SPACE._replace(pinning=True), first=first
    )
    assert [each.setting.pin_memory for each in timed].count(False) == 1
    assert chosen(timed).setting.pin_memory is True


def test_the_first_setting_is_timed_last_and_the_best_twice() -> None:
    """Noise in one timing decides nothing, and drift shows."""
    timed = searched(lambda setting: min(4, setting.num_workers) + 1.0)
    assert timed[-1].setting == timed[0].setting
    assert [each.setting for each in timed].count(chosen(timed).setting) == 2


def test_a_setting_that_fails_is_never_taken() -> None:
    """Its rate is 0."""
    timed = searched(lambda setting: 0.0 if setting.num_workers else 1.0)
    assert chosen(timed).setting == Setting(0)


@given(st.dictionaries(st.integers(0, 16), st.floats(0, 1e6), min_size=1), st.integers(0, 40), st.integers(0, 20))
def test_a_search_ends_within_its_time_and_takes_what_it_timed(rates: dict[int, float], left: int, own: int) -> None:
    """Whatever the rates are, and wherever the script begins."""
    timed = searched(lambda setting: rates.get(setting.num_workers, 1.0), first=Setting(own), left=left)
    assert len(timed) <= left + 1
    assert len({each.setting for each in timed}) <= len(LADDER) + 6
    taken = chosen(timed)
    assert taken.rate >= max(medians(timed).values()) * ALIKE
    if left and len(timed) > 1:
        assert timed[-1].setting == Setting(own)


THREADS = tuple((each, max(1, 2 - each)) for each in LADDER)
MEASURED = {(0, 2): 34.0, (0, 1): 698.0, (1, 1): 247.0, (2, 1): 306.0, (4, 1): 220.0}  # tiny samples, 2 CPUs


def test_no_workers_with_one_thread_are_always_timed() -> None:
    """The second of all, also where there is time for no more; it is the fastest of tiny samples."""
    space, first = SPACE._replace(threads=THREADS), Setting(0, threads=2)
    timed = searched(lambda each: MEASURED.get((each.num_workers, each.threads or 0), 200.0), space, first=first)
    assert timed[1].setting == Setting(0, threads=1)
    assert chosen(timed).setting == Setting(0, threads=1)
    short = searched(lambda _: 1.0, space, first=Setting(4, threads=2), left=1)
    assert [each.setting for each in short] == [Setting(4, threads=2), Setting(0, threads=1)]


def test_threads_vary_on_their_own() -> None:
    """Beside the best workers, and beside the script's own with the best threads: each gain has its own timing."""
    space, first = SPACE._replace(threads=THREADS, enough=8), Setting(1, threads=2)
    timed = searched(lambda each: each.num_workers * 10.0 + 5 * min(4, each.threads or 0), space, first=first)
    best = max(timed, key=lambda each: each.rate).setting
    assert (best.num_workers, best.threads) == (16, 4)
    assert first._replace(threads=4) in {each.setting for each in timed}
    fixed = searched(lambda each: each.num_workers + 1.0, space._replace(threads=None))
    assert {each.setting.threads for each in fixed} == {None}
