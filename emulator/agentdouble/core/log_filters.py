"""Logs without secrets, and without tracebacks that say nothing to their readers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from agentdouble.core.redaction import without_secrets

LONGEST = 300  # characters of an error's message

_serving: ContextVar[bool] = ContextVar("agentdouble_serving", default=False)


@contextmanager
def serving() -> Iterator[None]:
    """Shorten tracebacks logged in this context, because they belong to a request to our server.

    The loggers belong to the process, and other code may serve with the same libraries.
    """
    token = _serving.set(True)
    try:
        yield
    finally:
        _serving.reset(token)


def tell_in_short(logger: str, *kinds: type[BaseException]) -> None:
    """Remove the traceback from what a library's logger logs about errors of these kinds."""
    logging.getLogger(logger).addFilter(_InShort(kinds))


def hide_secrets(logger: str) -> None:
    """Hide the secrets in what a logger logs of our server, such as passwords in addresses."""
    logging.getLogger(logger).addFilter(_without_secrets)


def printable(text: str) -> str:
    """Return the text on one line of a log, with unprintable characters escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _InShort(logging.Filter):
    def __init__(self, kinds: tuple[type[BaseException], ...]) -> None:
        super().__init__()
        self._kinds = kinds

    def filter(self, record: logging.LogRecord) -> bool:
        """Change a record, if needed, and let it pass."""
        error = record.exc_info[1] if record.exc_info else None
        if _serving.get() and isinstance(error, self._kinds):
            message = printable(str(error)[:LONGEST])
            record.msg, record.args = (
                "%s: %s: %s",
                (record.getMessage(), type(error).__name__, message),
            )
            record.exc_info, record.exc_text = None, None
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


def _without_secrets(record: logging.LogRecord) -> bool:
    if _serving.get():
        record.msg, record.args = without_secrets(record.getMessage()), ()
        if record.exc_info:  # its message may have the address, too
            traceback = logging.Formatter().formatException(record.exc_info)
            record.exc_text = without_secrets(traceback)
    return True
