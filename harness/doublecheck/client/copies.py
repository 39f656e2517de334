"""Copies of sessions, which only their SessionIds name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_ENDED = "InvalidResource.NotFound"


@contextmanager
def living(instance_id: str | None) -> Iterator[None]:
    """Raise EndedCopyError for the refusal of a copy that has ended."""
    # slow: 30 ms, and every test run of an environment with the harness imports this module
    from doublecheck.errors import EndedCopyError, RefusedError

    try:
        yield
    except RefusedError as error:
        if instance_id is None or not error.code.startswith(_ENDED):
            raise
        raise EndedCopyError(instance_id, error) from None
