"""Progress appears on a terminal after a second and vanishes at the end."""

from __future__ import annotations

import io
import sys

import pytest

from doublecheck.run.checks_process import Bar


def written(monkeypatch: pytest.MonkeyPatch, *, terminal: bool = True, after_s: int = 0) -> str:
    """Return what a bar writes to standard error."""
    output = io.StringIO()
    monkeypatch.setattr(output, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", output)
    with Bar("twin", after_s=after_s) as bar:
        bar.show(1, 2, "probes")
    return output.getvalue()


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is erased at the end."""
    output = written(monkeypatch)

    assert "| 1/2 [" in output
    assert "probes" in output
    assert "" == output.rpartition("\r")[2]


def test_short_work_shows_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "" == written(monkeypatch, after_s=3600)


def test_a_log_file_gets_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)

    assert "" == written(monkeypatch, terminal=False)


def test_without_tqdm_no_progress_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """tqdm belongs to an extra."""
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)

    assert "" == written(monkeypatch)
