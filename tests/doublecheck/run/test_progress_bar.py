"""Progress appears on a terminal after a second and vanishes at the end."""

from __future__ import annotations

import io
import sys

import pytest

from doublecheck.run.checks_process import Bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def looked_at(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal that records its output."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is erased at the end."""
    terminal = looked_at(monkeypatch)

    with Bar("twin", after_s=0) as bar:
        bar.show(1, 2, "probes")

    assert "| 1/2 [" in terminal.getvalue()
    assert "probes" in terminal.getvalue()
    assert "" == terminal.getvalue().rpartition("\r")[2]


def test_short_work_shows_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looked_at(monkeypatch)

    with Bar("twin", after_s=3600) as bar:
        bar.show(1, 2, "probes")

    assert "" == terminal.getvalue()


def test_a_log_file_gets_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    with Bar("twin", after_s=0) as bar:
        bar.show(1, 2, "probes")

    assert "" == sys.stderr.getvalue()


def test_without_tqdm_no_progress_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """tqdm belongs to an extra."""
    terminal = looked_at(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)

    with Bar("twin", after_s=0) as bar:
        bar.show(1, 2, "probes")

    assert "" == terminal.getvalue()
