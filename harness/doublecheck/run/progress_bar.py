"""The progress of long work: a tqdm bar that appears after a second and is removed at the end.

In a notebook it is a widget with ipywidgets, and a line of text without. On a terminal it is a
line. It is not shown if standard error goes to a file or the log of CI. The commands have their own
progress line, which needs no tqdm and replaces pytest's dots.
"""

from __future__ import annotations

import sys
import warnings
from types import TracebackType
from typing import Any

_AFTER_S = 1.0  # seconds; shorter work needs no progress
_FORMAT = "{desc}: {bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"


class Bar:
    """The progress of ``what``. Use it in a with statement."""

    def __init__(self, description: str, *, after_s: float = _AFTER_S) -> None:
        self._bar: Any = None
        if "ipykernel" in sys.modules or sys.stderr.isatty():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about missing ipywidgets
                try:
                    from tqdm.auto import tqdm  # optional: tqdm
                except ImportError:
                    return
                self._bar = tqdm(
                    desc=description, bar_format=_FORMAT, leave=False, delay=after_s, mininterval=0
                )

    def show(self, done: int, total: int, at: str = "") -> None:
        """Show the progress and the current step, if the work takes long."""
        if self._bar is not None and total:
            self._bar.total = total
            self._bar.set_postfix_str(at, refresh=False)
            self._bar.update(done - self._bar.n)

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
