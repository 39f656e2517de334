"""A BaseAgent that yields what it should not, or after it was told to end."""

import asyncio

from google.adk.agents import BaseAgent
from google.adk.events import Event
from scripted import content


class Wrong(BaseAgent):
    async def _run_async_impl(self, context):
        said = context.user_content.parts[0].text
        yield Event(author="somebody else", content=content("no invocation id"))
        if said == "string":
            yield "no event"
        if said == "cancelled":
            raise asyncio.CancelledError
        if said == "same":
            event = Event(author=self.name, content=content("twice"))
            yield event
            yield event
        if said == "ends":
            context.end_invocation = True
            yield Event(author=self.name, content=content("after its end"))


root_agent = Wrong(name="wrong")
