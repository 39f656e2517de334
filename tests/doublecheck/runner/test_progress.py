from __future__ import annotations

import io

import pytest
from rich.console import Console

from doublecheck.runner.runner import Progress, shown

TWO = "def test_a(): pass\ndef test_b(): print('mine')\n"


def run(pytester: pytest.Pytester, *, after_s: float) -> tuple[str, list[str]]:
    """Return what the terminal was shown, and pytest's own lines."""
    pytester.makepyfile(TWO)
    file = io.StringIO()
    bar = Progress(Console(file=file, force_terminal=True, width=80), after_s=after_s)
    result = pytester.runpytest_inprocess(
        "-q", "-o", "console_output_style=classic", "-p", "no:cacheprovider", plugins=[bar]
    )
    result.assert_outcomes(passed=2)
    return file.getvalue(), [line for line in result.outlines if line]


def test_it_takes_the_place_of_the_dots(pytester: pytest.Pytester) -> None:
    """It counts, and pytest is left with its last line."""
    told, lines = run(pytester, after_s=0)

    assert "2/2" in told
    assert ["2 passed in"] == [line.rpartition(" ")[0] for line in lines]


def test_a_short_run_shows_none(pytester: pytest.Pytester) -> None:
    """Nothing flickers for what is over at once."""
    told, _ = run(pytester, after_s=3600)

    assert "2/2" not in told


def test_there_is_none_without_a_terminal() -> None:
    """In a pipe pytest says how far it is, as ever."""
    with shown(wanted=True) as bars:
        assert () == bars
