"""The actions of the reference agent, which needs neither a model nor a key.

If a message is JSON, its ``do`` field selects an action; any other message is echoed.

============ ====================================================================
``stream``   yields each of ``chunks``; with ``gate``, waits for a release before each next one
``release``  lets the stream with that ``gate`` yield one more chunk
``tool``     streams a word in increments, calls a tool, gets its answer, concludes
``call``     calls a tool with any ``args``, gets its ``response``, then sends ``reply``
``events``   sends each of ``texts`` in a separate event
``fail``     sends each of ``texts`` in a separate event, then raises
``parts``    sends ``texts`` in one event, each in a separate part
``save``     saves an artifact under each of ``names`` and lists the names
``heard``    returns the message's parts, the application, the user and the session, as JSON
``history``  returns the user's messages in the session, as JSON
============ ====================================================================
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

_gates: dict[str, asyncio.Semaphore] = {}


@dataclass(frozen=True)
class Turn:
    """A turn: the texts of its message, its place, and what it can do with the session.

    ``messages`` returns the user's messages, ``save`` stores a text under a name.
    """

    texts: Sequence[str | None]
    place: dict[str, str]
    messages: Callable[[], Awaitable[list[str]]]
    save: Callable[[str, str], Awaitable[object]]


@dataclass(frozen=True)
class Call:
    """A call of a tool, and its answer."""

    tool: str
    args: dict[str, Any]
    response: dict[str, Any]


# an increment, an event with these texts as parts, or a call
Item = str | tuple[str, ...] | Call


async def run(turn: Turn) -> AsyncIterator[Item]:
    """Perform the action that the message names, or echo the message, if there is one."""
    text = "".join(text or "" for text in turn.texts)
    try:
        order = json.loads(text)
        action = _ACTIONS[order.pop("do")]
    except (ValueError, KeyError, AttributeError, TypeError):
        yield text if turn.texts else "There is no message."
        return
    async for item in action(turn, **order):
        yield item


async def _stream(
    _turn: Turn, chunks: list[str], gate: str | None = None, within_s: float = 5
) -> AsyncIterator[Item]:
    released = asyncio.Semaphore(0 if gate else len(chunks))
    if gate:
        _gates[gate] = released
    try:
        for chunk in chunks:
            yield chunk
            await asyncio.wait_for(released.acquire(), within_s)
    except asyncio.TimeoutError:
        raise RuntimeError(f"{chunk!r} was not read within {within_s:g} s") from None
    finally:
        _gates.pop(gate or "", None)


async def _release(_turn: Turn, gate: str) -> AsyncIterator[Item]:
    if gate in _gates:
        _gates[gate].release()
    yield "released" if gate in _gates else "no such stream"


async def _tool(_turn: Turn, word: str) -> AsyncIterator[Item]:
    for letter in word:
        yield letter
    yield Call("count_letters", {"word": word}, {"letters": len(word)})
    yield f"{word} has {len(word)} letters."


async def _call(
    _turn: Turn, args: dict[str, Any], response: dict[str, Any], reply: str
) -> AsyncIterator[Item]:
    yield Call("look_up", args, response)
    yield reply


async def _events(_turn: Turn, texts: list[str]) -> AsyncIterator[Item]:
    for text in texts:
        yield (text,)


async def _fail(_turn: Turn, texts: list[str]) -> AsyncIterator[Item]:
    for text in texts:
        yield (text,)
    raise RuntimeError("it broke")


async def _parts(_turn: Turn, texts: list[str]) -> AsyncIterator[Item]:
    yield tuple(texts)


async def _save(turn: Turn, names: list[str]) -> AsyncIterator[Item]:
    for name in names:
        await turn.save(name, f"the content of {name}")
    yield ", ".join(names)


async def _received(turn: Turn) -> AsyncIterator[Item]:
    yield json.dumps({"parts": list(turn.texts), **turn.place})


async def _history(turn: Turn) -> AsyncIterator[Item]:
    yield json.dumps(await turn.messages())


_ACTIONS: dict[str, Callable[..., AsyncIterator[Item]]] = {
    "stream": _stream,
    "release": _release,
    "tool": _tool,
    "call": _call,
    "events": _events,
    "fail": _fail,
    "parts": _parts,
    "save": _save,
    "heard": _received,
    "history": _history,
}
