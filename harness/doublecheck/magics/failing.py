"""Code of a cell that failed in the sandbox, as IPython shows an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from IPython.display import publish_display_data

from doublecheck.errors import FailedCellError
from doublecheck.notebook.display.markup import box
from doublecheck.notebook.display.outputs import traceback

if TYPE_CHECKING:
    from doublecheck.results import BashResult, CodeResult


def fail(failure: FailedCellError | None, *, raises: bool) -> None:
    """Raise a failure, if there is one; where it is not to end the cell it is shown instead."""
    if failure is None:
        return
    if raises:
        raise failure
    told = "\n".join(failure.lines)
    shown = str(box(traceback(told)))
    publish_display_data({"text/plain": told, "text/html": shown})


def failure_of(result: CodeResult) -> FailedCellError | None:
    """Return what ended the code, if something did."""
    if result.success:
        return None
    error = result.error
    if error is None:
        return FailedCellError(result.message, [result.message])
    lines = error.traceback.splitlines() or [f"{error.ename}: {error.evalue}"]
    if result.status != "error":  # it was interrupted, and the message says why
        lines = [*lines, result.message]
    return FailedCellError(f"{error.ename}: {error.evalue}", lines)


def bad_exit_of(result: BashResult, timeout_s: int | None) -> FailedCellError | None:
    """Return the exit code of a command that has failed or not ended, as a failure."""
    if result.exit_code == 0:
        return None
    message = f"The command ended with exit code {result.exit_code}."
    if result.exit_code is None:
        waited = f"its {timeout_s} s" if timeout_s else "its time"
        message = f"The command runs on after {waited}; --timeout waits longer."
    return FailedCellError(message, [message])
