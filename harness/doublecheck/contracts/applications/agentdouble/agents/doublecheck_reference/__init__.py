"""The reference agent, which a target must serve for checks that look inside an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator

from agentdouble.agents import Event, Message, Part, Session

from .actions import Call, Turn, run


async def root_agent(message: Message, session: Session) -> AsyncIterator[str | Part | Event]:
    """Perform the action that the message names, or echo the message."""

    async def messages() -> list[str]:
        return [event.text for event in await session.history() if event.author == "user"]

    place = {"app": session.app_name, "user": session.user_id, "session": session.id}
    texts = [part.wire.get("text") for part in message.parts]
    async for item in run(Turn(texts, place, messages, session.save_artifact)):
        if isinstance(item, Call):
            yield (call := Part.of_call(item.tool, item.args))
            yield Event((Part.of_response(call, item.response),), role="user")
        else:
            yield item if isinstance(item, str) else Event(tuple(map(Part.of_text, item)))
