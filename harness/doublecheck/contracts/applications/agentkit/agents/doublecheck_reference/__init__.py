"""The reference agent for google-adk.

Increments are sent only if the run requests streaming; the whole text is always sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import StreamingMode
from google.adk.events import Event
from google.genai import types

from .actions import Call, Turn, run


class Reference(LlmAgent):
    """Performs the action that a message names, or echoes the message.

    It is an LlmAgent, as ordinary agents are: google-adk runs other classes in another way.
    """

    async def _run_async_impl(self, ctx: Any) -> AsyncIterator[Event]:
        streaming = ctx.run_config and ctx.run_config.streaming_mode == StreamingMode.SSE
        increments: list[str] = []
        async for item in run(_turn(ctx)):
            if isinstance(item, str):
                increments.append(item)
                if streaming:
                    yield _event(ctx, types.Part(text=item), partial=True)
                continue
            if increments:
                yield _event(ctx, types.Part(text="".join(increments)))
                increments.clear()
            if isinstance(item, Call):
                call = types.FunctionCall(id="call-1", name=item.tool, args=item.args)
                yield _event(ctx, types.Part(function_call=call))
                answer = {"id": call.id, "name": call.name, "response": item.response}
                part = types.Part(function_response=types.FunctionResponse(**answer))
                yield _event(ctx, part, role="user")
            else:
                yield _event(ctx, *(types.Part(text=text) for text in item))
        if increments:
            yield _event(ctx, types.Part(text="".join(increments)))


def _turn(ctx: Any) -> Turn:
    session = ctx.session
    place = {"app": session.app_name, "user": session.user_id, "session": session.id}

    async def messages() -> list[str]:
        contents = [event.content for event in session.events if event.author == "user"]
        return ["".join(part.text or "" for part in content.parts) for content in contents]

    async def save(name: str, text: str) -> None:
        await ctx.artifact_service.save_artifact(
            app_name=session.app_name,
            user_id=session.user_id,
            session_id=session.id,
            filename=name,
            artifact=types.Part(text=text),
        )

    # google-adk runs an agent without a message, too
    parts = ctx.user_content.parts if ctx.user_content else ()
    return Turn([part.text for part in parts or ()], place, messages, save)


def _event(ctx: Any, *parts: types.Part, role: str = "model", partial: bool | None = None) -> Event:
    return Event(
        invocation_id=ctx.invocation_id,
        author=ctx.agent.name,
        content=types.Content(role=role, parts=list(parts)),
        partial=partial,
    )


root_agent = Reference(name="doublecheck_reference")
