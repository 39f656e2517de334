from __future__ import annotations

import datetime as dt

import freezegun
import pytest

from agentdouble import Clock

NOON = dt.datetime(2030, 1, 1, 12, tzinfo=dt.timezone.utc)


def test_now_is_the_wall_clock_until_it_is_moved() -> None:
    """It is in UTC."""
    with freezegun.freeze_time(NOON):
        clock = Clock()

        assert (NOON, NOON) == (clock.now(), clock.wall())


def test_advance_moves_now_but_not_wall() -> None:
    """Advances add up."""
    with freezegun.freeze_time(NOON):
        clock = Clock()

        clock.advance(dt.timedelta(minutes=20))
        clock.advance(dt.timedelta(minutes=10))

        assert NOON + dt.timedelta(minutes=30) == clock.now()
        assert NOON == clock.wall()
        assert dt.timedelta(minutes=30) == clock.offset


def test_the_clock_never_moves_back() -> None:
    """A negative advance is refused and changes nothing."""
    clock = Clock()

    with pytest.raises(ValueError, match="only moves forward"):
        clock.advance(dt.timedelta(seconds=-1))

    assert dt.timedelta(0) == clock.offset


def test_a_frozen_clock_resumes_where_it_stopped() -> None:
    """The frozen period is skipped, but wall() goes on."""
    with freezegun.freeze_time(NOON) as wall:
        clock = Clock()
        with clock.freeze() as frozen:
            wall.tick(dt.timedelta(hours=5))
            frozen.advance(minutes=29, seconds=58)
            text = repr(frozen)
            at = clock.now()
        wall.tick(dt.timedelta(seconds=2))

        assert NOON + dt.timedelta(minutes=29, seconds=58) == at
        assert "<Clock 2030-01-01 12:29:58 UTC, frozen>" == text
        assert NOON + dt.timedelta(minutes=30) == clock.now()
        assert "<Clock 2030-01-01 12:30:00 UTC>" == repr(clock)
        assert NOON + dt.timedelta(hours=5, seconds=2) == clock.wall()
