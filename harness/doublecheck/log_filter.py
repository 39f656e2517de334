"""Quiet: what libraries log because we use them stays out of a notebook's cells.

A double in the notebook's process serves with uvicorn and speaks with httpx, and so does its
client: after ``logging.basicConfig(level=DEBUG)`` each call would be a dozen lines of theirs.
Whose a record is, is told by who called: one that the user's code led to passes, be it an
application's in the double. One that our code led to passes only where it was asked for by name:
``logging.getLogger("httpx").setLevel("INFO")``.
"""

from __future__ import annotations

import copy
import logging
import sys

from agentdouble import tracebacks
from agentdouble.code_origin import caller

_NEVER = logging.CRITICAL + 1
_LEAST = {  # the level from which on a record passes though it is of our doing
    "agentdouble": logging.WARNING,
    "doublecheck": logging.WARNING,
    "asyncio": logging.WARNING,
    "uvicorn": logging.ERROR,
    **dict.fromkeys(
        (
            *("a2a", "aiosqlite", "anyio", "grpc", "httpcore", "httpx", "mcp", "multipart"),
            *("opentelemetry", "python_multipart", "sqlalchemy", "sse_starlette", "starlette"),
            *("urllib3", "websockets"),
        ),
        _NEVER,
    ),
}


def keep_noise_out() -> None:
    """Make these loggers pass on only the user's records; calls after the first do nothing."""
    for name in _LEAST:
        logger = logging.getLogger(name)
        if logger.propagate and not any(isinstance(one, _HandingOn) for one in logger.handlers):
            logger.addHandler(_HandingOn(name))
            logger.propagate = False


class _HandingOn(logging.Handler):
    """Passes records that are not noise to the root's handlers, as ``propagate`` does."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._top = name

    def handle(self, record: logging.LogRecord) -> bool:
        """Hand a record on, or drop it."""
        ours = caller(sys._getframe(1)) == "ours"
        if not ours or record.levelno >= _LEAST[self._top] or _has_level(record.name):
            logging.getLogger().callHandlers(_short(record) if ours else record)
        return True


def _has_level(name: str) -> bool:
    """Whether a level was set on a logger or one of its parents."""
    parts = name.split(".")
    loggers = (logging.getLogger(".".join(parts[:end])) for end in range(1, len(parts) + 1))
    return any(logger.level != logging.NOTSET for logger in loggers)


def _short(record: logging.LogRecord) -> logging.LogRecord:
    """Return the record of an error with the frames of the user's code alone."""
    if not isinstance(record.exc_info, tuple) or record.exc_info[1] is None:
        return record
    kind, error, frames = record.exc_info
    short = copy.copy(record)
    short.exc_info = (kind, error, tracebacks.own_frames(frames))
    return short
