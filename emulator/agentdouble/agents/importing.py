"""Where in somebody's code an import failed."""

from __future__ import annotations

import traceback
from pathlib import Path

_OURS = str(Path(__file__).parent.parent)


def reason(error: BaseException) -> str:
    """Return what a module that does not import says, with the place in its own code."""
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    place = _place(error)
    return f"{type(error).__name__}: {said}{f' ({place})' if place else ''}"


def _place(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    if error.__traceback__ is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [
        frame for frame in frames if not frame.filename.startswith((_OURS, "<frozen importlib"))
    ]
    frame = (theirs or list(frames))[-1]
    return f"{frame.filename}:{frame.lineno}"
