"""Keep library logs that doublecheck causes out of a notebook's cells.

A double in the notebook's process serves with uvicorn and sends with httpx, and so does its client:
after ``logging.basicConfig(level=DEBUG)`` each call would log a dozen lines. The calling code
decides about a record. A record that the user's code caused is shown, even that of an application
in the double. A record that our code caused is shown only if its logger has a level:
``logging.getLogger("httpx").setLevel("INFO")``.
"""

from __future__ import annotations

import copy
import logging
import sys

from agentdouble.errors import tracebacks
from agentdouble.errors.tracebacks import caller

_NEVER = logging.CRITICAL + 1
_LEAST = {  # from this level on, records of our own code are also shown
    "agentdouble": logging.WARNING,
    "doublecheck": logging.WARNING,
    "asyncio": logging.WARNING,
    "uvicorn": logging.ERROR,
    **dict.fromkeys(
        (
            *("a2a", "aiosqlite", "anyio", "httpcore", "httpx", "mcp", "multipart"),
            *("python_multipart", "sqlalchemy", "sse_starlette", "starlette"),
            *("urllib3", "websockets"),
        ),
        _NEVER,
    ),
}


def keep_noise_out() -> None:
    """Make these loggers pass on only the user's records; calls after the first do nothing."""
    for name in _LEAST:
        logger = logging.getLogger(name)
        handled = any(isinstance(handler, _HandingOn) for handler in logger.handlers)
        if logger.propagate and not handled:
            logger.addHandler(_HandingOn(name))
            logger.propagate = False


class _HandingOn(logging.Handler):
    """Passes records that are not noise to the root's handlers, as ``propagate`` does."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._top = name

    def handle(self, record: logging.LogRecord) -> bool:
        """Pass a record on, or drop it."""
        is_ours = caller(sys._getframe(1)) == "ours"
        if not is_ours or record.levelno >= _LEAST[self._top] or _has_level(record.name):
            logging.getLogger().callHandlers(_short(record) if is_ours else record)
        return True


def _has_level(name: str) -> bool:
    """Whether a logger or one of its parents has a level."""
    parts = name.split(".")
    loggers = (logging.getLogger(".".join(parts[:end])) for end in range(1, len(parts) + 1))
    return any(logger.level != logging.NOTSET for logger in loggers)


def _short(record: logging.LogRecord) -> logging.LogRecord:
    """Return the record of an error with only the frames of the user's code."""
    if not isinstance(record.exc_info, tuple) or record.exc_info[1] is None:
        return record
    kind, error, frames = record.exc_info
    short = copy.copy(record)
    short.exc_info = (kind, error, tracebacks.own_frames(frames))
    return short
