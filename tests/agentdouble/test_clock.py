from __future__ import annotations

import datetime as dt

import freezegun
import pytest

from agentdouble import Clock

NOON = dt.datetime(2030, 1, 1, 12, tzinfo=dt.timezone.utc)


def test_now_is_the_wall_clock_until_it_is_moved() -> None:
    """Without an advance, the platform's time is the wall's, in UTC."""
    with freezegun.freeze_time(NOON):
        clock = Clock()

        assert (NOON, NOON) == (clock.now(), clock.wall())


def test_advance_moves_now_and_not_wall() -> None:
    """Advances add up in now() and leave wall() alone."""
    with freezegun.freeze_time(NOON):
        clock = Clock()

        clock.advance(dt.timedelta(minutes=20))
        clock.advance(dt.timedelta(minutes=10))

        assert NOON + dt.timedelta(minutes=30) == clock.now()
        assert NOON == clock.wall()
        assert dt.timedelta(minutes=30) == clock.offset


def test_reset_takes_the_offset_away() -> None:
    """After a reset, now() is the wall clock again."""
    with freezegun.freeze_time(NOON):
        clock = Clock()
        clock.advance(dt.timedelta(days=1))

        clock.reset()

        assert NOON == clock.now()


def test_the_clock_never_moves_back() -> None:
    """A negative advance is refused and changes nothing."""
    clock = Clock()

    with pytest.raises(ValueError, match="only moves forward"):
        clock.advance(dt.timedelta(seconds=-1))

    assert dt.timedelta(0) == clock.offset


def test_the_clock_does_not_move_beyond_what_can_be_said() -> None:
    """An advance past the year 9999 is refused, and the clock still works."""
    clock = Clock()

    with pytest.raises(ValueError, match="year 9999"):
        clock.advance(dt.timedelta(days=365 * 8000))

    assert dt.timedelta(0) == clock.offset


def test_watchers_are_told_after_the_move_until_they_stop_watching() -> None:
    """A watcher sees the new time; one that has gone is not told any more."""
    clock, seen = Clock(), []
    unwatch = clock.watch(lambda: seen.append(clock.offset))

    clock.advance(dt.timedelta(seconds=1))
    clock.move(dt.timedelta(seconds=1))
    unwatch()
    clock.advance(dt.timedelta(seconds=1))

    assert [dt.timedelta(seconds=1)] == seen


def test_a_frozen_clock_stands_still_and_goes_on_from_there() -> None:
    """Time that has passed meanwhile does not count; wall() goes on."""
    with freezegun.freeze_time(NOON) as wall:
        clock = Clock()
        with clock.freeze() as frozen:
            wall.tick(dt.timedelta(hours=5))
            frozen.advance(minutes=29, seconds=58)
            shown = repr(frozen)
            at = clock.now()
        wall.tick(dt.timedelta(seconds=2))

        assert NOON + dt.timedelta(minutes=29, seconds=58) == at
        assert "<Clock 2030-01-01 12:29:58 UTC, frozen>" == shown
        assert NOON + dt.timedelta(minutes=30) == clock.now()
        assert "<Clock 2030-01-01 12:30:00 UTC>" == repr(clock)
        assert NOON + dt.timedelta(hours=5, seconds=2) == clock.wall()


def test_freezing_twice_or_unfreezing_twice_changes_nothing() -> None:
    """And a reset starts a frozen clock."""
    with freezegun.freeze_time(NOON) as wall:
        clock = Clock()
        for change in (clock.unfreeze, clock.freeze, clock.freeze, clock.unfreeze, clock.unfreeze):
            change()
            wall.tick(dt.timedelta(seconds=1))

        assert NOON + dt.timedelta(seconds=3) == clock.now()

        clock.freeze()
        clock.reset()

        assert (False, clock.wall()) == (clock.frozen, clock.now())
