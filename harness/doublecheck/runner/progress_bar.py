"""The progress of long work: a bar of tqdm, after a second, which is removed at the end.

In a notebook it is a widget with ipywidgets, and a line of text without. On a terminal it is a
line. It is not shown if standard error goes to a file or the log of CI. The commands have their own
progress line, which needs no tqdm and replaces pytest's dots.
"""

from __future__ import annotations

import sys
import time
import warnings
from types import TracebackType
from typing import Any

_AFTER_S = 1.0  # seconds; shorter work needs no progress
_FORMAT = "{desc}: {bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
_COLUMNS = 88


class Bar:
    """The progress of ``what``; use it in a with statement."""

    def __init__(self, what: str, *, after_s: float = _AFTER_S) -> None:
        self._what = what
        self._due = time.monotonic() + after_s
        self._began = time.time()
        self._made: Any = None
        self._wanted = _in_notebook() or sys.stderr.isatty()

    def show(self, done: int, total: int, at: str = "") -> None:
        """Show the progress and the current step, if the work takes long."""
        if not self._wanted or not total or time.monotonic() < self._due:
            return
        if self._made is None:
            self._made = _tqdm(desc=self._what, total=total, bar_format=_FORMAT, leave=False)
            self._wanted = self._made is not None
            if self._made is None:
                return
            self._made.start_t = self._began
        self._made.n = done
        self._made.set_postfix_str(at)

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._made is not None:
            self._made.close()


def _tqdm(**options: Any) -> Any:
    """Return a bar, or None if tqdm is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about missing ipywidgets
            from tqdm.auto import tqdm
            from tqdm.notebook import tqdm_notebook
    except ImportError:
        return None
    if issubclass(tqdm, tqdm_notebook):
        return tqdm(**options)
    if _in_notebook():
        return tqdm(**options, file=_Displayed(), ncols=_COLUMNS)
    return tqdm(**options, file=sys.stderr, dynamic_ncols=True)


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook, which shows displays."""
    if "ipykernel" not in sys.modules:
        return False
    from IPython.core.getipython import get_ipython

    return hasattr(get_ipython(), "kernel")


class _Displayed:
    """A file that shows its last line in a notebook; standard error would be red and stay."""

    def __init__(self) -> None:
        from IPython.display import display

        self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def write(self, text: str) -> None:
        self._handle.update({"text/plain": text.strip("\r").rstrip()}, raw=True)

    def flush(self) -> None:
        pass
