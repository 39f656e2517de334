"""The reference agent, which a target must serve for checks that look inside an agent.

If a message is JSON, its ``do`` field selects an action; any other message is echoed.

============ ====================================================================
``stream``   yields each of ``chunks``; with ``gate``, waits for a release before each next one
``release``  lets the stream with that ``gate`` yield one more chunk
``tool``     streams a word in increments, calls a tool, gets its answer, concludes
``call``     calls a tool with any ``args``, gets its ``response``, then sends ``reply``
``events``   sends each of ``texts`` in a separate event
``parts``    sends ``texts`` in one event, each in a separate part
``save``     saves an artifact under each of ``names`` and lists the names
``heard``    returns the message's parts, the application, the user and the session, as JSON
``history``  returns the user's messages in the session, as JSON
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
        action = _ACTIONS[order.pop("do")]
    except (ValueError, KeyError, AttributeError, TypeError):
        yield message.text
        return
    if action is _received:
        order["message"] = message
    async for part in action(session, **order):
        yield part


async def _stream(
    _session: Session, chunks: list[str], gate: str | None = None, within_s: float = 5
) -> AsyncIterator[Any]:
    if gate is None:
        for chunk in chunks:
            yield chunk
        return
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


async def _call(
    _session: Session, args: dict[str, Any], response: dict[str, Any], reply: str
) -> AsyncIterator[Any]:
    call = Part.of_call("look_up", args)
    yield call
    yield Event((Part.of_response(call, response),), role="user")
    yield reply


async def _events(_session: Session, texts: list[str]) -> AsyncIterator[Any]:
    for text in texts:
        yield Event((Part.of_text(text),))


async def _parts(_session: Session, texts: list[str]) -> AsyncIterator[Any]:
    yield Event(tuple(map(Part.of_text, texts)))


async def _save(session: Session, names: list[str]) -> AsyncIterator[Any]:
    for name in names:
        await session.save_artifact(name, f"the content of {name}")
    yield ", ".join(names)


async def _received(session: Session, message: Message) -> AsyncIterator[Any]:
    texts = [part.wire.get("text") for part in message.parts]
    yield json.dumps(
        {"parts": texts, "app": session.app_name, "user": session.user_id, "session": session.id}
    )


async def _history(session: Session) -> AsyncIterator[Any]:
    events = await session.history()
    yield json.dumps([event.text for event in events if event.author == "user"])


_ACTIONS: dict[str, Any] = {
    "stream": _stream,
    "release": _release,
    "tool": _tool,
    "call": _call,
    "events": _events,
    "parts": _parts,
    "save": _save,
    "heard": _received,
    "history": _history,
}
