"""Failures of application code, as its authors want to see them."""

from __future__ import annotations

from pathlib import Path

_OURS = str(Path(__file__).parent)


def theirs(error: Exception) -> Exception:
    """Return the error with a traceback that begins in the application, not in here."""
    begins = traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.startswith(_OURS):
            begins = traceback.tb_next
        traceback = traceback.tb_next
    return error.with_traceback(begins)
