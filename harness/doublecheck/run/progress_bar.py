"""The progress bar of a run of the checks."""

from __future__ import annotations

import sys
import time
from typing import Any

from doublecheck.core.markup import Markup, element, quiet
from doublecheck.core.notebook_repr import notebook_shell

_AFTER_S = 1.0  # seconds; shorter work needs no progress
_EVERY_S = 0.1  # in a notebook, whose server also passes on each drawing
_FORMAT = "{desc}: {bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"


class Bar:
    """A progress bar that appears after a second, and is removed at the end.

    Use it in a with statement. In a notebook it is a display that changes, so that nothing of it
    stays in the notebook's file. On a terminal it is tqdm's line. It is not shown if standard error
    goes to a file or the log of CI. The commands have their own progress line, which needs no tqdm.
    """

    def __init__(self, description: str, *, after_s: float = _AFTER_S) -> None:
        self._bar: _CellBar | _TerminalBar | None = None
        if notebook_shell() is not None:
            self._bar = _CellBar(description, after_s)
        elif sys.stderr.isatty():
            try:
                self._bar = _TerminalBar(description, after_s)
            except ImportError:  # optional: tqdm
                return

    def show(self, done: int, total: int, at: str = "") -> None:
        """Show the progress and the current step, if the work takes long."""
        if self._bar is not None and total:
            self._bar.show(done, total, at)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


class _CellBar:
    """A bar in the output of a notebook's cell."""

    def __init__(self, description: str, after_s: float) -> None:
        self._description = description
        self._due = time.monotonic() + after_s
        self._handle: Any = None

    def show(self, done: int, total: int, at: str) -> None:
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _EVERY_S
        bar = element("progress", value=str(done), max=str(total), style="vertical-align:middle")
        line = element("div", f"{self._description} ", bar, f" {done}/{total} ", quiet(at))
        self._draw(line, f"{self._description}: {done}/{total} {at}")

    def close(self) -> None:
        if self._handle is not None:
            self._draw(Markup(), "")

    def _draw(self, html: Markup, text: str) -> None:
        from IPython.display import display  # optional: IPython

        bundle = {"text/plain": text, "text/html": html}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(bundle, raw=True)


class _TerminalBar:
    """A line of tqdm."""

    def __init__(self, description: str, after_s: float) -> None:
        from tqdm import tqdm  # optional: tqdm

        self._after_s = after_s
        self._bar = tqdm(desc=description, bar_format=_FORMAT, leave=False, delay=after_s)

    def show(self, done: int, total: int, at: str) -> None:
        self._bar.total = total
        self._bar.set_postfix_str(at, refresh=False)
        self._bar.n = done
        if self._is_due():
            self._draw()

    def close(self) -> None:
        if self._is_due():
            # If an interrupt hits the drawing, tqdm does not know that the bar is visible, and
            # close() leaves it. After drawing it again, close() removes it.
            self._bar.delay = 0
            self._draw()
        self._bar.close()

    def _is_due(self) -> bool:
        return bool(self._bar.format_dict["elapsed"] >= self._after_s)

    def _draw(self) -> None:
        # Without tqdm's lock, which all bars share: refresh() would keep it after an interrupt.
        self._bar.refresh(nolock=True)
