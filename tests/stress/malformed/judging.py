"""Which answers to malformed requests are right, and what a log may say of them."""

from __future__ import annotations

import json
import logging

from tests.stress.malformed.requests import Made
from tests.stress.malformed.wire import Answer

# not built, not reached, no room, and what stands behind has not answered in time
_EXPLAINED = {501, 502, 504}
_UNEXPLAINED = (b"The double failed", b'"code":-32603', b'"code": -32603', b"InternalError")


def wrong_with(made: Made, answer: Answer) -> str | None:
    """Return what is wrong with an answer, None if nothing is."""
    if answer.status is None:
        return None if made.unfinished else "the connection was closed without an answer"
    describes = answer.body.startswith(b'{"openapi"')  # it names every code that there is
    if not describes and any(sign in answer.body for sign in _UNEXPLAINED):
        return f"{answer.status} {answer.body[:300]!r}"
    if answer.status >= 500 and not _explained(answer):
        return f"{answer.status} {answer.body[:300]!r}"
    return None


def _explained(answer: Answer) -> bool:
    if answer.status in _EXPLAINED or "x-agentdouble-faults" in answer.headers:
        return True
    return answer.status == 503 and _is_json(answer.body)


def _is_json(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False


class Tracebacks(logging.Handler):
    """Keeps the records with a traceback, or with more than one line."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.found: list[str] = []
        self.lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Look at a record as a terminal would show it."""
        if record.levelno < logging.INFO:
            return
        text = self.format(record)
        self.lines += 1
        if record.exc_info or "\n" in text:
            self.found.append(f"{record.name}: {text}")
