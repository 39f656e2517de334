"""Mistakes of clients in the logs of libraries: a line, where those write a traceback.

A traceback says that the server has failed, and somebody looks for the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LONGEST = 300  # characters of what an error says

_serving: ContextVar[bool] = ContextVar("agentdouble_serving", default=False)


@contextmanager
def serving() -> Iterator[None]:
    """Have what is logged inside told in short: it is about a request to a server of ours.

    The loggers are the process's, and somebody else may serve with the same libraries.
    """
    token = _serving.set(True)
    try:
        yield
    finally:
        _serving.reset(token)


def tell_in_short(logger: str, *kinds: type[BaseException]) -> None:
    """Take the traceback off what a library's logger says of errors of these kinds."""
    logging.getLogger(logger).addFilter(_InShort(kinds))


def printable(text: str) -> str:
    """Return a text that stays one line of a log and moves nobody's cursor."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _InShort(logging.Filter):
    def __init__(self, kinds: tuple[type[BaseException], ...]) -> None:
        super().__init__()
        self._kinds = kinds

    def filter(self, record: logging.LogRecord) -> bool:
        """Change a record, and let it pass."""
        error = record.exc_info[1] if record.exc_info else None
        if _serving.get() and isinstance(error, self._kinds):
            said = printable(str(error)[:LONGEST])
            record.msg, record.args = (
                "%s: %s: %s",
                (record.getMessage(), type(error).__name__, said),
            )
            record.exc_info, record.exc_text = None, None
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True
