from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from operator import eq

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http
from tests.agentdouble.runtimes import small


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    directory = tmp_path_factory.mktemp("runtimes")
    tables = [
        small.table(directory / "telling"),
        small.table(directory / "brief", idle_s=60),
        small.table(directory / "kept", min_instances=1),
    ]
    with Emulator(runtimes=tables, runtime_idle_s=600) as double:
        yield double


def process(double: Emulator, name: str) -> str:
    answer = http.get(f"{double.url}/runtimes/{name}/")
    assert 200 == answer.status_code, answer.text
    return answer.text


def advance(double: Emulator, seconds: int) -> None:
    double.clock.advance(dt.timedelta(seconds=seconds))


def test_an_idle_runtime_is_scaled_to_zero_and_started_by_the_next_request(
    double: Emulator,
) -> None:
    """After five minutes, unless it says another time itself; what is to be kept is (HST-02)."""
    names = ("telling", "brief", "kept")
    at_first = [process(double, name) for name in names]
    advance(double, 61)
    after_one_minute = [process(double, name) for name in names]
    advance(double, 301)
    at_last = [process(double, name) for name in names]

    assert [True, False, True] == [*map(eq, at_first, after_one_minute)]
    assert [False, False, True] == [*map(eq, after_one_minute, at_last)]


def test_a_reset_ends_what_runs(double: Emulator) -> None:
    """What is declared is there again; the clock goes back."""
    before = process(double, "telling")
    advance(double, 1)
    double.reset()

    assert before != process(double, "telling")


def test_the_clock_can_be_moved_by_whoever_controls_the_double(double: Emulator) -> None:
    """The answer comes when what was idle is gone."""
    before = process(double, "brief")
    answer = http.post(f"{double.url}/_emulator/clock", json={"advance_s": 61})

    assert 200 == answer.status_code
    assert before != process(double, "brief")
