"""Code of a cell that failed in the sandbox, as IPython shows an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublecheck.errors import FailedCellError

if TYPE_CHECKING:
    from doublecheck.results import BashResult, CodeResult


def raise_failure(result: CodeResult) -> None:
    """Raise what ended the code, if something did."""
    if result.success:
        return
    error = result.error
    if error is None:
        raise FailedCellError(result.message, [result.message])
    lines = error.traceback.splitlines() or [f"{error.ename}: {error.evalue}"]
    if result.status != "error":  # it was interrupted, and the message says why
        lines = [*lines, result.message]
    raise FailedCellError(f"{error.ename}: {error.evalue}", lines)


def raise_exit(result: BashResult, timeout_s: int | None) -> None:
    """Raise the exit code of a command that has failed or not ended."""
    if result.exit_code == 0:
        return
    message = f"The command ended with exit code {result.exit_code}."
    if result.exit_code is None:
        waited = f"its {timeout_s} s" if timeout_s else "its time"
        message = f"The command runs on after {waited}; --timeout waits longer."
    raise FailedCellError(message, [message])
