"""Progress: after a second, where somebody looks, and gone when the work is done."""

from __future__ import annotations

import io
import sys

import pytest

from doublecheck.run.checks_process import Bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def looked_at(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal, which keeps what it was shown."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


def test_a_terminal_is_shown_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is left of it."""
    terminal = looked_at(monkeypatch)

    with Bar("twin", after_s=0) as bar:
        bar.show(1, 2, "probes")

    assert "| 1/2 [" in terminal.getvalue()
    assert "probes" in terminal.getvalue()
    assert "" == terminal.getvalue().rpartition("\r")[2]


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing flickers for what is over at once."""
    terminal = looked_at(monkeypatch)

    with Bar("twin", after_s=3600) as bar:
        bar.show(1, 2, "probes")

    assert "" == terminal.getvalue()


def test_a_log_is_shown_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard error is a file there."""
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    with Bar("twin", after_s=0) as bar:
        bar.show(1, 2, "probes")

    assert "" == sys.stderr.getvalue()


def test_without_tqdm_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to an extra."""
    terminal = looked_at(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)

    with Bar("twin", after_s=0) as bar:
        bar.show(1, 2, "probes")

    assert "" == terminal.getvalue()
