"""Progress appears on a terminal after a second and vanishes at the end."""

from __future__ import annotations

import io
import sys
import threading
from contextlib import suppress

import pytest

from doublecheck.run.progress_bar import Bar


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
    assert "" == written(monkeypatch, terminal=False)


def test_without_tqdm_no_progress_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """tqdm belongs to an extra."""
    monkeypatch.setitem(sys.modules, "tqdm", None)

    assert "" == written(monkeypatch)


class InterruptedOutput(io.StringIO):
    """A terminal at which a user presses Ctrl-C as soon as a bar is drawn."""

    interrupted = False

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        length = super().write(text)
        if "probes" in text and not self.interrupted:
            self.interrupted = True
            raise KeyboardInterrupt
        return length


def test_an_interrupt_while_the_bar_is_drawn_leaves_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread can show progress afterwards, although all bars share a lock."""
    output = InterruptedOutput()
    monkeypatch.setattr(sys, "stderr", output)
    with suppress(KeyboardInterrupt), Bar("twin", after_s=0.001) as bar:
        while True:
            bar.show(1, 2, "probes")
    other = threading.Thread(target=written, args=[monkeypatch], daemon=True)
    other.start()
    other.join(timeout=20)

    drawn, erased, rest = output.getvalue().split("\r")[-3:]
    assert "| 1/2 [" in drawn
    assert (" " * len(drawn), "") == (erased, rest)
    assert not other.is_alive()
