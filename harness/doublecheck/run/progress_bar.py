"""The progress bar of a run of the checks."""

from __future__ import annotations

import sys
import warnings
from typing import Any

_AFTER_S = 1.0  # seconds; shorter work needs no progress
_FORMAT = "{desc}: {bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"


class Bar:
    """A progress bar: a tqdm bar that appears after a second, and is removed at the end.

    Use it in a with statement. In a notebook it is a widget with ipywidgets, and a line of text
    without. On a terminal it is a line. It is not shown if standard error goes to a file or the log
    of CI. The commands have their own progress line, which needs no tqdm.
    """

    def __init__(self, description: str, *, after_s: float = _AFTER_S) -> None:
        self._bar: Any = None
        self._after_s = after_s
        if "ipykernel" in sys.modules or sys.stderr.isatty():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about missing ipywidgets
                try:
                    from tqdm.auto import tqdm  # optional: tqdm
                except ImportError:
                    return
                self._bar = tqdm(desc=description, bar_format=_FORMAT, leave=False, delay=after_s)

    def show(self, done: int, total: int, at: str = "") -> None:
        """Show the progress and the current step, if the work takes long."""
        if self._bar is not None and total:
            self._bar.total = total
            self._bar.set_postfix_str(at, refresh=False)
            self._bar.n = done
            if self._is_due():
                self._draw()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
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
