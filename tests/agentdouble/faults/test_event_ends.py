"""Where server-sent events end in a body that comes in pieces."""

from __future__ import annotations

import pytest

from agentdouble.faults.layer import EventEnds


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_each_kind_of_line_ends_an_event(end: bytes) -> None:
    """In one piece, and byte by byte; a comment is none."""
    kept = (
        b": comment" + end + end + b"id: 1" + end + b"data: 1" + end + end + b"data: 2" + end + end
    )
    body = kept + b"data: 3" + end + end

    pieces = EventEnds(2)
    ends = [pieces.within(body[at : at + 1]) for at in range(len(body))]
    [at] = [at for at, found in enumerate(ends) if found is not None][:1]

    assert len(kept) == EventEnds(2).within(body)
    assert len(kept) - len(end) + 1 == at + 1
