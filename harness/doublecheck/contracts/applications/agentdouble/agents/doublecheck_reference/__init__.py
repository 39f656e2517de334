"""The reference agent: what a target must serve for checks that look inside an agent.

A message that is JSON selects by ``do`` what it does; any other is said back.

============ ====================================================================
``stream``   yields each of ``chunks``, the next once ``gate`` is released, ``within_s``
``release``  lets the stream of that ``gate`` go on by one chunk
``tool``     says a word in increments, calls a tool, has its answer, concludes
``history``  answers with what users have said in the session, as JSON
============ ====================================================================
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agentdouble.agents import Event, Message, Part, Session

_gates: dict[str, asyncio.Semaphore] = {}


async def root_agent(message: Message, session: Session) -> AsyncIterator[str | Part | Event]:
    """Perform the action that the message names, or echo the message."""
    try:
        order = json.loads(message.text)
        deed = _DEEDS[order.pop("do")]
    except (ValueError, KeyError, AttributeError):
        yield message.text
        return
    async for said in deed(session, **order):
        yield said


async def _stream(
    _session: Session, chunks: list[str], gate: str, within_s: float = 5
) -> AsyncIterator[Any]:
    released = _gates[gate] = asyncio.Semaphore(0)
    try:
        for chunk in chunks:
            yield chunk
            await asyncio.wait_for(released.acquire(), within_s)
    except asyncio.TimeoutError:
        raise RuntimeError(f"{chunk!r} was not read within {within_s:g} s") from None
    finally:
        del _gates[gate]


async def _release(_session: Session, gate: str) -> AsyncIterator[Any]:
    released = _gates.get(gate)
    if released is not None:
        released.release()
    yield "no such stream" if released is None else "released"


async def _tool(_session: Session, word: str) -> AsyncIterator[Any]:
    for letter in word:
        yield letter
    call = Part.of_call("count_letters", {"word": word})
    yield call
    yield Event((Part.of_response(call, {"letters": len(word)}),), role="user")
    yield f"{word} has {len(word)} letters."


async def _history(session: Session) -> AsyncIterator[Any]:
    events = await session.history()
    yield json.dumps([event.text for event in events if event.author == "user"])


_DEEDS: dict[str, Any] = {
    "stream": _stream,
    "release": _release,
    "tool": _tool,
    "history": _history,
}
