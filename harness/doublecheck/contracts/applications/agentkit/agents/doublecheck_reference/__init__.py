"""The reference agent for google-adk; it needs neither a model nor a key.

If a message is JSON, its ``do`` field selects an action; any other message is echoed.
Increments are sent only if the run requests streaming; the whole text is always sent.

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

from google.adk.agents import BaseAgent
from google.adk.agents.run_config import StreamingMode
from google.adk.events import Event
from google.genai import types

_gates: dict[str, asyncio.Semaphore] = {}


class Reference(BaseAgent):
    """Performs the action that a message names, or echoes the message."""

    async def _run_async_impl(self, ctx: Any) -> AsyncIterator[Event]:
        text = _text(ctx.user_content)
        try:
            order = json.loads(text)
            action = _ACTIONS[order.pop("do")]
        except (ValueError, KeyError, AttributeError, TypeError):
            action, order = _say, {"text": text}
        async for event in action(ctx, **order):
            if not event.partial or _streaming(ctx):
                yield event


async def _say(ctx: Any, text: str) -> AsyncIterator[Event]:
    yield _text_event(ctx, text, partial=True)
    yield _text_event(ctx, text)


async def _stream(
    ctx: Any, chunks: list[str], gate: str | None = None, within_s: float = 5
) -> AsyncIterator[Event]:
    if gate is None:
        for chunk in chunks:
            yield _text_event(ctx, chunk, partial=True)
        yield _text_event(ctx, "".join(chunks))
        return
    released = _gates[gate] = asyncio.Semaphore(0)
    try:
        for chunk in chunks:
            yield _text_event(ctx, chunk, partial=True)
            await asyncio.wait_for(released.acquire(), within_s)
    except asyncio.TimeoutError:
        raise RuntimeError(f"{chunk!r} was not read within {within_s:g} s") from None
    finally:
        del _gates[gate]
    yield _text_event(ctx, "".join(chunks))


async def _release(ctx: Any, gate: str) -> AsyncIterator[Event]:
    released = _gates.get(gate)
    if released is not None:
        released.release()
    yield _text_event(ctx, "no such stream" if released is None else "released")


async def _tool(ctx: Any, word: str) -> AsyncIterator[Event]:
    for letter in word:
        yield _text_event(ctx, letter, partial=True)
    yield _text_event(ctx, word)
    call = types.FunctionCall(id="call-1", name="count_letters", args={"word": word})
    yield _event(ctx, "model", types.Part(function_call=call))
    response = types.FunctionResponse(id=call.id, name=call.name, response={"letters": len(word)})
    yield _event(ctx, "user", types.Part(function_response=response))
    async for event in _say(ctx, f"{word} has {len(word)} letters."):
        yield event


async def _call(
    ctx: Any, args: dict[str, Any], response: dict[str, Any], reply: str
) -> AsyncIterator[Event]:
    call = types.FunctionCall(id="call-1", name="look_up", args=args)
    yield _event(ctx, "model", types.Part(function_call=call))
    answer = types.FunctionResponse(id=call.id, name=call.name, response=response)
    yield _event(ctx, "user", types.Part(function_response=answer))
    async for event in _say(ctx, reply):
        yield event


async def _events(ctx: Any, texts: list[str]) -> AsyncIterator[Event]:
    for text in texts:
        yield _text_event(ctx, text)


async def _parts(ctx: Any, texts: list[str]) -> AsyncIterator[Event]:
    yield _event(ctx, "model", *(types.Part(text=text) for text in texts))


async def _save(ctx: Any, names: list[str]) -> AsyncIterator[Event]:
    for name in names:
        await ctx.artifact_service.save_artifact(
            app_name=ctx.session.app_name,
            user_id=ctx.session.user_id,
            session_id=ctx.session.id,
            filename=name,
            artifact=types.Part(text=f"the content of {name}"),
        )
    yield _text_event(ctx, ", ".join(names))


async def _received(ctx: Any) -> AsyncIterator[Event]:
    texts = [part.text for part in ctx.user_content.parts]
    session = ctx.session
    context = {"parts": texts, "app": session.app_name, "user": session.user_id}
    yield _text_event(ctx, json.dumps({**context, "session": session.id}))


async def _history(ctx: Any) -> AsyncIterator[Event]:
    texts = [_text(event.content) for event in ctx.session.events if event.author == "user"]
    yield _text_event(ctx, json.dumps(texts))


def _text_event(ctx: Any, text: str, *, partial: bool | None = None) -> Event:
    return _event(ctx, "model", types.Part(text=text), partial=partial)


def _event(ctx: Any, role: str, *parts: types.Part, partial: bool | None = None) -> Event:
    return Event(
        invocation_id=ctx.invocation_id,
        author=ctx.agent.name,
        content=types.Content(role=role, parts=list(parts)),
        partial=partial,
    )


def _streaming(ctx: Any) -> bool:
    return ctx.run_config is not None and ctx.run_config.streaming_mode == StreamingMode.SSE


def _text(content: types.Content | None) -> str:
    parts = content.parts if content is not None else None
    return "".join(part.text or "" for part in parts or ())


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

root_agent = Reference(name="doublecheck_reference")
