"""The cause of a request: the earlier request whose code sent it.

run_code and requests to the model send the cause in a header. It names the journal of the double,
which no foreign client knows, and an entry. A journal ignores any other cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

HEADER = "x-agentdouble-caused-by"
RAW_HEADER = HEADER.encode()
_CAUSE = re.compile(r"([0-9a-f]{16})-([1-9][0-9]{0,17})", re.ASCII)

Cause = tuple[str, int]  # the name of a journal, and the id of an entry

current: ContextVar[Cause | None] = ContextVar("agentdouble_cause", default=None)


def headers() -> dict[str, str]:
    """Return the header for a request that the current one causes, or nothing."""
    cause = current.get()
    return {} if cause is None else {HEADER: f"{cause[0]}-{cause[1]}"}


def read(text: str) -> Cause | None:
    """Return the cause that a header names, or None if it names none."""
    match = _CAUSE.fullmatch(text)
    return None if match is None else (match[1], int(match[2]))


@contextmanager
def passed_on(received: Mapping[str, str]) -> Iterator[None]:
    """Use the cause in these headers in this context; for a process other than the double's."""
    cause = current.get() or read(received.get(HEADER, ""))
    token = current.set(cause)
    try:
        yield
    finally:
        current.reset(token)
