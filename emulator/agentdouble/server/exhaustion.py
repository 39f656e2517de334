"""What the log says when the process or the machine lacks descriptors or memory.

Then asyncio logs 64 tracebacks a second, one for each connection that it cannot accept, and each
request would add another.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
import time
from typing import Any

QUIET_S = 10.0
_ERRORS = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
_ACCEPT_AGAIN = "BaseSelectorEventLoop._start_serving("

_log = logging.getLogger(__name__)


class _Teller:
    """Logs one line, and the next one QUIET_S later, with the number of those between."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._quiet_until_s = 0.0
        self._untold = 0

    def tell(self, work: str, error: BaseException) -> None:
        with self._lock:
            now_s = time.monotonic()
            if now_s < self._quiet_until_s:
                self._untold += 1
                return
            self._quiet_until_s = now_s + QUIET_S
            untold, self._untold = self._untold, 0
        more = f" So did {untold} others since the last message." if untold else ""
        _log.error(
            "%s failed: %s.%s Raise the limit of open files (ulimit -n), or end clients or sessions.",
            work,
            error,
            more,
        )


_teller = _Teller()


def tell(work: str, error: BaseException) -> bool:
    """Log a lack of resources in one line, now and then; return whether the error is one."""
    if not isinstance(error, OSError) or error.errno not in _ERRORS:
        return False
    _teller.tell(work, error)
    return True


def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle an error of an event loop as asyncio does, but for a lack of resources."""
    # Closing a server does not end asyncio's timers that accept again after such a lack.
    if _ACCEPT_AGAIN in str(context.get("message")):
        return
    if not tell("Accepting a connection", context.get("exception") or Exception()):
        loop.default_exception_handler(context)
